/** The recipes of docs/operator/upgrade.md that one gateway shows: a restored backup, and a lost admin token. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { startGateway } from '../../src/main.ts';

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'gw-recovery-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const first = 'admin-token-of-the-first-start';
const second = 'admin-token-of-the-second-start';

async function start(t: TestContext, cwd: string, token: string, dir = 'data') {
  const gateway = await startGateway({
    flags: {
      listen: '127.0.0.1:0',
      'admin-listen': '127.0.0.1:0',
      'data-dir': dir,
      'log-level': 'silent',
    },
    env: { MODEL_GATEWAY_ADMIN_TOKEN: token },
    cwd,
  });
  t.after(() => gateway.stop());
  const ask = async (method: string, path: string, by: string, body?: object) => {
    const response = await fetch(gateway.adminUrl + path, {
      method,
      headers: { authorization: `Bearer ${by}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: tryParseObject(await response.text()) ?? {} };
  };
  return { url: gateway.url, ask, stop: () => gateway.stop() };
}

async function opens(url: string, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

test('a backup put in the place of gateway.db has the keys of its moment', async (t) => {
  const cwd = folder(t);
  const gateway = await start(t, cwd, first);
  const make = async (name: string): Promise<string> => {
    const { body } = await gateway.ask('POST', '/api/keys', first, { name, models: ['*'] });
    return String(body['key']);
  };
  const before = await make('before');
  const path = join(cwd, 'backup.db');
  assert.equal((await gateway.ask('POST', '/api/backup', first, { path })).status, 200);
  const after = await make('after');
  assert.deepEqual([await opens(gateway.url, before), await opens(gateway.url, after)], [200, 200]);
  await gateway.stop();

  mkdirSync(join(cwd, 'restored'), { mode: 0o700 });
  renameSync(path, join(cwd, 'restored', 'gateway.db'));
  const restored = await start(t, cwd, first, 'restored');
  assert.equal(await opens(restored.url, before), 200);
  assert.equal(await opens(restored.url, after), 401);
});

test('a new MODEL_GATEWAY_ADMIN_TOKEN takes the place of a lost one, on the same data', async (t) => {
  const cwd = folder(t);
  const gateway = await start(t, cwd, first);
  const made = await gateway.ask('POST', '/api/keys', first, { name: 'ana', models: ['*'] });
  await gateway.stop();
  const again = await start(t, cwd, second);
  assert.equal((await again.ask('GET', '/api/keys', first)).status, 401);
  assert.equal((await again.ask('GET', '/api/keys', second)).status, 200);
  assert.equal(await opens(again.url, String(made.body['key'])), 200);
});
