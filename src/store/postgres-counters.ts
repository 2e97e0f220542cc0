/**
 * Counters that are rows of the book: exact for any number of gateways, one round trip a draw
 * (postgres-migrations/0002-counters.ts, 0004-lost-calls.ts). Times are the server's.
 */
import { parseOwn } from '../core/json.ts';
import type { Clock, Log } from '../core/runtime.ts';
import type { Balance, Counters, Draw, DrawResult, Used } from './counters.ts';
import { leaseMs, moneyGraceMs, renewEveryMs } from './lease.ts';
import type { PostgresServer } from './postgres-server.ts';
import type { Row, SqlValue, Statement } from './postgres-pool.ts';
import { lostCall, aboutHold, type LostHold } from './lost-calls.ts';
import { optionalText, text } from './sqlite-columns.ts';
import type { CallRow } from './calls.ts';
import { Settlements } from './settlements.ts';
import { ServerTime } from './server-time.ts';
import { StoreError } from './store-error.ts';
import type { Spending } from './unbooked.ts';
import { grant, refusal, type Reading } from './verdict.ts';

export interface PostgresCountersOptions {
  readonly server: Pick<PostgresServer, 'use' | 'data' | 'up' | 'onUp'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Set where Redis counts as long as it is there: then draws are taken only while it does not. */
  readonly tenant?: string;
}

const draw: Statement = {
  name: 'counter_draw',
  text: 'SELECT counter_draw($1, $2, $3, $4, $5, $6, $7, $8, $9)::text AS answer',
};
const settle: Statement = {
  name: 'counter_settle',
  text: 'SELECT counter_settle($1, $2, $3), counter_now() AS now',
};
/** Without a lock: a draw that counts it still was there before. */
const vacate: Statement = {
  name: 'counter_vacate',
  text: `DELETE FROM counter_holds WHERE call_id = $1 AND name LIKE 'c:%' RETURNING counter_now() AS now`,
};
const renew: Statement = { name: 'counter_renew', text: 'SELECT counter_renew($1, $2, $3) AS now' };
const hold: Statement = {
  name: 'counter_hold',
  text: `INSERT INTO counter_holds SELECT r->>0, r->>1, (r->>2)::bigint, 0, counter_now() + $2, false, r->>3
    FROM jsonb_array_elements($1::jsonb) r
    WHERE NOT EXISTS (SELECT FROM calls WHERE id = split_part(r->>1, '+', 1))
    ORDER BY 1, 2 ON CONFLICT DO NOTHING`,
};
/** Booked calls are in `spending`; one that spent nothing is told only where it is known as running. */
const holdSpent: Statement = {
  name: 'counter_hold_spent',
  text: `INSERT INTO counter_holds SELECT r->>0, r->>1, (r->>2)::bigint, 0, counter_now() + $2, true, r->>3
    FROM jsonb_array_elements($1::jsonb) r
    WHERE NOT EXISTS (SELECT FROM calls WHERE id = r->>1)
      AND ((r->>2)::bigint > 0 OR EXISTS (SELECT FROM open_calls WHERE id = r->>1))
    ORDER BY 1, 2 ON CONFLICT DO NOTHING`,
};
/** As long as a call may wait on a disk. */
const unbookedMs = 604_800_000;
const forget: Statement = { name: 'counter_forget', text: 'SELECT counter_forget($1)' };
const sweep: Statement = { name: 'counter_sweep', text: 'SELECT counter_sweep($1) AS now' };
const readBalance: Statement = {
  name: 'counter_balance',
  text: 'SELECT settled, open FROM counter_balance($1, $2, counter_now())',
};

const lost: Statement = {
  name: 'counter_lost',
  text: 'SELECT id, name, amount, about FROM counter_lost($1, $2)',
};
/** Longer than a gateway's queue; what waits on a disk takes the estimate's place when it comes. */
const bookedWithinMs = 240_000;
const lostAtOnce = 200;

const sweepAtOnce = 1000;
const settleAtOnce = 4;

interface Answer {
  readonly code: 'granted' | 'known' | 'refused' | 'mode';
  readonly now: number;
  readonly c: readonly number[];
  readonly r: readonly number[];
  readonly t: readonly number[];
  readonly b: readonly (readonly [number, number])[];
}

