/** What only a store on disk has: files, damage, other processes, sudden death. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, it } from 'node:test';
import { keysAndCalls } from '../../../src/store/migrations/0001-keys-and-calls.ts';
import { strictKeys } from '../../../src/store/migrations/0002-strict-keys.ts';
import { keptCall, readKeptCall } from '../../../src/store/kept-call.ts';
import { callValues } from '../../../src/store/sqlite-call-rows.ts';
import { SqliteBook } from '../../../src/store/sqlite-book.ts';
import { openForReading, openForWriting } from '../../../src/store/sqlite-file.ts';
import { openSqliteStore } from '../../../src/store/sqlite.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import type { Store } from '../../../src/store/store.ts';
import { silentLog } from '../access/parts.ts';
import { callRow, keyRecord, march } from './call-rows.ts';

const folder = mkdtempSync(join(tmpdir(), 'gateway-sqlite-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;

function freshPath(): string {
  count += 1;
  return join(folder, `data-${count}`, 'gateway.db');
}

function open(path: string): Promise<Store> {
  return openSqliteStore({ path, log: silentLog });
}

async function filled(path: string): Promise<void> {
  const store = await open(path);
  await store.addKey(keyRecord('a'));
  await store.recordCalls(Array.from({ length: 200 }, (_, i) => callRow(`c${i}`)));
  await store.close();
}

it('keeps everything across a restart', async () => {
  const path = freshPath();
  await filled(path);
  const store = await open(path);
  assert.deepEqual(await store.listKeys(), [keyRecord('a')]);
  assert.equal((await store.listCalls({ limit: 1000 })).calls.length, 200);
  await store.close();
});

it('S25 makes its files 0600 in a 0700 directory, and closes those that are open', async () => {
  const path = freshPath();
  mkdirSync(dirname(path), { mode: 0o755 });
  chmodSync(dirname(path), 0o755);
  const store = await open(path);
  await store.addKey(keyRecord('a'));
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700);
  const names = readdirSync(dirname(path)).sort();
  assert.deepEqual(names, ['gateway.db', 'gateway.db-shm', 'gateway.db-wal']);
  for (const name of names) {
    assert.equal(statSync(join(dirname(path), name)).mode & 0o777, 0o600, name);
  }
  await store.close();
  chmodSync(path, 0o644);
  await (await open(path)).close();
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

it('S25 refuses a directory that all users share', async () => {
  const shared = join(folder, 'shared');
  mkdirSync(shared);
  chmodSync(shared, 0o1777);
  await assert.rejects(open(join(shared, 'gateway.db')), /shared by all users/);
  assert.deepEqual(readdirSync(shared), []);
});

const damages: { readonly [name: string]: (path: string) => void } = {
  'other bytes': (path) => writeFileSync(path, 'this is no database. '.repeat(500)),
  'an empty file': (path) => truncateSync(path, 0),
  'a cut file': (path) => truncateSync(path, 8192),
  'zeros in the middle': (path) => {
    const bytes = readFileSync(path);
    bytes.fill(0, 4096, bytes.length - 4096);
    writeFileSync(path, bytes);
  },
  'a foreign database': (path) => {
    rmSync(path);
    const db = new DatabaseSync(path);
    db.exec('CREATE TABLE notes (text TEXT)');
    db.close();
  },
  'a log without its database': (path) => {
    renameSync(path, `${path}-wal`);
  },
};

for (const [name, damage] of Object.entries(damages)) {
  it(`F86 refuses ${name}, names the file and the way out, changes nothing`, async () => {
    const path = freshPath();
    await filled(path);
    damage(path);
    const before = readdirSync(dirname(path)).map((file) =>
      readFileSync(join(dirname(path), file)),
    );
    await assert.rejects(open(path), (error: Error) => {
      assert.match(error.message, /restore it from a backup/);
      assert.ok(error.message.includes(path));
      assert.ok('kind' in error && error.kind === 'corrupt');
      return true;
    });
    const later = readdirSync(dirname(path)).map((file) => readFileSync(join(dirname(path), file)));
    assert.deepEqual(later, before);
  });
}

it('N2 keys of an older schema stay, and are not strict', async () => {
  const path = freshPath();
  mkdirSync(dirname(path), { recursive: true });
  const db = new DatabaseSync(path);
  db.exec(`${keysAndCalls} PRAGMA application_id = 0x4d475759; PRAGMA user_version = 1;
    INSERT INTO keys (id, name, digest, models, endpoints, created_at)
    VALUES ('a', 'key a', '${'a'.padEnd(64, '0')}', '["*"]', '["chat","messages"]', ${march});`);
  db.close();
  const store = await open(path);
  assert.deepEqual(await store.listKeys(), [keyRecord('a')]);
  const strict = keyRecord('b', { strict: true, createdAt: march + 1 });
  await store.addKey(strict);
  assert.deepEqual((await store.listKeys())[1], strict);
  await store.close();
});

it('N2 calls of an older schema are summed; their cost is unknown', async () => {
  const path = freshPath();
  mkdirSync(dirname(path), { recursive: true });
  const db = new DatabaseSync(path);
  const values = `'k1', 'openai-chat', 'ok', 1, 0, 'reported', 1.5`;
  const insert = `INSERT INTO calls (id, started_at, key_id, endpoint, outcome, attempts, stream,
    usage_source, total_ms, model, error, charged_fresh_input_tokens, charged_output_tokens) VALUES`;
  db.exec(`${keysAndCalls} ${strictKeys} PRAGMA application_id = 0x4d475759; PRAGMA user_version = 2;
    ${insert} ('c1', ${march}, ${values}, 'm', NULL, 7, 2);
    ${insert} ('c2', ${march + 86_400_000}, ${values}, 'm', NULL, NULL, NULL);
    ${insert} ('c3', ${march}, ${values}, 'x', 'model_not_found', NULL, NULL);`);
  db.close();
  const store = await open(path);
  // From the sums by day, by hour, and from the rows themselves.
  for (const until of [march + 2 * 86_400_000, march + 3_600_000, march + 5]) {
    const [none, found] = await store.usage({ by: 'model', since: march, until });
    assert.deepEqual([none?.group, none?.calls, none?.unpricedCalls], ['', 1, 0]);
    const calls = until > march + 86_400_000 ? 2 : 1;
    assert.deepEqual(
      [found?.group, found?.calls, found?.inputTokens, found?.outputTokens],
      ['m', calls, 7, 2],
    );
    assert.deepEqual([found?.pricedCalls, found?.unpricedCalls, found?.nanodollars], [0, 1, 0]);
  }
  assert.equal((await store.findCall('c1'))?.cost, undefined);
  assert.equal((await store.listCalls({ limit: 5 })).calls.length, 3);
  await store.close();
});

it('N2 a call that an older version kept is read by its columns', () => {
  const row = callRow('c1', {
    outcome: 'failed',
    attempts: 1,
    attemptRows: [
      {
        provider: 'p',
        upstreamModel: 'm',
        startedAt: march,
        ms: 2,
        outcome: 'failed',
        reported: { freshInputTokens: 3, reasoningTokens: 1 },
      },
    ],
    charged: { freshInputTokens: 3, outputTokens: 4 },
    notes: 'n',
  });
  assert.deepEqual(readKeptCall(keptCall(row)), row);
  // Values of the columns that there were then, in their order.
  const reported = [3, null, null, null, null, 1];
  const older = [
    ['c1', march, row.keyId, null, null, null, null, row.endpoint, row.model, null, null, null],
    [0, 'failed', null, null, 1, ...Array(6).fill(null), 3, null, null, null, 4, null],
    ['reported', ...Array(7).fill(null), null, null, null, null, null, row.totalMs, 'n'],
    ['p', 'm', march, 2, null, 'failed', null, null, null, ...reported],
  ].flat();
  assert.deepEqual(readKeptCall(JSON.stringify(older)), row);
  assert.throws(() => readKeptCall(JSON.stringify({ call: older.slice(0, 9) })), StoreError);
  assert.throws(() => readKeptCall('{}'), StoreError);
});

it('S24 the database refuses to change, remove and insert amid the audit log', async () => {
  const path = freshPath();
  const store = await open(path);
  const entry = { at: march, actor: 'admin', action: 'key.create', subject: 'key:a' };
  await store.appendAudit(entry);
  await store.appendAudit(entry);
  const db = new DatabaseSync(path);
  for (const sql of [
    `UPDATE audit SET actor = 'nobody' WHERE seq = 1`,
    'DELETE FROM audit',
    `INSERT INTO audit VALUES (4, 1, 'a', NULL, 'b', 'c', NULL, NULL, 'd')`,
    `INSERT OR REPLACE INTO audit VALUES (1, 1, 'a', NULL, 'b', 'c', NULL, NULL, 'd')`,
  ]) {
    assert.throws(() => db.exec(sql), /append-only/, sql);
  }
  db.close();
  assert.equal((await store.listAudit({ limit: 5 })).length, 2);
  await store.close();
});

it('F83 durability: full waits for the disk at each commit', () => {
  const path = freshPath();
  mkdirSync(dirname(path));
  for (const [durability, synchronous] of [
    ['normal', 1],
    ['full', 2],
  ] as const) {
    const db = openForWriting({ path, mayCreate: true, durability });
    assert.equal(db.prepare('PRAGMA synchronous').get()?.['synchronous'], synchronous);
    db.close();
  }
});

it('F86 damage within a file shows when all of it is read', async () => {
  const path = freshPath();
  await filled(path);
  const bytes = readFileSync(path);
  bytes.fill(0x55, 12_288, bytes.length - 4096);
  writeFileSync(path, bytes);
  const book = new SqliteBook({ db: openForReading(path), path, now: () => 0 });
  assert.throws(
    () => {
      try {
        book.check();
      } catch (error) {
        throw book.failure(error);
      }
    },
    { kind: 'corrupt' },
  );
  book.close();
});

it('L5 a page is looked for in a bounded number of calls, and goes on from there', () => {
  const path = freshPath();
  mkdirSync(dirname(path));
  const db = openForWriting({ path, mayCreate: true, durability: 'normal' });
  const book = new SqliteBook({ db, path, now: () => 0 });
  const rows = Array.from({ length: 60_000 }, (_, i) =>
    callValues(callRow(`c${i}`, { startedAt: march + i, outcome: i === 3 ? 'failed' : 'ok' })),
  );
  book.recordCalls(rows);
  const first = book.listCalls({ limit: 5, outcome: 'failed' });
  assert.deepEqual(first.calls, []);
  assert.deepEqual(first.next, { startedAt: march + 9999, id: '' });
  const second = book.listCalls({ limit: 5, outcome: 'failed', before: first.next });
  assert.deepEqual(
    second.calls.map(({ id }) => id),
    ['c3'],
  );
  assert.equal(second.next, undefined);
  book.close();
});

it('L3 tags that clients make up do not make sums for ever', () => {
  const path = freshPath();
  mkdirSync(dirname(path));
  const db = openForWriting({ path, mayCreate: true, durability: 'normal' });
  const book = new SqliteBook({ db, path, now: () => 0 });
  const rows = Array.from({ length: 10_500 }, (_, i) =>
    callValues(callRow(`c${i}`, { startedAt: march + i, tags: [`request-${i}`] })),
  );
  book.recordCalls(rows);
  book.recordCalls([callValues(callRow('k2', { keyId: 'k2', tags: ['prod'] }))]);
  const groups = db.prepare('SELECT count(*) AS n FROM usage_groups').get()?.['n'];
  assert.equal(groups, 10_002);
  const tags = book.usage({ by: 'tag', since: march });
  assert.equal(tags.find(({ group }) => group === '(others)')?.calls, 500);
  assert.equal(tags.find(({ group }) => group === 'prod')?.calls, 1);
  assert.equal(book.usage({ by: 'day', since: march })[0]?.calls, 10_501);
  book.close();
});

it('N2 refuses a schema that is newer than the program', async () => {
  const path = freshPath();
  await filled(path);
  const db = new DatabaseSync(path);
  db.exec('PRAGMA user_version = 99');
  db.close();
  await assert.rejects(open(path), (error: Error) => {
    assert.match(error.message, /schema 99, written by a newer version/);
    return 'kind' in error && error.kind === 'newer_schema';
  });
});

it('begins again after a first start that died before its database was complete', async () => {
  const path = freshPath();
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, 'half');
  await filled(path);
  assert.deepEqual(readdirSync(dirname(path)), ['gateway.db']);
});

it('F84 waits for another process that holds the database, and loses nothing', async () => {
  const path = freshPath();
  const store = await open(path);
  const other = new DatabaseSync(path);
  other.exec('BEGIN IMMEDIATE');
  const written = store.recordCalls([callRow('c1')]);
  other.exec('COMMIT');
  other.close();
  await written;
  assert.equal((await store.listCalls({ limit: 5 })).calls.length, 1);
  await store.close();
});

it('F87 stops writing into a file that was removed', async () => {
  const path = freshPath();
  await filled(path);
  let now = 0;
  const book = new SqliteBook({
    db: openForWriting({ path, mayCreate: false, durability: 'normal' }),
    path,
    now: () => now,
  });
  book.recordCalls([callValues(callRow('before'))]);
  rmSync(path);
  now = 20_000;
  assert.throws(() => book.recordCalls([callValues(callRow('after'))]), { kind: 'gone' });
  assert.throws(() => book.addKey(keyRecord('x')), { kind: 'gone' });
  book.close();
  assert.throws(() => openForWriting({ path, mayCreate: false, durability: 'normal' }), {
    name: 'StoreError',
  });
});

it('F81 a running call that cannot be recorded is laid aside, and holds up no other', async () => {
  const path = freshPath();
  const store = await open(path);
  const ids = ['c1', 'c2', 'c3'];
  await store.openCalls(ids.map((id) => ({ row: callRow(id), seenAt: march })));
  await store.close();
  const db = new DatabaseSync(path);
  db.exec(`UPDATE open_calls SET call = '["half' WHERE id = 'c1'`);
  db.exec(`UPDATE open_calls SET call = replace(call, '12.5', '"long"') WHERE id = 'c3'`);
  db.close();
  const told: string[] = [];
  const log = { ...silentLog, error: (event: string) => void told.push(event) };
  const again = await openSqliteStore({ path, log });
  const settled = await again.settleOrphans(Infinity);
  assert.deepEqual(
    settled.map(({ id }) => id),
    ['c2'],
  );
  assert.deepEqual(told, ['orphan_refused', 'orphan_refused']);
  const aside = readFileSync(join(dirname(path), 'orphans.unread'), 'utf8');
  assert.match(aside, /"id":"c1".*half.*\n.*"id":"c3"/);
  assert.equal(statSync(join(dirname(path), 'orphans.unread')).mode & 0o077, 0);
  assert.deepEqual(await again.settleOrphans(Infinity), []);
  assert.deepEqual(told.length, 2, 'it is told once');
  await again.close();
});
