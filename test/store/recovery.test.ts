/** The recipes of docs/operator/upgrade.md that one gateway shows: a restored backup, and a lost admin token. */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { startGateway } from '../../src/main.ts';
import { temporaryFolder } from '../support/folders.ts';

const first = 'admin-token-of-the-first-start';

async function start(t: TestContext, cwd: string, token?: string, dir = 'data') {
  const gateway = await startGateway({
    flags: {
      listen: '127.0.0.1:0',
      'admin-listen': '127.0.0.1:0',
      'data-dir': dir,
      'log-level': 'silent',
    },
    env: token === undefined ? {} : { MODEL_GATEWAY_ADMIN_TOKEN: token },
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
  return { url: gateway.url, ask, made: gateway.newAdminToken ?? '', stop: () => gateway.stop() };
}

async function opens(url: string, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

test('a backup put in the place of gateway.db has the keys of its moment', async (t) => {
  const cwd = temporaryFolder('recovery');
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

test('a new MODEL_GATEWAY_ADMIN_TOKEN takes the place of a lost one for good, on the same data', async (t) => {
  const cwd = temporaryFolder('recovery');
  const gateway = await start(t, cwd);
  const lost = gateway.made;
  const made = await gateway.ask('POST', '/api/keys', lost, { name: 'ana', models: ['*'] });
  await gateway.stop();
  const again = await start(t, cwd, first);
  assert.equal(again.made, '');
  assert.equal((await again.ask('GET', '/api/keys', lost)).status, 401);
  assert.equal((await again.ask('GET', '/api/keys', first)).status, 200);
  assert.equal(await opens(again.url, String(made.body['key'])), 200);
  await again.stop();
  // Without the variable neither comes back in silence: a new one is made and shown.
  const without = await start(t, cwd);
  assert.notEqual(without.made, '');
  assert.equal((await without.ask('GET', '/api/keys', lost)).status, 401);
  assert.equal((await without.ask('GET', '/api/keys', first)).status, 401);
  const log = await without.ask('GET', '/api/audit', without.made);
  assert.equal(log.status, 200);
  const actions = JSON.stringify(log.body).match(/admin_token\.\w+/g);
  assert.deepEqual(actions, ['admin_token.create', 'admin_token.revoke', 'admin_token.create']);
});
