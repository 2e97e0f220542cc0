/**
 * Ends a dead instance's leases: the amount that its journal proves unspent is given back, the rest ends; and handles the
 * instance's return. Each ended lease becomes a row of the ledger with all that is leased,
 * and the other way round, in one transaction: `spending` and leases together stay the same (Q1).
 */
import type { CallRow } from '../calls.ts';
import { number, optionalNumber, text } from '../columns.ts';
import { deadNumber, type DeadLeases } from '../leases/lease-expiry.ts';
import type { SeenInstance } from '../leases/lease-home.ts';
import { lostLease, lostLeaseId } from '../lost-calls.ts';
import type { Statement } from '../statements.ts';
import { rowsText, type Row, type Sql } from './pool.ts';

/** An instance that stated something meanwhile lives. */
const endInstance: Statement = {
  name: 'end_instance',
  text: 'DELETE FROM budget_instances WHERE instance = $1 AND number = $2 RETURNING instance',
};
const endAll: Statement = {
  name: 'end_leases',
  text: `WITH held AS (SELECT counter, period FROM budget_leases WHERE instance = $1
      ORDER BY counter, period FOR UPDATE),
    gone AS (DELETE FROM budget_leases l USING held
      WHERE l.instance = $1 AND l.counter = held.counter AND l.period = held.period
      RETURNING l.counter, l.period, l.ends_at, l.amount, l.free, l.booked, l.lent)
    INSERT INTO ended_leases (instance, number, counter, period, ends_at, amount, free, booked, lent, ended_at)
    SELECT $1, $2, counter, period, ends_at, amount, free, booked, lent, counter_now() FROM gone
    RETURNING counter, period, ends_at, amount`,
};
/** The time after which a returning instance gets nothing back. */
const forget: Statement = {
  name: 'forget_ended_leases',
  text: 'DELETE FROM ended_leases WHERE ended_at < counter_now() - $1',
};
const retainMs = 90 * 86_400_000;

const findEnded: Statement = {
  name: 'find_ended_leases',
  text: `SELECT instance, number, counter, period, amount FROM ended_leases
    WHERE instance = ANY ($1::text[]) ORDER BY instance, counter, period FOR UPDATE`,
};
/** A lease whose ledger row is gone stays spent. $1 rows of the ledger that are gone now. */
const reviveAll: Statement = {
  name: 'revive_leases',
  text: `WITH ended AS (DELETE FROM ended_leases WHERE instance = ANY ($1::text[])
      RETURNING instance, number, counter, period, ends_at, amount, free, booked, lent),
    known AS (INSERT INTO budget_instances (instance, number, deaf)
      SELECT instance, max(number), false FROM ended GROUP BY 1 ORDER BY 1 ON CONFLICT (instance) DO NOTHING)
    INSERT INTO budget_leases AS l (counter, period, instance, ends_at, amount, free, booked, lent, asked)
    SELECT counter, period, instance, ends_at, amount, free, booked, lent, false FROM ended
    WHERE amount = 0 OR 'lost_' || instance || '_' || number || '_' || counter || '|' || period = ANY ($2::text[])
    ORDER BY 1, 2, 3
    ON CONFLICT (counter, period, instance) DO UPDATE SET amount = l.amount + excluded.amount`,
};

/** Statements of the dead instance that arrive from now on are late, and no other one waits for it. */
const silence: Statement = {
  name: 'silence_instance',
  text: `INSERT INTO budget_instances (instance, number, deaf) VALUES ($1, $2, true)
    ON CONFLICT (instance) DO UPDATE SET number = excluded.number, deaf = true`,
};
/** $2: `TakenLease`. The granted and not taken amount is unspent, whatever the instance stated last. */
const giveBack: Statement = {
  name: 'give_back_leases',
  text: `WITH proof AS (SELECT r->>0 AS counter, r->>1 AS period, (r->>2)::bigint AS taken
      FROM jsonb_array_elements($2::jsonb) r),
    held AS (SELECT l.counter, l.period, least(l.amount, greatest(0, l.lent - coalesce(p.taken, 0))) AS unspent
      FROM budget_leases l LEFT JOIN proof p ON p.counter = l.counter AND p.period = l.period
      WHERE l.instance = $1 ORDER BY 1, 2 FOR UPDATE OF l)
    UPDATE budget_leases l SET amount = l.amount - h.unspent, free = 0, lent = l.lent - h.unspent
    FROM held h WHERE l.instance = $1 AND l.counter = h.counter AND l.period = h.period
    RETURNING h.unspent`,
};

/**
 * Gives back what a dead instance's journal proves unspent. What its calls held stays leased.
 * @returns nanodollars
 */
export async function giveBackLeases(sql: Sql, { instance, leases }: DeadLeases): Promise<number> {
  await sql.run(silence, [instance, deadNumber]);
  const proof = rowsText(leases.map(({ counter, window, taken }) => [counter, window, taken]));
  const { rows } = await sql.run(giveBack, [instance, proof]);
  return rows.reduce((sum, row) => sum + number(row, 'unspent'), 0);
}

/**
 * @param at ms since the epoch, for the rows
 * @returns the rows to record; undefined when the instance lives, or another one was faster
 */
export async function endLeases(
  sql: Sql,
  { instance, number: n }: SeenInstance,
  at: number,
): Promise<readonly CallRow[] | undefined> {
  if ((await sql.run(endInstance, [instance, n])).count === 0) return undefined;
  await sql.run(forget, [retainMs]);
  const { rows } = await sql.run(endAll, [instance, n]);
  return rows.flatMap((row) => {
    const nanodollars = number(row, 'amount');
    if (nanodollars === 0) return [];
    const endsAt = optionalNumber(row, 'ends_at');
    return [lostLease({ ...nameOf(row), instance, number: n, endsAt, nanodollars, at })];
  });
}

/**
 * @param takeBack removes rows of the ledger with all that was added up for them; it says which were there
 * @returns whether leases of these instances had been ended
 */
export async function reviveLeases(
  sql: Sql,
  instances: readonly string[],
  takeBack: (ids: readonly string[]) => Promise<ReadonlyMap<string, number>>,
): Promise<boolean> {
  if (instances.length === 0) return false;
  const { rows } = await sql.run(findEnded, [instances]);
  if (rows.length === 0) return false;
  const ids = rows.map((row) =>
    lostLeaseId({ ...nameOf(row), instance: text(row, 'instance'), number: number(row, 'number') }),
  );
  const gone = await takeBack(ids);
  await sql.run(reviveAll, [instances, [...gone.keys()]]);
  return true;
}

function nameOf(row: Row): { readonly counter: string; readonly window: string } {
  return { counter: text(row, 'counter'), window: text(row, 'period') };
}
