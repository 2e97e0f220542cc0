/**
 * Rates and slots as rows of PostgreSQL: exact for any number of gateways, one round trip a reservation
 * (postgres-schema.ts). Times are the server's.
 */
import type { Clock, Log } from '../../core/runtime.ts';
import { parseOwn } from '../../json/parse.ts';
import type { Row, SqlValue } from '../postgres/pool.ts';
import type { Statement } from '../statements.ts';
import type { PostgresServer } from '../postgres/server.ts';
import { StoreError } from '../store-error.ts';
import {
  type ReserveRequest,
  type ReserveResult,
  type RateCounters,
  ServerTime,
  type Used,
  leaseMs,
  renewEveryMs,
} from './counters.ts';
import { Settlements } from './settlements.ts';
import { grant, refusal, type Reading } from './verdict.ts';

export interface PostgresCountersOptions {
  readonly server: Pick<PostgresServer, 'use' | 'data' | 'up' | 'onUp'>;
  readonly clock: Clock;
  readonly log: Log;
}

const request: Statement = {
  name: 'counter_draw',
  text: 'SELECT counter_draw($1, $2, $3, $4, $5, $6)::text AS answer',
};
const settle: Statement = {
  name: 'counter_settle',
  text: 'SELECT counter_settle($1, $2), counter_now() AS now',
};
/** Without a lock: a reservation that counts it still was there before. */
const releaseSlots: Statement = {
  name: 'counter_release_slots',
  text: `DELETE FROM counter_holds WHERE call_id = $1 AND name LIKE 'c:%' RETURNING counter_now() AS now`,
};
const renew: Statement = { name: 'counter_renew', text: 'SELECT counter_renew($1, $2) AS now' };
const sweep: Statement = { name: 'counter_sweep', text: 'SELECT counter_sweep($1) AS now' };

const sweepAtOnce = 1000;
const settleAtOnce = 4;

interface Answer {
  readonly code: 'granted' | 'known' | 'refused';
  readonly now: number;
  readonly c: readonly number[];
  readonly r: readonly number[];
  readonly t: readonly number[];
}

export class PostgresCounters implements RateCounters {
  readonly #options: PostgresCountersOptions;
  readonly #time: ServerTime;
  /** Calls that hold something here. */
  readonly #live = new Map<string, ReserveRequest>();
  readonly #settlements: Settlements;
  readonly #timers: NodeJS.Timeout[];

  constructor(options: PostgresCountersOptions) {
    this.#options = options;
    this.#time = new ServerTime(options.clock);
    this.#settlements = new Settlements({
      send: async ([only]) => {
        if (only === undefined) return;
        await this.#run(settle, [only.callId, Math.max(0, only.used.tokens)]);
      },
      log: options.log,
      atOnce: settleAtOnce,
    });
    options.server.onUp(() => void this.sweep());
    this.#timers = [
      setInterval(() => void this.#renew(), renewEveryMs),
      setInterval(() => void this.sweep(), leaseMs),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  wall(): number {
    return this.#time.wall();
  }

  async reserve(wanted: ReserveRequest, peek = false): Promise<ReserveResult> {
    if (peek) return this.#ask(wanted, true);
    this.#live.set(wanted.callId, wanted);
    try {
      const result = await this.#ask(wanted, false);
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

  settle(callId: string, used: Used): void {
    if (this.#live.delete(callId)) this.#settlements.add(callId, used);
  }

  /** If it does not arrive, the slots come back with the settlement. */
  releaseSlots(callId: string): void {
    const held = this.#live.get(callId);
    if (held === undefined || held.concurrent.length === 0) return;
    this.#live.set(callId, { ...held, concurrent: [] });
    this.#run(releaseSlots, [callId]).catch(() => undefined);
  }

  healthy(): boolean {
    return this.#options.server.up;
  }

  /** Waits for the settlements that are on their way. */
  async settled(): Promise<void> {
    await this.#settlements.sent();
  }

  /** Deletes what ended ten minutes ago. Never throws. */
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

  async #ask(wanted: ReserveRequest, peek: boolean): Promise<ReserveResult> {
    const row = await this.#run(request, [
      wanted.callId,
      JSON.stringify(wanted.concurrent.map(({ counter, most }) => [counter, most])),
      JSON.stringify(wanted.requests.map(({ counter, perMinute }) => [counter, perMinute])),
      JSON.stringify(wanted.tokens.map((t) => [t.counter, t.perMinute, t.amount])),
      leaseMs,
      peek,
    ]);
    const answer = parseOwn<Answer>(String(row['answer']));
    this.#time.heard(answer.now);
    const { c: concurrent, r: requests, t: tokens } = answer;
    const reading: Reading = { concurrent, requests, tokens, budgets: [] };
    const refused = answer.code === 'refused' ? refusal(wanted, reading, answer.now) : undefined;
    return refused ?? grant(wanted, reading, { wall: answer.now, taken: answer.code === 'known' });
  }

  async #renew(): Promise<void> {
    const calls = [...this.#live.keys(), ...this.#settlements.waiting];
    if (calls.length === 0) return;
    try {
      const row = await this.#run(renew, [calls, leaseMs]);
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
