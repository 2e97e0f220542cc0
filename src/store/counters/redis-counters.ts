/**
 * Rates and places in Redis or Valkey: one script a draw (redis-script.ts), times are the server's. What Redis
 * forgets is lost: rates begin anew, and running calls hold no places any more.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { IdTable } from '../../core/id-table.ts';
import type { Clock, Log } from '../../core/runtime.ts';
import { StoreError } from '../store-error.ts';
import {
  type Draw,
  type DrawResult,
  type RateCounters,
  ServerTime,
  type Used,
  leaseMs,
  renewEveryMs,
} from './counters.ts';
import {
  type Answer,
  type RedisClient,
  Script,
  isRefusal,
  unavailable,
  within,
} from './redis-client.ts';
import { counterScripts, serverTime, type CounterScripts } from './redis-script.ts';
import { Settlements, type Settlement } from './settlements.ts';
import { grant, refusal, type Reading } from './verdict.ts';

export interface RedisCountersOptions {
  readonly client: RedisClient;
  /** Keeps installations apart; the hash tag of all keys. */
  readonly tenant: string;
  readonly clock: Clock;
  readonly log: Log;
  /** A draw waits so long for its answer; default 50 ms. */
  readonly patienceMs?: number;
  /** Lua that puts the server's time into `now`; another one only in tests. */
  readonly time?: string;
}

/** A slower answer is as good as none (F89). */
export const slowMs = 50;
const lostAfter = 3;
/** So long a settlement waits for the next draw, to be sent with it. */
const settleWithinMs = 5;
const firstConnectionMs = 2000;
const settleAtOnce = 200;
/** A gateway that said nothing for so long is not counted any more. */
const instanceMs = 10_000;

export class RedisCounters implements RateCounters {
  readonly #prefix: string;
  readonly #options: RedisCountersOptions;
  readonly #time: ServerTime;
  readonly #live = new IdTable<Draw>();
  readonly #settlements: Settlements;
  readonly #scripts: { readonly [name in keyof CounterScripts]: Script };
  readonly #timer: NodeJS.Timeout;
  /** Draws in a row that were not answered in time. */
  #missed = 0;
  #failedLooks = 0;
  #closed = false;

