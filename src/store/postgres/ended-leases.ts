/**
 * The end of a dead instance's leases, and its return. Each lease becomes a row of the ledger with all that is leased,
 * and the other way round, in one transaction: `spending` and leases together stay the same (Q1).
 */
import type { CallRow } from '../calls.ts';
import { number, optionalNumber, text } from '../columns.ts';
import type { SeenInstance } from '../leases/lease-home.ts';
import { lostLease, lostLeaseId } from '../lost-calls.ts';
import type { Statement } from '../statements.ts';
import type { Row, Sql } from './pool.ts';

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
      RETURNING l.counter, l.period, l.ends_at, l.amount, l.free, l.booked)
    INSERT INTO ended_leases (instance, number, counter, period, ends_at, amount, free, booked, ended_at)
    SELECT $1, $2, counter, period, ends_at, amount, free, booked, counter_now() FROM gone
    RETURNING counter, period, ends_at, amount`,
};
/** An instance that returns after so long gets nothing back. */
const forget: Statement = {
  name: 'forget_ended_leases',
  text: 'DELETE FROM ended_leases WHERE ended_at < counter_now() - $1',
};
const keptMs = 90 * 86_400_000;

const findEnded: Statement = {
  name: 'find_ended_leases',
  text: `SELECT instance, number, counter, period, amount FROM ended_leases
    WHERE instance = ANY ($1::text[]) ORDER BY instance, counter, period FOR UPDATE`,
};
/** A lease whose row of the ledger is not there any more stays spent. $1 rows of the ledger that are gone now. */
const reviveAll: Statement = {
  name: 'revive_leases',
  text: `WITH ended AS (DELETE FROM ended_leases WHERE instance = ANY ($1::text[])
      RETURNING instance, number, counter, period, ends_at, amount, free, booked),
    known AS (INSERT INTO budget_instances (instance, number, deaf)
      SELECT instance, max(number), false FROM ended GROUP BY 1 ORDER BY 1 ON CONFLICT (instance) DO NOTHING)
    INSERT INTO budget_leases AS l (counter, period, instance, ends_at, amount, free, booked, asked)
    SELECT counter, period, instance, ends_at, amount, free, booked, false FROM ended
    WHERE amount = 0 OR 'lost_' || instance || '_' || number || '_' || counter || '|' || period = ANY ($2::text[])
    ORDER BY 1, 2, 3
    ON CONFLICT (counter, period, instance) DO UPDATE SET amount = l.amount + excluded.amount`,
};

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
  await sql.run(forget, [keptMs]);
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
