/** Gateway processes whose disk, database or own program fails under running calls (F85, F86, F87, F94). */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/json/value.ts';
import { totalInputTokens } from '../../src/core/generation.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { readCallText } from '../../src/store/call-rows.ts';
import { Instance } from '../cluster/instance.ts';
import { runsNow, sampledTests, testsOf } from '../support/depth.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/postgres-store.ts';
import { type ClientDialect, clientDialects } from '../support/dialects.ts';
import type { Reply } from '../support/http.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { brokenness, scriptSlow, stream } from './streams.ts';

const main = join(import.meta.dirname, '../../src/main.ts');
const unlimited = 'unlimited';

let upstream: ScriptedUpstream;
before(async () => {
  upstream = await ScriptedUpstream.start();
});
/** Of a test that failed, too: one that runs on would keep this process for ever. */
const instances: Instance[] = [];
after(async () => {
  await Promise.all(instances.map((instance) => instance.kill()));
  await upstream.close();
});

interface Stage {
  readonly instance: Instance;
  readonly key: string;
  readonly database: string;
}

async function started(node?: readonly string[], config?: JsonObject): Promise<Stage> {
  const instance = await Instance.start({
    storage: 'sqlite',
    upstream: upstream.port,
    ...(node === undefined ? {} : { node }),
    ...(config === undefined ? {} : { config }),
  });
  instances.push(instance);
  const { key } = await instance.makeKey();
  return { instance, key, database: join(instance.directory, 'data', 'gateway.db') };
}

/** One stream of each dialect with its first content; they go on when the gate opens. */
async function begin(stage: Stage, gate: Promise<void>): Promise<readonly Promise<Reply>[]> {
  scriptSlow(upstream, 'gated', () => gate);
  let begun = 0;
  const replies = clientDialects.map((dialect) => {
    let first = true;
    const onData = (): void => {
      if (first) begun += 1;
      first = false;
    };
    return stream({ ...stage, dialect, model: 'up/gated', onData });
  });
  await until(() => begun === clientDialects.length, 'the streams have begun');
  return replies;
}

function quick(stage: Stage, dialect: ClientDialect): Promise<Reply> {
  return stream({ ...stage, dialect, model: 'up/quick' });
}

function rows(database: string): readonly string[] {
  const db = new DatabaseSync(database, { readOnly: true });
  try {
    assert.equal(db.prepare('PRAGMA integrity_check').get()?.['integrity_check'], 'ok');
    assert.equal(db.prepare('SELECT count(*) AS n FROM open_calls').get()?.['n'], 0);
    return db
      .prepare('SELECT id, outcome FROM calls ORDER BY id')
      .all()
      .map((row) => `${String(row['id'])} ${String(row['outcome'])}`);
  } finally {
    db.close();
  }
}

function assertRefused(dialect: ClientDialect, { status, text, headers }: Reply): void {
  assert.equal(status, dialect === 'messages' ? 529 : 503, text);
  assert.match(text, dialect === 'messages' ? /"overloaded_error"/ : /"store_unavailable"/);
  assert.ok(Number(headers['retry-after']) >= 1);
}

/** Of `npm test`, and of the rest: each starts gateways. */
const [shortTest, restTest] = [testsOf(true), testsOf(false)];

