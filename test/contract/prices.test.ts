/** Prices of a running gateway: asked for by the command line, changed by an edit of the config. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { findGateway } from '../../src/compose/commands/find-gateway.ts';
import { isObject } from '../../src/json/value.ts';
import { startGateway } from '../../src/main.ts';
import { temporaryFolder } from '../support/folders.ts';
import { adminToken, clientKey } from '../support/keys.ts';

const loaded = createRequire(import.meta.url).cache;
const isLoaded = (): boolean =>
  Object.keys(loaded).some((path) => /genai-prices[\\/]dist/.test(path));

function config(input: number): string {
  return `prices:
  openai/gpt-5-mini: { input: ${input}, output: 2 }
`;
}

test('F6 prices come from the running gateway, and an edit holds without a restart', async (t) => {
  const cwd = temporaryFolder('prices');
  const configFile = join(cwd, 'gateway.yaml');
  writeFileSync(configFile, config(1));
  const env = { MODEL_GATEWAY_KEY: clientKey, MODEL_GATEWAY_ADMIN_TOKEN: adminToken };
  const gateway = await startGateway({
    flags: { listen: '127.0.0.1:0', 'admin-listen': '127.0.0.1:0', 'log-level': 'silent' },
    env,
    cwd,
  });
  t.after(() => gateway.stop());
  assert.equal(isLoaded(), false, 'the price package costs start time');
  const { client: admin } = await findGateway(env, cwd);
  const shown = async (model: string): Promise<readonly unknown[]> => {
    const { body } = await admin.request('GET', `/api/prices?model=${model}`);
    const rows = isObject(body) && Array.isArray(body['prices']) ? body['prices'] : [];
    const [first] = rows;
    const price = isObject(first) ? first['price'] : undefined;
    return isObject(price) ? [price['input'], price['source']] : [];
  };
  assert.deepEqual(await shown('openai/gpt-5-mini'), [1, 'gateway.yaml:2']);

  writeFileSync(configFile, config(7));
  const reloaded = await admin.request('POST', '/api/reload');
  assert.equal(reloaded.status, 200);
  assert.deepEqual(await shown('openai/gpt-5-mini'), [7, 'gateway.yaml:2']);

  writeFileSync(configFile, config(-1));
  assert.equal((await admin.request('POST', '/api/reload')).status, 422);
  assert.deepEqual(await shown('openai/gpt-5-mini'), [7, 'gateway.yaml:2']);

  const [input, source] = await shown('openai/gpt-5-nano');
  assert.equal(input, 0.05);
  assert.match(String(source), /^genai-prices [\d.]+ openai\/gpt-5-nano$/);
  assert.equal(isLoaded(), true);
});
