/** What is asked of an identity provider, and what is taken of its answers. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { providerFetch } from '../../src/admin/people/provider-fetch.ts';
import { serve } from './providers.ts';

const get = { method: 'GET', headers: {}, body: undefined, redirect: 'manual' } as const;

function answering(t: TestContext, bytes: number): Promise<string> {
  return serve(t, (_request, response) => response.end(Buffer.alloc(bytes, 'x')));
}

it('S20 an answer of a megabyte is read, one that is longer is refused', async (t) => {
  const whole = await providerFetch(await answering(t, 1024 * 1024), get);
  assert.equal((await whole.arrayBuffer()).byteLength, 1024 * 1024);
  const long = providerFetch(await answering(t, 1024 * 1024 + 1), get);
  await assert.rejects(long, { message: 'The identity provider sent more than 1048576 bytes.' });
});

it('S16 no address of the provider’s document leads to cloud metadata', async () => {
  for (const host of ['169.254.169.254', '[fd00:ec2::254]', '2852039166', 'metadata.goog']) {
    await assert.rejects(providerFetch(`http://${host}/token`, get), {
      message: /^The gateway never connects to /,
    });
  }
});

it('a redirect is not followed', async (t) => {
  const issuer = await serve(t, (_request, response) =>
    response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
  );
  assert.equal((await providerFetch(issuer, get)).status, 302);
});
