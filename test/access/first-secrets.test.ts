/** A first key and an admin token that no person saw count as never made. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { temporaryFolder } from '../support/folders.ts';
import { programArguments } from '../support/program.ts';
import { send } from '../support/http.ts';
import { listAt } from '../support/reading.ts';
import { ProgramRun } from '../support/program-run.ts';

const env = { PATH: process.env['PATH'] ?? '' };
const keyForm = /\bgw_[A-Za-z0-9_]{20,}/;
const tokenForm = /\bgwadmin_[A-Za-z0-9_]{20,}/;

async function startedIn(t: TestContext, cwd: string): Promise<ProgramRun> {
  const run = new ProgramRun(['start', '--listen', ':0', '--admin-listen', ':0'], { cwd, env });
  t.after(() => run.kill());
  await run.said(/^More clients: .*\n/m);
  return run;
}

for (const plane of ['listen', 'admin-listen']) {
  test(`a start whose --${plane} is taken makes no secrets, and the next one shows them`, async (t) => {
    const cwd = temporaryFolder('secrets');
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    t.after(() => taken.close());
    const address = taken.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const other = plane === 'listen' ? 'admin-listen' : 'listen';
    const args = ['start', `--${plane}`, `:${port}`, `--${other}`, ':0'];
    const { status, stderr } = spawnSync(process.execPath, programArguments(args), {
      cwd,
      env,
      encoding: 'utf8',
    });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /is in use/);
    assert.doesNotMatch(stderr, /"audit"/);
    const { out } = await startedIn(t, cwd);
    assert.match(out, keyForm);
    assert.match(out, tokenForm);
  });
}

/** Ends the process as a crash would when it is about to show the text. */
const dyingAtBanner = `
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = (text, ...rest) => {
    if (!String(text).startsWith('listening ')) return write(text, ...rest);
    require('node:fs').writeFileSync('unseen', String(text));
    process.kill(process.pid, 'SIGKILL');
  };`;

test('a start that dies before it shows them leaves secrets that open nothing, and the next one makes others', async (t) => {
  const cwd = temporaryFolder('secrets');
  const dying = [
    '--import',
    `data:text/javascript,${encodeURIComponent(
      `import { createRequire } from 'node:module'; const require = createRequire('/');${dyingAtBanner}`,
    )}`,
  ];
  const args = ['start', '--listen', ':0', '--admin-listen', ':0'];
  const { signal, stderr } = spawnSync(process.execPath, programArguments(args, dying), {
    cwd,
    env,
    encoding: 'utf8',
  });
  assert.equal(signal, 'SIGKILL', stderr);
  const unseen = readFileSync(join(cwd, 'unseen'), 'utf8');
  const first = await startedIn(t, cwd);
  const [key, token] = [keyForm, tokenForm].map((form) => form.exec(first.out)?.[0] ?? '');
  const [lostKey, lostToken] = [keyForm, tokenForm].map((form) => form.exec(unseen)?.[0] ?? '');
  assert.ok(key !== '' && token !== '' && lostKey !== '' && lostToken !== '');
  assert.notEqual(key, lostKey);
  const bearer = (text: string | undefined) => ({ headers: { authorization: `Bearer ${text}` } });
  const statuses = await Promise.all([
    send(`${first.url}/v1/models`, undefined, bearer(key)),
    send(`${first.url}/v1/models`, undefined, bearer(lostKey)),
    send(`${first.adminUrl}/api/keys`, undefined, bearer(lostToken)),
  ]);
  assert.deepEqual(
    statuses.map(({ status }) => status),
    [200, 401, 401],
  );
  const listed = await send(`${first.adminUrl}/api/keys`, undefined, bearer(token));
  assert.deepEqual(
    listAt(listed.json, 'keys').map(({ name, state }) => [name, state]),
    [
      ['first key', 'revoked'],
      ['first key', 'active'],
    ],
  );
  await first.stop();
  const second = await startedIn(t, cwd);
  assert.doesNotMatch(second.out, keyForm);
  assert.equal((await send(`${second.url}/v1/models`, undefined, bearer(key))).status, 200);
});