export class PostgresCounters implements Counters {
  readonly #options: PostgresCountersOptions;
  readonly #time: ServerTime;
  /** Calls that hold something here. */
  readonly #live = new Map<string, Draw>();
  readonly #settlements: Settlements;
  /** Calls whose holds are on their way, with the settlements that came before them. */
  readonly #arriving = new Set<Map<string, Used | undefined>>();
  readonly #timers: NodeJS.Timeout[];

  constructor(options: PostgresCountersOptions) {
    this.#options = options;
    this.#time = new ServerTime(options.clock);
    this.#settlements = new Settlements({
      send: async ([only]) => {
        if (only !== undefined) await this.#sendSettle(only.callId, only.used);
      },
      log: options.log,
      atOnce: settleAtOnce,
    });
    const { server } = options;
    server.onUp(() => void this.sweep());
    this.#timers = [
      setInterval(() => void this.#renew(), renewEveryMs),
      setInterval(() => void this.sweep(), leaseMs),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  wall(): number {
    return this.#time.wall();
  }

  async draw(wanted: Draw): Promise<DrawResult> {
    this.#live.set(wanted.callId, wanted);
    try {
      const result = await this.#ask(wanted);
      if (!result.granted) this.#live.delete(wanted.callId);
      return result;
    } catch (error) {
      // Others had all connections: giving back what was never taken would only make more work for them.
      if (error instanceof StoreError && error.kind === 'busy') this.#live.delete(wanted.callId);
      // It may have been taken all the same: that is given back, or its lease ends.
      else this.settle(wanted.callId, { tokens: 0, nanodollars: 0 });
      throw error;
    }
  }

  /** What calls hold of budgets that other counters have admitted; nobody draws yet. @throws StoreError */
  async takeMoney(draws: readonly Draw[]): Promise<void> {
    if (draws.length === 0) return;
    for (const wanted of draws) this.#live.set(wanted.callId, wanted);
    const rows = draws.flatMap(({ callId, budgets, about }) => [
      ['', callId, 0],
      ...budgets.map((b) => [`b:${b.counter}|${b.window}`, callId, b.amount, aboutHold(about, b)]),
    ]);
    const { server } = this.#options;
    const values = [JSON.stringify(rows), leaseMs + moneyGraceMs];
    const arriving = new Map<string, Used | undefined>(draws.map((d) => [d.callId, undefined]));
    this.#arriving.add(arriving);
    try {
      await server.use(() => server.data.run(hold, values));
    } finally {
      this.#arriving.delete(arriving);
      for (const [callId, used] of arriving) {
        if (used !== undefined) this.#settlements.add(callId, used);
      }
    }
  }

  /** What calls spent that other counters have admitted, and that the book does not have. @throws StoreError */
  async takeSpent(calls: readonly Spending[]): Promise<void> {
    if (calls.length === 0) return;
    const rows = calls.flatMap(({ draw: { callId, budgets, about }, nanodollars }) =>
      budgets.map((b) => [`b:${b.counter}|${b.window}`, callId, nanodollars, aboutHold(about, b)]),
    );
    await this.#run(holdSpent, [JSON.stringify(rows), unbookedMs]);
  }

  /** Takes back what `takeSpent` told of calls that the book has by now. Never throws. */
  forget(callIds: readonly string[]): void {
    // What stays is told by `abandoned`, and forgotten there.
    if (callIds.length > 0) this.#run(forget, [callIds]).catch(() => undefined);
  }

  settle(callId: string, used: Used): void {
    if (!this.#live.delete(callId)) return;
    for (const calls of this.#arriving) {
      if (!calls.has(callId)) continue;
      // Before its hold it would settle nothing, and the hold would stay until its lease ends.
      calls.set(callId, used);
      return;
    }
    this.#settlements.add(callId, used);
  }

  /** Where it does not arrive, the places come back with the settlement. */
  vacate(callId: string): void {
    const draw = this.#live.get(callId);
    if (draw === undefined || draw.concurrent.length === 0) return;
    this.#live.set(callId, { ...draw, concurrent: [] });
    this.#run(vacate, [callId]).catch(() => undefined);
  }

  async balance(counter: string, window: string): Promise<Balance> {
    await this.settled();
    const row = await this.#run(readBalance, [counter, window]);
    return { settled: number(row, 'settled'), open: number(row, 'open') };
  }

  async settledIn(): Promise<undefined> {
    // It is the ledger's own figure.
  }

  /** Settled is the ledger's own figure and what is not booked yet, which `abandoned` tells: never wrong. */
  async repair(): Promise<void> {
    // Nothing to do.
  }

  async abandoned(): Promise<readonly CallRow[]> {
    const { server } = this.#options;
    const { rows } = await server.use(() => server.data.run(lost, [bookedWithinMs, lostAtOnce]));
    const calls = new Map<string, LostHold[]>();
    for (const row of rows) {
      const id = text(row, 'id');
      const name = text(row, 'name').slice('b:'.length);
      const at = name.lastIndexOf('|');
      const hold: LostHold = {
        counter: name.slice(0, at),
        window: name.slice(at + 1),
        nanodollars: number(row, 'amount'),
        about: optionalText(row, 'about'),
      };
      calls.set(id, [...(calls.get(id) ?? []), hold]);
    }
    return [...calls].map(([id, holds]) => lostCall(id, holds, Math.floor(this.wall())));
  }

  /** The transaction that booked it took its holds away. */
  async booked(): Promise<void> {
    // Nothing to do.
  }

  healthy(): boolean {
    return this.#options.server.up;
  }

  /** The calls that hold something here. */
  get live(): Iterable<Draw> {
    return this.#live.values();
  }

  /** Waits for the settlements that are on their way. */
  async settled(): Promise<void> {
    await this.#settlements.sent();
  }

  /** Forgets what nobody holds any longer. Never throws. */
  async sweep(): Promise<void> {
    try {
      this.#time.heard(number(await this.#run(sweep, [sweepAtOnce]), 'now'));
    } catch {
      // The server is away; the next sweep finds the same.
    }
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#settlements.close();
  }

  async #ask(wanted: Draw): Promise<DrawResult> {
    const { tenant } = this.#options;
    const row = await this.#run(draw, [
      wanted.callId,
      JSON.stringify(wanted.concurrent.map(({ counter, most }) => [counter, most])),
      JSON.stringify(wanted.requests.map(({ counter, perMinute }) => [counter, perMinute])),
      JSON.stringify(wanted.tokens.map((t) => [t.counter, t.perMinute, t.amount])),
      JSON.stringify(
        wanted.budgets.map((b) => [
          b.counter,
          b.window,
          b.nanodollars,
          b.amount,
          aboutHold(wanted.about, b),
        ]),
      ),
      leaseMs,
      moneyGraceMs,
      tenant ?? null,
      false,
    ]);
    const answer = parseOwn<Answer>(String(row['answer']));
    this.#time.heard(answer.now);
    if (answer.code === 'mode') {
      throw new StoreError('unavailable', 'The counters are being moved to another server.');
    }
    const reading: Reading = {
      concurrent: answer.c,
      requests: answer.r,
      tokens: answer.t,
      budgets: wanted.budgets.map(({ window }, i) => {
        const [settled, open] = answer.b[i] ?? [0, 0];
        return { window, settled, open };
      }),
    };
    const refused = answer.code === 'refused' ? refusal(wanted, reading, answer.now) : undefined;
    return refused ?? grant(wanted, reading, { wall: answer.now, taken: answer.code === 'known' });
  }

  async #sendSettle(callId: string, used: Used): Promise<void> {
    const tokens = Math.max(0, used.tokens);
    const nanodollars = Math.max(0, used.nanodollars ?? 0);
    await this.#run(settle, [callId, tokens, nanodollars]);
  }

  async #renew(): Promise<void> {
    const calls = [...this.#live.keys(), ...this.#settlements.waiting];
    if (calls.length === 0) return;
    try {
      const row = await this.#run(renew, [calls, leaseMs, moneyGraceMs]);
      this.#time.heard(number(row, 'now'));
    } catch (error) {
      this.#options.log.warn('leases_not_renewed', { calls: calls.length, reason: String(error) });
    }
  }

  async #run(statement: Statement, values: readonly SqlValue[]): Promise<Row> {
    const { server } = this.#options;
    const { rows } = await server.use(() => server.data.run(statement, values));
    return rows[0] ?? {};
  }
}

function number(row: Row, name: string): number {
  const value = row[name];
  return typeof value === 'number' ? value : 0;
}
