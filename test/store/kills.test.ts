/** Real processes that write, and die or find the disk full in the middle of it. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { temporaryFolder } from '../support/folders.ts';
import { silentLog } from '../unit/access/fakes.ts';

const folder = temporaryFolder('kills');

const rounds = Number(process.env['STORE_KILL_ROUNDS'] ?? '10');

/** Lets a process write until it acknowledged some batches, and kills it a little later. */
async function killWhileWriting(path: string, round: number): Promise<number> {
  const writer = join(import.meta.dirname, 'kill-writer.ts');
  const durability = round % 4 === 3 ? 'full' : 'normal';
  const child = spawn(process.execPath, [writer, path, `r${round}`, durability], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = new Promise((resolve) => {
    child.once('close', resolve);
  });
  let acknowledged = 0;
  let batches = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    acknowledged = Number(line);
    batches += 1;
    if (batches === 3 + ((round * 5) % 17)) {
      await sleep(Math.random() * 4);
      child.kill('SIGKILL');
    }
  }
  await closed;
  return acknowledged;
}

function query(path: string, sql: string): number {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return Number(Object.values(db.prepare(sql).get() ?? {})[0]);
  } finally {
    db.close();
  }
}

function requireSound(path: string): void {
  const db = new DatabaseSync(path);
  assert.equal(db.prepare('PRAGMA integrity_check').get()?.['integrity_check'], 'ok');
  db.close();
}

it('F82 killed while it writes: no acknowledged call is lost, and every sum is that of the rows', async () => {
  const path = join(folder, 'killed', 'gateway.db');
  let acknowledged = 0;
  let orphans = 0;
  for (let round = 0; round < rounds; round++) {
    acknowledged += await killWhileWriting(path, round);
    requireSound(path);
    const store = await openSqliteStore({ path, log: silentLog });
    orphans += (await store.calls.settleOrphans(Infinity)).length;
    assert.deepEqual(await store.calls.settleOrphans(Infinity), []);
    const usage = await store.calls.usage({ by: 'key', since: 0 });
    const spent = await store.calls.spent(0);
    await store.close();

    const calls = usage.reduce((sum, row) => sum + row.calls, 0);
    assert.ok(calls >= acknowledged, `${calls} calls of ${acknowledged} acknowledged`);
    const rows = query(path, 'SELECT count(*) FROM calls');
    assert.equal(query(path, 'SELECT count(*) FROM attempts'), rows * 2);
    assert.equal(query(path, 'SELECT count(*) FROM open_calls'), 0);
    const cost = usage.reduce((sum, row) => sum + row.nanodollars, 0);
    assert.equal(query(path, 'SELECT sum(nanodollars) FROM usage_hours'), cost);
    assert.equal(query(path, 'SELECT sum(calls) FROM usage_days'), calls);
    assert.equal(query(path, "SELECT sum(calls) FROM total_hours WHERE kind = 'all'"), calls);
    assert.equal(query(path, "SELECT sum(nanodollars) FROM total_days WHERE kind = 'team'"), cost);
    const ofKeys = spent.filter(({ counter }) => counter.startsWith('key:'));
    assert.equal(
      ofKeys.reduce((sum, row) => sum + row.nanodollars, 0),
      cost,
    );
    assert.equal(spent.find(({ counter }) => counter === 'team:red:day')?.nanodollars, cost);
    // What is pruned is left in the sums only.
    const left = query(path, `SELECT sum(cost) FROM calls WHERE id LIKE 'r${round}-%'`);
    assert.ok(left <= cost && left > 0);
  }
  assert.ok(orphans >= rounds, `${orphans} orphans`);
});

it('F85 a disk that is full keeps calls in memory and writes them when there is space', async () => {
  const path = join(folder, 'full', 'gateway.db');
  const writer = join(import.meta.dirname, 'full-disk-writer.ts');
  // No file of the process may grow beyond 2 MB until the limit is lifted.
  const script = `ulimit -S -f 2000; exec "$@"`;
  const child = spawn('bash', ['-c', script, 'bash', process.execPath, writer, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (!line.startsWith('queued')) continue;
    execFileSync('prlimit', ['--pid', String(child.pid), '--fsize=unlimited']);
  }
  const [failed, queued, done] = lines;
  assert.match(String(failed), /^ledger_write_failed .*gateway\.db: /);
  assert.ok(Number(queued?.slice('queued '.length)) >= 100, queued);
  const [, made, kept] = /^healthy true made (\d+) kept (\d+)$/.exec(String(done)) ?? [];
  assert.ok(made !== undefined, done);
  assert.equal(made, kept);
  requireSound(path);
});
