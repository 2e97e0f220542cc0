/** What a client hears from a gateway that stops, or whose store does not take rows (G14, E18). */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { startGateway } from '../../src/main.ts';
import type { RunningGateway } from '../../src/compose/start.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { clientDialects } from '../support/dialects.ts';
import { objectAt } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { errorTable, lookOf } from './fault-row.ts';

interface Scene {
  readonly running: RunningGateway;
  readonly upstream: ScriptedUpstream;
  readonly dataDir: string;
}

async function scene(t: TestContext): Promise<Scene> {
  const dataDir = temporaryFolder('test');
  const upstream = await ScriptedUpstream.start();
  const running = await startGateway({
    flags: {
      listen: '127.0.0.1:0',
      'admin-listen': '127.0.0.1:0',
      'data-dir': dataDir,
      'log-level': 'silent',
    },
    env: {
      MODEL_GATEWAY_KEY: clientKey,
      MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
      OPENAI_API_KEY: 'upstream-key',
      OPENAI_BASE_URL: `http://127.0.0.1:${upstream.port}/v1`,
    },
    cwd: dataDir,
  });
  t.after(async () => {
    await running.stop();
    await upstream.close();
  });
  return { running, upstream, dataDir };
}

test('G14 a call that is cut before its answer began is told so', async (t) => {
  const { running, upstream } = await scene(t);
  for (const dialect of clientDialects) {
    const model = `m-${dialect}`;
    const script = upstream.script(model, { body: '', mute: true, ending: 'hang' });
    const body = requestBody(dialect, { model: `openai/${model}`, stream: true });
    const reply = send(`${running.url}${endpointOf[dialect]}`, body);
    await script.request(0);
    running.cut();
    assert.equal((await reply).status, lookOf(errorTable.e10, dialect).status);
  }
});

test('E18 F84 no call is served while its row cannot be written, and all are afterwards', async (t) => {
  const { running, upstream, dataDir } = await scene(t);
  upstream.script('m', replying('chat', { text: 'Hi' }));
  const ask = () =>
    send(
      `${running.url}/v1/chat/completions`,
      requestBody('chat', { model: 'openai/m', stream: false }),
    );
  const other = new DatabaseSync(join(dataDir, 'gateway.db'));
  t.after(() => {
    if (other.isOpen) other.close();
  });
  other.exec('BEGIN IMMEDIATE');
  assert.equal((await ask()).status, 200);
  let taken = 1;
  let refused = await ask();
  // Calls are taken until that has lasted for five seconds.
  for (; refused.status === 200; taken += 1) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    refused = await ask();
  }
  assert.equal(refused.status, 503, refused.text);
  assert.equal(objectAt(refused.json, 'error')['code'], 'store_unavailable');
  assert.match(String(refused.headers['retry-after']), /^\d+$/);
  assert.equal(upstream.all.length, taken);
  other.exec('ROLLBACK');
  const deadline = performance.now() + 60_000;
  let again = await ask();
  while (again.status !== 200 && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    again = await ask();
  }
  assert.equal(again.status, 200);
});
