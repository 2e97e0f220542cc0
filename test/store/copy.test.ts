/** `copy`: a store that a real gateway filled, from SQLite to PostgreSQL and back, equal in every column. */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { Client } from 'pg';
import { copyCommand, copyStores } from '../../src/compose/commands/copy-stores.ts';
import { findGateway } from '../../src/compose/commands/find-gateway.ts';
import { startGateway } from '../../src/main.ts';
import { copyStore } from '../../src/store/copy/copy-store.ts';
import { PostgresSide } from '../../src/store/copy/postgres-side.ts';
import type { CopyTarget } from '../../src/store/copy/side.ts';
import { SqliteSide } from '../../src/store/copy/sqlite-side.ts';
import { orderedTables } from '../../src/store/copy/tables.ts';
import { temporaryFolder } from '../support/folders.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { postgresAddress, type TestPostgres } from '../support/postgres.ts';
import { withPostgres } from '../support/with-servers.ts';
import { run } from '../unit/cli-config/context.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

const env = { MODEL_GATEWAY_KEY: clientKey, MODEL_GATEWAY_ADMIN_TOKEN: adminToken };

interface Started {
  readonly url: string;
  ask(method: string, path: string, body?: object): Promise<unknown>;
  stop(): Promise<void>;
}

async function start(t: TestContext, cwd: string, storage: string): Promise<Started> {
  const all = { ...env, MODEL_GATEWAY_STORAGE: storage };
  const gateway = await startGateway({
    flags: { listen: '127.0.0.1:0', 'admin-listen': '127.0.0.1:0', 'log-level': 'silent' },
    env: all,
    cwd,
  });
  t.after(() => gateway.stop());
  const { client } = await findGateway(all, cwd);
  return {
    url: gateway.url,
    ask: async (method, path, body) => {
      const { status, body: answer } = await client.request(method, path, body as never);
      assert.ok(status < 300, `${path}: ${status} ${JSON.stringify(answer)}`);
      return answer;
    },
    stop: () => gateway.stop(),
  };
}

/** A folder with a store that has keys, calls, prices, tags, sealed answers and responses. */
async function filled(t: TestContext): Promise<string> {
  const upstream = await ScriptedUpstream.start();
  t.after(() => upstream.close());
  upstream.script('m', ...Array.from({ length: 6 }, () => chatAnswer({ text: 'Hello.' }, false)));
  const cwd = temporaryFolder('copy');
  writeFileSync(
    join(cwd, 'gateway.yaml'),
    `providers: { up: { dialect: openai-chat, base_url: "http://127.0.0.1:${upstream.port}/v1" } }
prices: { up/m: { input: 1, output: 2 } }
`,
  );
  const gateway = await start(t, cwd, 'sqlite');
  await gateway.ask('POST', '/api/keys', {
    name: 'ana',
    models: ['*'],
    tags: ['t'],
    budget: 20,
    per: 'month',
  });
  for (let i = 0; i < 4; i++) {
    const isResponse = i > 1;
    const response = await fetch(
      `${gateway.url}/v1/${isResponse ? 'responses' : 'chat/completions'}`,
      {
        method: 'POST',
        headers: {
          authorization: `Bearer ${clientKey}`,
          'content-type': 'application/json',
          'idempotency-key': `k${i}`,
        },
        body: JSON.stringify({
          model: 'up/m',
          ...(isResponse ? { input: 'Hi' } : { messages: [{ role: 'user', content: 'Hi' }] }),
        }),
      },
    );
    assert.equal(response.status, 200, await response.text());
  }
  await gateway.stop();
  return cwd;
}

/** The rows alone: the span begins at another moment. */
async function usageOf(gateway: Started): Promise<unknown> {
  const answer = await gateway.ask('GET', '/api/usage?by=key');
  assert.ok(typeof answer === 'object' && answer !== null && 'rows' in answer);
  return answer.rows;
}

