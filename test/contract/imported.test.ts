/** A config of LiteLLM, imported: its clients call with the names and the key that they have. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import OpenAI from 'openai';
import { importCommand } from '../../src/compose/commands/config-commands.ts';
import { startGateway } from '../../src/main.ts';
import { run } from '../unit/cli-config/context.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

const masterKey = 'sk-master-0123456789abcdef';

test('a LiteLLM config imported answers a call of an unchanged client, and its fallback', async (t) => {
  const upstream = await ScriptedUpstream.start();
  t.after(() => upstream.close());
  const cwd = mkdtempSync(join(tmpdir(), 'gw-imported-'));
  t.after(() => rmSync(cwd, { recursive: true, force: true }));
  const config = `model_list:
  - model_name: gpt-4o
    litellm_params:
      model: openai/broken-model
      api_base: http://127.0.0.1:${upstream.port}/v1
      api_key: os.environ/HOUSE_KEY
  - model_name: spare
    litellm_params:
      model: openai/house-7b
      api_base: http://127.0.0.1:${upstream.port}/v1
      api_key: os.environ/HOUSE_KEY
litellm_settings: { fallbacks: [{ gpt-4o: [spare] }] }
general_settings: { master_key: os.environ/LITELLM_MASTER_KEY }
`;
  const file = join(cwd, 'config.yaml');
  writeFileSync(file, config);
  const out = join(cwd, 'gateway.yaml');
  const made = await run(importCommand, ['litellm', file, '--out', out], {
    LITELLM_MASTER_KEY: masterKey,
  });
  assert.equal(made.code, 0, made.err);
  assert.ok(!readFileSync(out, 'utf8').includes(masterKey));
  const gateway = await startGateway({
    flags: { listen: '127.0.0.1:0', 'admin-listen': '127.0.0.1:0', 'log-level': 'silent' },
    env: {
      MODEL_GATEWAY_KEY: clientKey,
      MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
      HOUSE_KEY: 'key-of-the-house',
    },
    cwd,
  });
  t.after(() => gateway.stop());
  const broken = upstream.script('broken-model', {
    status: 404,
    body: '{"error":{"message":"The model does not exist.","code":"model_not_found"}}',
  });
  const spare = upstream.script('house-7b', chatAnswer({ text: 'Hello.' }, false));
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: masterKey, maxRetries: 0 });
  const answer = await client.chat.completions.create({
    model: 'gpt-4o',
    messages: [{ role: 'user', content: 'Say hello.' }],
  });
  assert.equal(answer.choices[0]?.message.content, 'Hello.');
  assert.equal(broken.requests.length, 1);
  assert.equal(spare.requests[0]?.header('authorization'), 'Bearer key-of-the-house');
});