  constructor(options: RedisCountersOptions) {
    this.#options = options;
    this.#prefix = `gw:{${options.tenant}}:`;
    this.#time = new ServerTime(options.clock);
    const texts = counterScripts(options.time ?? serverTime);
    const script = (name: keyof CounterScripts): Script => new Script(options.client, texts[name]);
    this.#scripts = {
      draw: script('draw'),
      settle: script('settle'),
      vacate: script('vacate'),
      renew: script('renew'),
    };
    this.#settlements = new Settlements({
      send: (calls) => this.#sendSettle(calls),
      log: options.log,
      atOnce: 64,
      together: settleAtOnce,
      waitMs: settleWithinMs,
    });
    this.#timer = setInterval(() => void this.renew(), renewEveryMs);
    this.#timer.unref();
  }

  wall(): number {
    return this.#time.wall();
  }

  /** Calls that hold something here. */
  get live(): Iterable<Draw> {
    return this.#live.entries().map(([, draw]) => draw);
  }

  /** Whether several draws or looks in a row were not answered, or there is no connection. */
  get lost(): boolean {
    const isSilent = this.#missed >= lostAfter || this.#failedLooks >= lostAfter;
    return isSilent || this.#options.client.status !== 'ready';
  }

  healthy(): boolean {
    return !this.lost;
  }

  /** Waits for the first connection, not without end. */
  async connected(): Promise<void> {
    const deadline = performance.now() + firstConnectionMs;
    while (this.#options.client.status !== 'ready' && performance.now() < deadline) {
      await pause(slowMs / 5);
    }
  }

  /** @throws StoreError `unavailable` within 50 ms where there is no answer */
  async draw(wanted: Draw, peek = false): Promise<DrawResult> {
    const patience = this.#options.patienceMs ?? slowMs;
    // Before the draw, so that it finds what has become free; and in the same write.
    this.#settlements.flush();
    try {
      const result = await within(patience, this.#ask(wanted, peek));
      this.#missed = 0;
      if (result.granted && !peek) this.#live.set(wanted.callId, wanted);
      return result;
    } catch (error) {
      this.#missed += 1;
      // It may have been taken, or be taken later: both are undone.
      if (!peek) this.#settlements.add(wanted.callId, { tokens: 0, nanodollars: 0 });
      throw unavailable(error);
    }
  }

  settle(callId: string, used: Used): void {
    if (this.#live.delete(callId) !== undefined) this.#settlements.add(callId, used);
  }

  /** Where it does not arrive, the places come back with the settlement. */
  vacate(callId: string): void {
    const draw = this.#live.get(callId);
    if (draw === undefined || draw.concurrent.length === 0) return;
    this.#live.set(callId, { ...draw, concurrent: [] });
    this.#run('vacate', [callId]).catch(() => undefined);
  }

  async settled(): Promise<void> {
    await this.#settlements.sent();
  }

  /**
   * Whether the server answers now, and takes what it is told: one without memory, a replica, or one that
   * cannot save answers every ping. Ends `lost`. Never throws.
   */
  async look(): Promise<boolean> {
    try {
      const { client } = this.#options;
      await within(slowMs, client.set(`${this.#prefix}look`, '1', 'PX', 2 * instanceMs));
      this.#missed = 0;
      this.#failedLooks = 0;
      return true;
    } catch {
      this.#failedLooks += 1;
      return false;
    }
  }

  /** Says that this gateway is there, and tells how many are. @throws StoreError */
  async instances(id: string): Promise<number> {
    const { client } = this.#options;
    const key = `${this.#prefix}instances`;
    const now = Math.floor(this.#time.wall());
    const told = client
      .multi()
      .zadd(key, now, id)
      .zremrangebyscore(key, '-inf', now - instanceMs)
      .zcard(key)
      .pexpire(key, 2 * instanceMs)
      .exec();
    const results = await within(slowMs, told);
    return Number(results?.[2]?.[1] ?? 1);
  }

  /** Puts off the end of the leases of all running calls. Never throws. */
  async renew(): Promise<void> {
    const live = this.#live.entries().map(([callId]) => callId);
    const calls = [...live, ...this.#settlements.waiting];
    try {
      for (let i = 0; i === 0 || i < calls.length; i += settleAtOnce) {
        await this.#run('renew', [String(leaseMs), ...calls.slice(i, i + settleAtOnce)]);
      }
    } catch (error) {
      this.#options.log.warn('leases_not_renewed', { calls: calls.length, reason: String(error) });
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#settlements.close();
    this.#closed = true;
  }

  async #ask(wanted: Draw, peek: boolean): Promise<DrawResult> {
    const answer = await this.#run('draw', drawArguments(wanted, peek));
    const now = Number(answer[1]);
    if (answer[0] === 'done') throw new StoreError('unavailable', 'The draw came too late.');
    const reading = readingOf(wanted, answer);
    const refused = answer[0] === 'refused' ? refusal(wanted, reading, now) : undefined;
    return refused ?? grant(wanted, reading, { wall: now, taken: answer[0] === 'known' });
  }

  async #sendSettle(calls: readonly Settlement[]): Promise<void> {
    const values = calls.flatMap(({ callId, used }) => [callId, String(Math.max(0, used.tokens))]);
    try {
      await this.#run('settle', values);
    } catch (error) {
      throw isRefusal(error) ? new StoreError('refused', String(error), error) : error;
    }
  }

  /** @throws StoreError, or an error of the client */
  async #run(script: keyof CounterScripts, values: readonly (string | number)[]): Promise<Answer> {
    if (this.#closed) throw new StoreError('closed', 'The counters are closed.');
    const prefix = this.#prefix;
    const answer = await this.#scripts[script].run(`${prefix}k`, [prefix, ...values]);
    if (typeof answer[1] === 'number') this.#time.heard(answer[1]);
    return answer;
  }
}

function drawArguments(
  { callId, concurrent, requests, tokens }: Draw,
  peek: boolean,
): readonly (string | number)[] {
  const values: (string | number)[] = [callId, leaseMs, peek ? 1 : 0, concurrent.length];
  for (const { counter, most } of concurrent) values.push(counter, most);
  values.push(requests.length);
  for (const { counter, perMinute } of requests) values.push(counter, perMinute);
  values.push(tokens.length);
  for (const { counter, perMinute, amount } of tokens) values.push(counter, perMinute, amount);
  return values;
}

/** @param answer what became of it, the time, the readings */
function readingOf(wanted: Draw, answer: Answer): Reading {
  let at = 2;
  const next = (): number => Number(answer[at++] ?? 0);
  return {
    concurrent: wanted.concurrent.map(next),
    requests: wanted.requests.map(next),
    tokens: wanted.tokens.map(next),
    budgets: [],
  };
}