describe('a store that fails', { timeout: 500_000 }, () => {
  shortTest(
    'F85 no file may grow: running streams end well, new calls are refused, then all rows are written',
    async () => {
      scriptSlow(upstream, 'quick', () => Promise.resolve());
      const stage = await started();
      const { instance, database } = stage;
      const gate = Promise.withResolvers<void>();
      const running = await begin(stage, gate.promise);
      const mayGrow = (bytes: string): void => {
        const pid = readFileSync(join(instance.directory, 'data', 'gateway.pid'), 'utf8').trim();
        execFileSync('prlimit', ['--pid', pid, `--fsize=${bytes}`]);
      };
      mayGrow('4096:unlimited');
      const ids: string[] = [];
      const note = ({ headers }: Reply): void => void ids.push(String(headers['x-request-id']));
      // Its row cannot be written; calls are taken until that has lasted for five seconds.
      note(await quick(stage, 'chat'));
      await until(async () => (await instance.ready()) === 503, 'it says that it is not ready');
      for (const dialect of clientDialects) assertRefused(dialect, await quick(stage, dialect));
      assert.equal((await instance.admin('GET', '/api/status')).status, 200);

      gate.resolve();
      for (const [i, reply] of running.entries()) {
        assert.equal(brokenness(clientDialects[i] ?? 'chat', await reply), undefined);
        note(await reply);
      }
      mayGrow(unlimited);
      await until(async () => (await instance.ready()) === 200, 'it is ready again');
      const last = await quick(stage, 'messages');
      assert.equal(brokenness('messages', last), undefined);
      note(last);
      assert.equal(await instance.stop(), 0);
      const found = rows(database);
      for (const id of ids) assert.ok(found.includes(`${id} ok`), `${id} of ${found.join(', ')}`);
    },
  );

  for (const workers of runsNow(false) ? [1, 2] : []) {
    test(`F-6 SIGTERM while no file may grow, ${workers} process: the rows stand in the log, the exit code is 1`, async () => {
      scriptSlow(upstream, 'quick', () => Promise.resolve());
      const stage = await started(undefined, { workers });
      const { instance } = stage;
      const pid = readFileSync(join(instance.directory, 'data', 'gateway.pid'), 'utf8').trim();
      execFileSync('prlimit', ['--pid', pid, '--fsize=4096:unlimited']);
      const ids: string[] = [];
      // Each connection is of either worker, by chance.
      for (const dialect of [...clientDialects, ...clientDialects, ...clientDialects]) {
        const reply = await quick(stage, dialect);
        assert.equal(brokenness(dialect, reply), undefined);
        ids.push(String(reply.headers['x-request-id']));
      }
      assert.equal(await instance.stop(), 1);
      assert.match(instance.log, /model-gateway: .*finished calls? (is|are) not in the ledger/);
      const lost = instance.log
        .split('\n')
        .filter((line) => line.includes('"ledger_row_lost"'))
        .map((line) => readCallText(String(tryParseObject(line)?.['row'] ?? '')));
      for (const id of ids) {
        const row = lost.find((each) => each?.id === id);
        assert.equal(row?.outcome, 'ok', `${id} is not among ${lost.length} rows of the log`);
        assert.ok((row.charged.outputTokens ?? 0) > 0);
      }
      const sums = instance.log
        .split('\n')
        .filter((line) => line.includes('"ledger_rows_lost"'))
        .map((line) => tryParseObject(line));
      const total = (name: string): number =>
        sums.reduce((sum, line) => sum + Number(line?.[name]), 0);
      const tokens = lost.map(
        ({ charged }) => (totalInputTokens(charged) ?? 0) + (charged.outputTokens ?? 0),
      );
      assert.equal(total('rows'), lost.length);
      // Not those that a line of the log quotes.
      const told = [...instance.log.matchAll(/^(?!\{).*?(\d+) finished calls? (?:is|are) not/gm)];
      assert.equal(
        told.reduce((sum, [, count]) => sum + Number(count), 0),
        lost.length,
        'the last words of all processes',
      );
      assert.equal(
        total('tokens'),
        tokens.reduce((sum, count) => sum + count, 0),
      );
      assert.equal(total('unpriced_calls'), lost.length, 'no price is known');
    });
  }

  restTest(
    'F87 the database is removed under it: it says so, takes no calls, and continues when it is back',
    async () => {
      scriptSlow(upstream, 'quick', () => Promise.resolve());
      const stage = await started();
      const { instance, database } = stage;
      const gate = Promise.withResolvers<void>();
      const running = await begin(stage, gate.promise);
      renameSync(database, `${database}.away`);
      const made: Reply[] = [];
      await until(
        async () => {
          const reply = await quick(stage, 'chat');
          if (reply.status === 200) made.push(reply);
          return (await instance.ready()) === 503;
        },
        'it says that it is not ready',
        60_000,
      );
      for (const dialect of clientDialects) assertRefused(dialect, await quick(stage, dialect));
      const says = (): boolean => instance.log.includes('gateway.db was removed or replaced');
      await until(says, 'the log says so');
      gate.resolve();
      for (const [i, reply] of running.entries()) {
        assert.equal(brokenness(clientDialects[i] ?? 'chat', await reply), undefined);
        made.push(await reply);
      }
      renameSync(`${database}.away`, database);
      await until(async () => (await instance.ready()) === 200, 'it is ready again');
      assert.equal(await instance.stop(), 0);
      const found = rows(database);
      for (const { headers } of made) {
        assert.ok(found.includes(`${String(headers['x-request-id'])} ok`));
      }
    },
  );
});

/** The lowest number of a descriptor that the process does not use: with a limit of one more, it gets only that. */
function firstFreeDescriptor(pid: string): number {
  const used = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let free = 0;
  while (used.has(free)) free += 1;
  return free;
}

shortTest(
  'F92 without file descriptors calls are refused as overload, running ones continue, and it recovers',
  async () => {
    const stage = await started();
    const { instance } = stage;
    scriptSlow(upstream, 'quick', () => Promise.resolve());
    const gate = Promise.withResolvers<void>();
    const running = await begin(stage, gate.promise);
    const pid = readFileSync(join(instance.directory, 'data', 'gateway.pid'), 'utf8').trim();
    const before = /^Max open files\s+(\d+)/m.exec(
      readFileSync(`/proc/${pid}/limits`, 'utf8'),
    )?.[1];
    for (const dialect of clientDialects) {
      // One for the client's connection, none for the upstream's, which keeps none.
      await until(async () => {
        execFileSync('prlimit', ['--pid', pid, `--nofile=${firstFreeDescriptor(pid) + 1}:`]);
        const reply = await Promise.race([
          quick(stage, dialect).catch(() => undefined),
          // Who got the last one before the call waits for more, and so would the test.
          sleep(10_000, undefined, { ref: false }),
        ]);
        execFileSync('prlimit', ['--pid', pid, `--nofile=${before}:`]);
        if (reply === undefined || reply.status === 200) return false;
        assert.equal(reply.status, dialect === 'messages' ? 529 : 503, reply.text);
        assert.match(
          reply.text,
          dialect === 'messages' ? /"overloaded_error"/ : /"server_is_overloaded"/,
        );
        assert.ok(Number(reply.headers['retry-after']) >= 1);
        return true;
      }, 'it has no descriptor left');
    }
    for (let i = 0; i < 8; i += 1) {
      assert.equal(brokenness('chat', await quick(stage, 'chat')), undefined);
    }
    gate.resolve();
    for (const [i, reply] of running.entries()) {
      assert.equal(brokenness(clientDialects[i] ?? 'chat', await reply), undefined);
    }
    assert.equal(await instance.stop(), 0);
  },
);

interface Ended {
  readonly status: number | null;
  readonly text: string;
}

/** A start that cannot come about. */
function startOn(directory: string): Ended {
  const args = ['start', '--data-dir', directory, '--listen', ':0', '--admin-listen', ':0'];
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '' },
    cwd: tmpdir(),
    timeout: 500_000,
  });
  return { status, text: stdout + stderr };
}

