/** The state of a real gateway in one answer, without a secret (issue 24). */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { schemaVersion } from '../../src/store/schema.ts';
import { DirectorySize } from '../../src/compose/diagnostics.ts';
import { startGateway } from '../../src/main.ts';
import { temporaryFolder } from '../support/folders.ts';
import { adminToken, clientKey } from '../support/keys.ts';

const config = (model: string): string => `providers:
  up:
    dialect: openai-chat
    base_url: http://127.0.0.1:9/v1
    api_key: canary-key
    headers: { x-auth: canary-header }
    proxy: http://user:canary-proxy@127.0.0.1:9
models: { fast: up/${model} }
webhooks:
  - { url: "http://127.0.0.1:9/canary-path", secret: canary-signature-0123 }
traces: { endpoint: "http://127.0.0.1:9", headers: { authorization: canary-trace } }
`;

test('issue 24 the data directory is counted once a minute, however often it is asked for', async () => {
  const folder = temporaryFolder('diagnostics');
  let now = 0;
  const size = new DirectorySize(folder, { now: () => now });
  writeFileSync(join(folder, 'one'), 'x'.repeat(100));
  assert.equal(await size.bytes(), 100);
  writeFileSync(join(folder, 'two'), 'x'.repeat(20));
  now = 59_999;
  assert.equal(await size.bytes(), 100);
  now = 60_000;
  assert.equal(await size.bytes(), 120);
  assert.equal(await new DirectorySize(join(folder, 'none'), { now: () => now }).bytes(), null);
});

test('issue 24 S4 diagnostics tell versions, store, disk, reload and providers, and no secret', async (t) => {
  const folder = temporaryFolder('diagnostics');
  const file = join(folder, 'gateway.yaml');
  writeFileSync(file, config('one'), { mode: 0o600 });
  const gateway = await startGateway({
    flags: {
      listen: '127.0.0.1:0',
      'admin-listen': '127.0.0.1:0',
      'data-dir': join(folder, 'data'),
      'log-level': 'silent',
    },
    env: { MODEL_GATEWAY_KEY: clientKey, MODEL_GATEWAY_ADMIN_TOKEN: adminToken },
    cwd: folder,
    load: () => () => undefined,
  });
  t.after(() => gateway.stop());
  const ask = async (path: string) => {
    const headers = { authorization: `Bearer ${adminToken}` };
    const response = await fetch(gateway.adminUrl + path, { headers });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    assert.doesNotMatch(text, /canary/);
    assert.ok(!text.includes(adminToken) && !text.includes(clientKey));
    return { text, headers: response.headers };
  };
  const before = JSON.parse((await ask('/api/diagnostics')).text);
  assert.equal(before.node, process.version);
  assert.equal(before.pid, process.pid);
  assert.equal(before.store.kind, 'sqlite');
  assert.equal(before.store.schema, schemaVersion);
  assert.equal(before.store.up, true);
  assert.equal(typeof before.store.read_ms, 'number');
  assert.equal(before.store.last_write_ms, null, 'no call was made');
  assert.equal(before.data.directory, join(folder, 'data'));
  assert.ok(before.data.bytes > 0 && before.data.free_bytes > 0);
  assert.ok(Math.abs(Date.parse(before.at) - Date.now()) < 60_000);
  assert.equal(before.last_reload, null);
  assert.ok(before.providers.some((each: { id: string }) => each.id === 'up'));
  assert.ok(before.settings.some((each: { path: string }) => each.path === 'models.fast'));
  writeFileSync(file, 'modells: {}\n');
  await gateway.reload();
  const refused = JSON.parse((await ask('/api/diagnostics')).text);
  assert.equal(refused.last_reload.applied, false);
  assert.match(refused.last_reload.problems[0], /gateway\.yaml:1: modells/);
  assert.ok(
    refused.events.some((each: { type: string }) => each.type === 'config.refused'),
    'events are told',
  );
  // A call that fails writes a row: its time is told.
  await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${clientKey}`, 'content-type': 'application/json' },
    body: '{"model":"fast","messages":[{"role":"user","content":"canary-prompt"}]}',
  });
  await ask('/api/calls?limit=1');
  const saved = await ask('/api/diagnostics?file=1');
  assert.equal(typeof JSON.parse(saved.text).store.last_write_ms, 'number');
  assert.match(
    saved.headers.get('content-disposition') ?? '',
    /^attachment; filename="model-gateway-diagnostics-\d{8}T\d+Z\.json"$/,
  );
});