await withPostgres((postgres: TestPostgres) => {
  test('copy moves a store to PostgreSQL and back, equal in every count and sum', async (t) => {
    const cwd = await filled(t);
    const url = await postgres.makeDatabase();
    const from = join(cwd, '.model-gateway');
    const there = await copyStores({ from, to: url, cwd });
    const rows = new Map(there.tables.map(({ name, rows: count }) => [name, count]));
    assert.equal(rows.get('calls'), 4);
    assert.equal(rows.get('attempts'), 4);
    assert.equal(rows.get('prices'), 1);
    for (const name of [
      'keys',
      'audit',
      'usage_groups',
      'usage_hours',
      'total_hours',
      'total_days',
      'kept_answers',
      'kept_responses',
    ]) {
      assert.ok((rows.get(name) ?? 0) > 0, name);
    }
    assert.ok(!there.to.includes('canary'));

    // The copy is a store that a gateway runs on: same key, sealed answers, sums.
    const moved = await start(t, cwd, url);
    const repeated = await fetch(`${moved.url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${clientKey}`,
        'content-type': 'application/json',
        'idempotency-key': 'k0',
      },
      body: JSON.stringify({ model: 'up/m', messages: [{ role: 'user', content: 'Hi' }] }),
    });
    assert.equal(repeated.headers.get('idempotent-replayed'), 'true', await repeated.text());
    const usage = await usageOf(moved);
    await assert.rejects(
      copyStores({ from: url, to: 'back', cwd }),
      /A gateway uses .*Stop every gateway/,
    );
    await moved.stop();

    const back = await copyStores({ from: url, to: 'back', cwd });
    const backRows = new Map(back.tables.map(({ name, rows: count }) => [name, count]));
    assert.ok((backRows.get('calls') ?? 0) >= 4);
    assert.ok(existsSync(join(cwd, 'back', 'gateway.db')));
    renameSync(join(cwd, '.model-gateway'), join(cwd, 'first'));
    renameSync(join(cwd, 'back'), join(cwd, '.model-gateway'));
    const again = await start(t, cwd, 'sqlite');
    assert.deepEqual(await usageOf(again), usage);
    await again.stop();
  });

  test('a copy that was cut continues; until its end no gateway starts on it; other data is refused', async (t) => {
    const cwd = await filled(t);
    const from = join(cwd, '.model-gateway');
    const url = await postgres.makeDatabase();
    const source = SqliteSide.source(from);
    const target = await PostgresSide.target(postgresAddress(url));
    const cut = {
      from: source,
      to: target,
      onTable: (name: string) => {
        if (name === 'attempts') throw new Error('cut');
      },
    };
    await assert.rejects(copyStore(cut), /cut/);
    await source.close();
    await target.close();
    await assert.rejects(
      start(t, cwd, url),
      /holds a copy that has not ended\. Run "model-gateway copy" again/,
    );

    const other = await filled(t);
    await assert.rejects(
      copyStores({ from: join(other, '.model-gateway'), to: url, cwd }),
      /unfinished copy of another store/,
    );
    const { tables } = await copyStores({ from, to: url, cwd });
    assert.equal(tables.find(({ name }) => name === 'calls')?.rows, 4);
    await assert.rejects(copyStores({ from, to: url, cwd }), /has data already/);
    await assert.rejects(copyStores({ from, to: from, cwd }), /are the same store/);
  });

  test('sums beyond 2^53 nanodollars are copied as they are, to PostgreSQL and back', async (t) => {
    const cwd = await filled(t);
    const from = join(cwd, '.model-gateway');
    const cost = 3n * BigInt(Number.MAX_SAFE_INTEGER) + 2n;
    const tables = ['usage_hours', 'usage_days', 'total_hours', 'total_days', 'spending'];
    const source = new DatabaseSync(join(from, 'gateway.db'));
    source.exec("INSERT INTO spending (counter, period, nanodollars) VALUES ('key:x', 'ever', 1)");
    for (const table of tables) {
      source.prepare(`UPDATE ${table} SET nanodollars = ?`).run(cost);
      if (table !== 'spending') source.prepare(`UPDATE ${table} SET cache_saved = ?`).run(-cost);
    }
    source.close();
    const url = await postgres.makeDatabase();
    await copyStores({ from, to: url, cwd });
    await copyStores({ from: url, to: 'back', cwd });
    const back = new DatabaseSync(join(cwd, 'back', 'gateway.db'), { readOnly: true });
    t.after(() => back.close());
    for (const table of tables) {
      const read = back.prepare(`SELECT DISTINCT nanodollars AS n FROM ${table}`);
      read.setReadBigInts(true);
      assert.deepEqual(
        read.all().map((row) => row['n']),
        [cost],
        table,
      );
    }
  });

  test('what a killed gateway had leased is booked before a copy, which says how; a lease of nothing is no reason to wait', async (t) => {
    const cwd = await filled(t);
    const url = await postgres.makeDatabase();
    await copyStores({ from: join(cwd, '.model-gateway'), to: url, cwd });
    await postgres.query(
      `INSERT INTO budget_leases VALUES ('key:x:ever', 'ever', 'dead', NULL, 5, 0, 0, 5, false)`,
      url,
    );
    await assert.rejects(
      copyStores({ from: url, to: 'back', cwd }),
      /a killed gateway had leased.*Let one gateway run for eleven minutes.*then stop it with SIGTERM/,
    );
    await postgres.query('UPDATE budget_leases SET amount = 0', url);
    const back = await copyStores({ from: url, to: 'back', cwd });
    assert.equal(back.tables.find(({ name }) => name === 'calls')?.rows, 4);
  });

  test('a difference is found: a copy with another cost is no copy', async (t) => {
    const cwd = await filled(t);
    const from = join(cwd, '.model-gateway');
    const url = await postgres.makeDatabase();
    const client = new Client({ connectionString: url });
    await client.connect();
    t.after(() => client.end());
    const source = SqliteSide.source(from);
    const target = await PostgresSide.target(postgresAddress(url));
    t.after(() => Promise.all([source.close(), target.close()]));
    // Between the last row and the comparison.
    const changing: CopyTarget = {
      shown: target.shown,
      origin: target.origin,
      tables: () => target.tables(),
      rows: (...of) => target.rows(...of),
      progress: () => target.progress(),
      begin: (origin) => target.begin(origin),
      write: (...of) => target.write(...of),
      finish: () => target.finish(),
      close: () => target.close(),
      sums: async (table) => {
        if (table.name === 'calls') await client.query('UPDATE calls SET cost = cost + 1');
        return target.sums(table);
      },
    };
    await assert.rejects(
      copyStore({ from: source, to: changing }),
      /The copy of calls is not equal: cost low is/,
    );
    await source.close();
    await target.close();
  });
});