describe('a start that must not be', { timeout: 500_000 }, () => {
  shortTest(
    'F87 a second process on the same directory ends with the pid of the first, which continues',
    async () => {
      const { instance } = await started();
      const { status, text } = startOn(join(instance.directory, 'data'));
      assert.equal(status, 1);
      const pid = readFileSync(join(instance.directory, 'data', 'gateway.pid'), 'utf8').trim();
      assert.match(text, new RegExp(`Another gateway.*pid ${pid}`));
      assert.equal(await instance.ready(), 200);
      assert.equal(await instance.stop(), 0);
    },
  );

  shortTest('F86 a broken database ends the start, names the way out, and stays as it is', () => {
    const directory = temporaryFolder('broken');
    const database = join(directory, 'gateway.db');
    writeFileSync(database, 'this is no database. '.repeat(500), { mode: 0o600 });
    const before = readFileSync(database);
    const { status, text } = startOn(directory);
    assert.equal(status, 1);
    assert.ok(text.includes(database) && text.includes('restore it from a backup'), text);
    assert.doesNotMatch(text, /listening|gw_/);
    assert.deepEqual(readFileSync(database), before);
  });
});

/** Breaks the program from within on request. */
const breaking = (how: string): readonly string[] => {
  const text = `process.on('SIGUSR2', () => { ${how} });`;
  return ['--import', `data:text/javascript,${encodeURIComponent(text)}`];
};

/** `npm test` plays one of them. */
const cellTest = sampledTests(2);

describe('a bug', { timeout: 500_000 }, () => {
  for (const [name, how] of [
    ['an exception that nobody caught', `throw new Error('a bug')`],
    ['a promise that nobody caught', `Promise.reject(new Error('a bug'))`],
  ] as const) {
    cellTest()(
      `F94 ${name}: running streams end well and are settled, then the process ends with 1`,
      async () => {
        const stage = await started(breaking(how));
        const { instance, database } = stage;
        const gate = Promise.withResolvers<void>();
        const running = await begin(stage, gate.promise);
        instance.signal('SIGUSR2');
        await until(() => instance.log.includes('a bug'), 'it tells what happened');
        assert.equal(instance.running, true);
        gate.resolve();
        for (const [i, reply] of running.entries()) {
          assert.equal(brokenness(clientDialects[i] ?? 'chat', await reply), undefined);
        }
        await until(() => !instance.running, 'it has ended');
        assert.equal(await instance.stop(), 1);
        assert.equal(
          rows(database).filter((row) => row.endsWith(' ok')).length,
          clientDialects.length,
        );
      },
    );
  }
});
