/** A gateway that is killed while a call runs of which it could tell the book nothing yet. */
import assert from 'node:assert/strict';
import type { Reply } from '../support/http.ts';
import { openTestStore, until } from '../support/postgres-store.ts';
import type { Instance, MadeKey } from './instance.ts';
import { dollar, nanodollarsOfToken } from './storm.ts';
import type { Trio } from './trio.ts';

/** Of the model `up/slow`, which hangs. */
export const lastCallTokens = 500;

/** The ledger takes no notes until the gateway is dead; only its lease says what calls hold. */
export async function killBeforeItTells(
  trio: Trio,
  victim: Instance,
  { id, key }: MadeKey,
): Promise<void> {
  const asked = trio.upstream.script('slow', {
    body: ['data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"abc"}}]}\n\n'],
    headers: { 'content-type': 'text/event-stream' },
    ending: 'hang',
  });
  const before = asked.requests.length;
  let unlock = await lockNotes(trio);
  let cut: Promise<Reply | undefined> = Promise.resolve(undefined);
  await until(
    async () => {
      // Whether its head came before the end is chance: caught at once, it fails no test by itself.
      cut = victim
        .chat(key, { model: 'up/slow', stream: true, max_tokens: lastCallTokens })
        .catch(() => undefined);
      await Promise.race([cut, asked.request(before)]);
      if (asked.requests.length > before) return true;
      // Refused: who cannot write for five seconds takes no call, and a busy machine needs that long.
      await unlock();
      unlock = await lockNotes(trio);
      return false;
    },
    'the call runs',
    240_000,
  );
  const held = `SELECT 1 FROM budget_leases
    WHERE counter LIKE 'key:${id}:%' AND amount - free >= ${lastCallTokens * nanodollarsOfToken}`;
  await until(async () => (await trio.query(held)).length > 0, 'its lease says what it holds');
  await victim.kill();
  const reply = await cut;
  assert.notEqual(reply?.complete, true);
  await unlock();
}

/** Running calls are not noted until the result is called. */
async function lockNotes(trio: Trio): Promise<() => Promise<void>> {
  const locking = trio
    .query(`BEGIN; LOCK TABLE open_calls IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)`)
    .catch(() => undefined);
  const locker = `SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.relation = 'open_calls'::regclass AND l.mode = 'AccessExclusiveLock' AND l.granted
      AND a.query LIKE '%pg_sleep%'`;
  await until(async () => (await trio.query(locker)).length > 0, 'the table is locked');
  return async () => {
    await trio.query(`SELECT pg_terminate_backend(pid) FROM (${locker}) locked`);
    await locking;
  };
}

/**
 * What the dead instance had leased is in the ledger, once: at least what its calls held, and little more. As if nobody
 * had heard of it for as long as its leases last, unless that is so by now, and the others have seen to it.
 */
export async function assertBookedAsHeld(
  trio: Trio,
  made: MadeKey,
  nanodollars: number,
): Promise<void> {
  const leased = `SELECT instance, amount::integer, (amount - free)::integer AS held
    FROM budget_leases WHERE counter LIKE 'key:${made.id}:%' AND amount > free`;
  const [lease] = await trio.query(leased);
  const { store, close } = await openTestStore(trio.url);
  try {
    const dead = (await store.instances()).find(({ instance }) => instance === lease?.['instance']);
    if (dead !== undefined) {
      assert.equal(lease?.['held'], nanodollars);
      await store.expire(dead);
      assert.equal(await trio.spent(made), lease?.['amount']);
    }
  } finally {
    await close();
  }
  await until(async () => (await trio.spent(made)) >= nanodollars, 'it is booked');
  const spent = await trio.spent(made);
  assert.ok(spent <= nanodollars + dollar / 100, `${spent}: what was free was little`);
  const rows = await trio.query(`SELECT outcome, error, usage_source, cost::integer AS cost
    FROM calls WHERE key_id = '${made.id}' AND cost > 0`);
  assert.deepEqual(rows, [
    { outcome: 'failed', error: 'interrupted', usage_source: 'estimated', cost: spent },
  ]);
  assert.deepEqual(await trio.query(leased), []);
  if (lease === undefined) return;
  const others = `SELECT 1 FROM budget_leases WHERE instance = '${String(lease['instance'])}'`;
  assert.deepEqual(await trio.query(others), []);
}
