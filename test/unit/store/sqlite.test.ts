/** What only a store on disk has: files, damage, other processes, sudden death. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it } from 'node:test';
import { callText, readCallText } from '../../../src/store/call-rows.ts';
import { callValues } from '../../../src/store/call-rows.ts';
import { SqliteEngine } from '../../../src/store/sqlite/engine.ts';
import { openForReading, openForWriting } from '../../../src/store/sqlite/database.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import type { Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { silentLog } from '../access/fakes.ts';
import { callRow, keyRecord, march } from './call-rows.ts';

const folder = temporaryFolder('sqlite');
let count = 0;

function freshPath(): string {
  count += 1;
  return join(folder, `data-${count}`, 'gateway.db');
}

function quickCheck(path: string): unknown {
  const db = new DatabaseSync(path);
  try {
    return db.prepare('PRAGMA quick_check').get()?.['quick_check'];
  } finally {
    db.close();
  }
}

function open(path: string): Promise<Store> {
  return openSqliteStore({ path, log: silentLog });
}

async function filled(path: string): Promise<void> {
  const store = await open(path);
  await store.keys.add(keyRecord('a'));
  await store.calls.record(Array.from({ length: 200 }, (_, i) => callRow(`c${i}`)));
  await store.close();
}

it('keeps everything across a restart', async () => {
  const path = freshPath();
  await filled(path);
  const store = await open(path);
  assert.deepEqual(await store.keys.list(), [keyRecord('a')]);
  assert.equal((await store.calls.list({ limit: 1000 })).calls.length, 200);
  await store.close();
});

it('S25 makes its files 0600 in a 0700 directory, and closes those that are open', async () => {
  const path = freshPath();
  mkdirSync(dirname(path), { mode: 0o755 });
  chmodSync(dirname(path), 0o755);
  const store = await open(path);
  await store.keys.add(keyRecord('a'));
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

it('N2 a call that is kept as text is read back, and none of another version', () => {
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
  const text = callText(row);
  assert.deepEqual(readCallText(text), row);
  const unreadable = [
    text.replace(/"schema":\d+/, '"schema":19'),
    text.replace(/,"n"/, ',"n",null'),
    text.slice(0, text.indexOf('"openai-chat"')),
    text.replace('"openai-chat"', 'true'),
    '[]',
    '{}',
  ];
  for (const wrong of unreadable) assert.throws(() => readCallText(wrong), StoreError, wrong);
});

it('S24 the database refuses to change, remove and insert amid the audit log', async () => {
  const path = freshPath();
  const store = await open(path);
  const entry = { at: march, actor: 'admin', action: 'key.create', subject: 'key:a' };
  await store.audit.append(entry);
  await store.audit.append(entry);
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
  assert.equal((await store.audit.list({ limit: 5 })).length, 2);
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
  const engine = new SqliteEngine({ db: openForReading(path), path, now: () => 0, wall: Date.now });
  assert.throws(() => engine.call('engine', 'check', []), { kind: 'corrupt' });
  engine.close();
});

it('L5 a page is looked for in a bounded number of calls, and continues from there', () => {
  const path = freshPath();
  mkdirSync(dirname(path));
  const db = openForWriting({ path, mayCreate: true, durability: 'normal' });
  const engine = new SqliteEngine({ db, path, now: () => 0, wall: Date.now });
  const rows = Array.from({ length: 60_000 }, (_, i) =>
    callValues(callRow(`c${i}`, { startedAt: march + i, outcome: i === 3 ? 'failed' : 'ok' })),
  );
  engine.calls.record(rows);
  const first = engine.calls.list({ limit: 5, outcome: 'failed' });
  assert.deepEqual(first.calls, []);
  assert.deepEqual(first.next, { startedAt: march + 9999, id: '' });
  const second = engine.calls.list({ limit: 5, outcome: 'failed', before: first.next });
  assert.deepEqual(
    second.calls.map(({ id }) => id),
    ['c3'],
  );
  assert.equal(second.next, undefined);
  engine.close();
});

it('L3 tags that clients make up do not make sums for ever', () => {
  const path = freshPath();
  mkdirSync(dirname(path));
  const db = openForWriting({ path, mayCreate: true, durability: 'normal' });
  const engine = new SqliteEngine({ db, path, now: () => 0, wall: Date.now });
  const rows = Array.from({ length: 10_500 }, (_, i) =>
    callValues(callRow(`c${i}`, { startedAt: march + i, tags: [`request-${i}`] })),
  );
  engine.calls.record(rows);
  engine.calls.record([callValues(callRow('k2', { keyId: 'k2', tags: ['prod'] }))]);
  const groups = db.prepare('SELECT count(*) AS n FROM usage_groups').get()?.['n'];
  assert.equal(groups, 10_002);
  const tags = engine.calls.usage({ by: 'tag', since: march });
  assert.equal(tags.find(({ group }) => group === '(others)')?.calls, 500);
  assert.equal(tags.find(({ group }) => group === 'prod')?.calls, 1);
  assert.equal(engine.calls.usage({ by: 'day', since: march })[0]?.calls, 10_501);
  engine.close();
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

it('N2 refuses a database of a development version, leaves it as it is, and reports what to do', async () => {
  const path = freshPath();
  await filled(path);
  const db = new DatabaseSync(path);
  db.exec('PRAGMA user_version = 10');
  db.close();
  const before = readFileSync(path);
  await assert.rejects(open(path), (error: Error) => {
    assert.match(error.message, /has schema 10, .* move it away/);
    return 'kind' in error && error.kind === 'older_schema';
  });
  assert.deepEqual(readFileSync(path), before);
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
  const written = store.calls.record([callRow('c1')]);
  other.exec('COMMIT');
  other.close();
  await written;
  assert.equal((await store.calls.list({ limit: 5 })).calls.length, 1);
  await store.close();
});

it('F87 nothing is written to a file that was removed or replaced; once it is back, writes continue', async () => {
  const path = freshPath();
  await filled(path);
  const engine = new SqliteEngine({
    db: openForWriting({ path, mayCreate: false, durability: 'normal' }),
    path,
    now: () => 0,
    wall: Date.now,
  });
  const record = (id: string): void => engine.calls.record([callValues(callRow(id))]);
  record('before');
  renameSync(path, `${path}.away`);
  assert.throws(() => record('removed'), { kind: 'gone' });
  writeFileSync(path, 'another file');
  assert.throws(() => record('replaced'), { kind: 'gone' });
  renameSync(`${path}.away`, path);
  record('back');
  assert.equal(engine.calls.find('removed'), undefined);
  assert.equal(engine.calls.find('replaced'), undefined);
  assert.equal(engine.calls.find('back')?.id, 'back');
  rmSync(path);
  assert.throws(() => record('after'), { kind: 'gone' });
  assert.throws(() => engine.keys.add(keyRecord('x')), { kind: 'gone' });
  engine.close();
  assert.throws(() => openForWriting({ path, mayCreate: false, durability: 'normal' }), {
    name: 'StoreError',
  });
});

it('F87 a backup that replaces the file of a running store is whole after its end', async () => {
  const path = freshPath();
  await filled(path);
  const store = await open(path);
  await store.calls.record([callRow('backed up')]);
  const backup = `${path}.backup`;
  await store.backup(backup);
  const later = Array.from({ length: 300 }, (_, i) => callRow(`later${i}`));
  await store.calls.record(later);
  renameSync(path, `${path}.away`);
  renameSync(backup, path);
  await store.close();
  const restored = await open(path);
  assert.equal(quickCheck(path), 'ok');
  assert.equal((await restored.calls.list({ limit: 1000 })).calls.length, 201);
  await restored.close();
  const old = await open(`${path}.away`);
  assert.equal((await old.calls.list({ limit: 1000 })).calls.length, 501);
  await old.close();
});

it('G17 E17 the claim of an Idempotency-Key lasts as long as its lease, whatever the wall clock does', async () => {
  const path = freshPath();
  await filled(path);
  const clock = { monotonic: 5_000, wall: march };
  const engine = new SqliteEngine({
    db: openForWriting({ path, mayCreate: false, durability: 'normal' }),
    path,
    now: () => clock.monotonic,
    wall: () => clock.wall,
  });
  const { answers } = engine;
  const leaseMs = 30_000;
  const by = (owner: string) =>
    answers.claim({ id: 'id', keyId: 'k', owner, fingerprint: 'f', leaseMs }).state;
  const day = 86_400_000;
  assert.equal(by('one'), 'mine');
  for (const jump of [day, -day, -30 * day, 30 * day]) {
    clock.wall += jump;
    assert.equal(by('another worker'), 'running', `after a jump by ${jump / day} days`);
    answers.sweep(100, Number.MAX_SAFE_INTEGER);
  }
  clock.wall -= day;
  clock.monotonic += leaseMs - 1;
  assert.equal(by('another worker'), 'running');
  clock.monotonic += 1;
  assert.equal(by('another worker'), 'mine');
  const answer = Buffer.from('sealed');
  const most = { keepMs: day, maxBytes: 100, maxAnswers: 10 };
  assert.ok(answers.keep({ id: 'id', owner: 'another worker', answer, ...most }));
  clock.wall += day - 1;
  assert.equal(by('one'), 'done');
  clock.wall += 1;
  assert.equal(answers.sweep(100, Number.MAX_SAFE_INTEGER), 1);
  assert.equal(by('one'), 'mine');
  engine.close();
});

it('F87 a store whose folder was removed ends without an error', async () => {
  const path = freshPath();
  await filled(path);
  const store = await open(path);
  await store.calls.record([callRow('last')]);
  rmSync(dirname(path), { recursive: true });
  await store.close();
});

it('F87 a store whose file was replaced ends although its log cannot be folded in', async (t) => {
  const path = freshPath();
  await filled(path);
  const db = openForWriting({ path, mayCreate: false, durability: 'normal' });
  const engine = new SqliteEngine({ db, path, now: () => 0, wall: () => march });
  renameSync(path, `${path}.away`);
  writeFileSync(path, '');
  const exec = t.mock.method(db, 'exec', () => {
    throw new Error('disk I/O error');
  });
  engine.close();
  assert.equal(exec.mock.callCount(), 1);
  assert.equal(db.isOpen, false);
});

it('F81 a running call that cannot be recorded is laid aside, and holds up no other', async () => {
  const path = freshPath();
  const store = await open(path);
  const ids = ['c1', 'c2', 'c3'];
  await store.calls.open(ids.map((id) => ({ row: callRow(id), seenAt: march })));
  await store.close();
  const db = new DatabaseSync(path);
  db.exec(`UPDATE open_calls SET call = '["half' WHERE id = 'c1'`);
  db.exec(`UPDATE open_calls SET call = replace(call, '12.5', '"long"') WHERE id = 'c3'`);
  db.close();
  const told: string[] = [];
  const log = { ...silentLog, error: (event: string) => void told.push(event) };
  const again = await openSqliteStore({ path, log });
  const settled = await again.calls.settleOrphans(Infinity);
  assert.deepEqual(
    settled.map(({ id }) => id),
    ['c2'],
  );
  assert.deepEqual(told, ['orphan_refused', 'orphan_refused']);
  const aside = readFileSync(join(dirname(path), 'orphans.unread'), 'utf8');
  assert.match(aside, /"id":"c1".*half.*\n.*"id":"c3"/);
  assert.equal(statSync(join(dirname(path), 'orphans.unread')).mode & 0o077, 0);
  assert.deepEqual(await again.calls.settleOrphans(Infinity), []);
  assert.deepEqual(told.length, 2, 'it is told once');
  await again.close();
});
