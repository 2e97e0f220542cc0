/** Windows and longest answers of models, as the gateway lists them and as `connect` passes them on (C4). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connectCommand } from '../../src/cli/commands/connect.ts';
import { send } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { listAt } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { run } from '../unit/cli-config/context.ts';

let rig: Rig;
before(async () => {
  rig = await startRig((upstreams) => ({
    providers: {
      shop: {
        dialect: 'openai-chat',
        base_url: `http://127.0.0.1:${upstreams.chat.port}/shop/v1`,
        api_key: 'k',
        like: 'openai',
      },
    },
    models: {
      one: 'up-chat/said',
      wide: { targets: ['up-chat/said', 'up-chat/wider'] },
      mixed: { targets: ['up-chat/said', 'shop/gpt-4o'] },
      unsure: { targets: ['up-chat/said', 'up-chat/silent'] },
      listed: 'shop/gpt-4o',
    },
  }));
  const data = [
    { id: 'said', context_length: 65_536, max_completion_tokens: 4096 },
    { id: 'wider', context_length: 100_000, max_completion_tokens: 100_000 },
    { id: 'silent' },
  ];
  rig.upstreams.chat.script('/v1/models', { body: JSON.stringify({ data }) });
});
after(() => rig.stop());

const rows = [
  ['one', 65_536, 4096, 'the provider says it'],
  ['wide', 65_536, 4096, 'the least of both targets'],
  ['listed', 128_000, null, 'the price package has the window'],
  ['mixed', 65_536, null, 'the least of both, where both are known'],
  ['unsure', null, null, 'of one target nothing is known'],
  ['up-chat/silent', null, null, 'nothing is known'],
] as const;

for (const [name, window, output, why] of rows) {
  test(`C4 ${name}: /v1/models and /api/models tell the same, ${why}`, async () => {
    const path = `${rig.gateway.url}/v1/models/${encodeURIComponent(name)}`;
    const { json } = await send(path, undefined, {
      headers: { authorization: `Bearer ${clientKey}` },
    });
    assert.deepEqual([json['max_input_tokens'], json['max_tokens']], [window, output]);
    const admin = await send(`${rig.gateway.adminUrl}/api/models`, undefined, {
      headers: { authorization: `Bearer ${adminToken}` },
    });
    const listed = listAt(admin.json, 'models').find(({ id }) => id === name);
    assert.deepEqual([listed?.['max_input_tokens'], listed?.['max_tokens']], [window, output]);
  });

  test(`C4 connect asks the gateway for the limits of ${name}`, async () => {
    const where = ['--base-url', rig.gateway.url, '--key', clientKey, '--model', name];
    const { code, out, err } = await run(connectCommand, ['claude-code', ...where]);
    assert.equal(code, 0, err);
    const told = (variable: string): string | undefined =>
      new RegExp(`^export ${variable}=(.*)$`, 'm').exec(out)?.[1];
    assert.equal(told('CLAUDE_CODE_MAX_CONTEXT_TOKENS'), window?.toString());
    assert.equal(told('CLAUDE_CODE_MAX_OUTPUT_TOKENS'), output?.toString());
    assert.equal(/Set it with --window TOKENS/.test(err), window === null);
  });
}

test('C4 an answer may take half of the window at most, and what is given counts before what is known', async () => {
  const ask = async (...more: readonly string[]): Promise<string> => {
    const where = ['--base-url', rig.gateway.url, '--key', clientKey, '--model', 'up-chat/wider'];
    return (await run(connectCommand, ['pi', ...where, ...more])).out;
  };
  const known = await ask();
  assert.match(known, /"contextWindow": 100000,\n\s+"maxTokens": 50000\n/);
  const given = await ask('--window', '20000');
  assert.match(given, /"contextWindow": 20000,/);
});
