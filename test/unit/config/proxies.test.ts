/** N4: proxies of the environment that the gateway cannot use are told, not passed over. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scene } from './scene.ts';

test('N4 a proxy of another kind is named in a warning, without its password', async () => {
  const { load } = scene();
  const warnings = async (env: { readonly [name: string]: string }): Promise<string> =>
    (await load({ env })).warnings.join('\n');
  const told = await warnings({ ALL_PROXY: 'socks5://me:secret@proxy:1080' });
  assert.match(told, /^ALL_PROXY is not an http:\/\/ or https:\/\/ address: .* directly$/);
  assert.equal(
    await warnings({ https_proxy: 'proxy:3128', HTTP_PROXY: 'http://proxy', all_proxy: '' }),
    '',
  );
});