test('copy refuses a directory in use and one without a store, and says what it wants', async (t) => {
  const cwd = temporaryFolder('copy');
  const gateway = await startGateway({
    flags: { listen: '127.0.0.1:0', 'admin-listen': '127.0.0.1:0', 'log-level': 'silent' },
    env,
    cwd,
  });
  await assert.rejects(
    copyStores({ from: '.model-gateway', to: 'other', cwd }),
    /Another gateway \(pid \d+\) runs on \S+\. Stop it, or choose another data directory\.$/,
  );
  await gateway.stop();
  await assert.rejects(copyStores({ from: 'nothing', to: 'other', cwd }), /has no gateway\.db/);
  await assert.rejects(
    copyStores({ from: '.model-gateway', to: `${cwd}/.model-gateway/`, cwd }),
    /FROM and TO are the same store/,
  );
  mkdirSync(join(cwd, 'foreign'));
  const path = join(cwd, 'foreign', 'gateway.db');
  writeFileSync(path, 'x'.repeat(5000));
  const copyForeign = () => copyStores({ from: 'foreign', to: 'other', cwd });
  await assert.rejects(copyForeign, /gateway\.db is damaged or not a gateway database/);
  copyFileSync(join(cwd, '.model-gateway', 'gateway.db'), path);
  const old = new DatabaseSync(path);
  old.exec('PRAGMA user_version = 29');
  old.close();
  await assert.rejects(copyForeign, /has schema 29, of a development version/);
  const { code, err } = await run(copyCommand(cwd), ['${AWAY}', 'x']);
  assert.equal(code, 2);
  assert.match(err, /The environment variable AWAY is not set/);
  const copied = await run(copyCommand(cwd), ['.model-gateway', 'other']);
  assert.equal(copied.code, 0, copied.err);
  assert.match(copied.out, /settings +1 +\d+ counts and sums equal/);
  const db = new DatabaseSync(join(cwd, 'other', 'gateway.db'), { readOnly: true });
  t.after(() => db.close());
  assert.equal(db.prepare('SELECT count(*) AS n FROM settings').get()?.['n'], 1);
});

test('S21 a table with a name that no gateway makes is refused before it stands in SQL', () => {
  const keys = { name: 'keys', columns: ['id'], key: ['id'] };
  assert.deepEqual(orderedTables([keys]), [keys]);
  for (const odd of ['keys; DROP TABLE keys', 'Notes', 'a"b', '']) {
    const foreign = [
      { name: odd, columns: ['id'], key: ['id'] },
      { name: 'notes', columns: [odd], key: [] },
    ];
    for (const table of foreign)
      assert.throws(() => orderedTables([keys, table]), /not the gateway's/);
  }
});
