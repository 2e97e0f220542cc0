/**
 * Counters in Redis or Valkey: one script a draw (redis-script.ts), times are the server's. Redis is
 * never the book: what budgets spent is in there for one epoch only, and an epoch that is lost (FLUSHALL,
 * a restart, a failover that lost writes) is built anew from the book before anything is admitted.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { IdTable } from '../core/id-table.ts';
import type { Clock, Log } from '../core/runtime.ts';
import type { CallRow } from './calls.ts';
import type { Balance, Counters, Draw, DrawResult, Drift, Spent, Used } from './counters.ts';
import { leaseMs, moneyGraceMs, renewEveryMs } from './lease.ts';
import { isEstimate, lostCall } from './lost-calls.ts';
import type { RedisClient } from './redis-client.ts';
import { EpochFill } from './redis-fill.ts';
import { isRefusal, unavailable, within } from './redis-failure.ts';
import { drawArguments, readingOf } from './redis-draw.ts';
import { holdsOf } from './redis-holds.ts';
import { Script, type Answer } from './redis-run.ts';
import { clearScript, counterScripts, serverTime, type CounterScripts } from './redis-script.ts';
import { ServerTime } from './server-time.ts';
import { Settlements, type Settlement } from './settlements.ts';
import { StoreError } from './store-error.ts';
import { grant, refusal } from './verdict.ts';

export interface RedisCountersOptions {
  readonly client: RedisClient;
  /** Keeps installations apart; the hash tag of all keys. */
  readonly tenant: string;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * The epoch that counts, built first where there is none. `stale` is one that is known to be over.
   * @throws StoreError when it cannot be known now
   */
  epoch(stale: string | undefined): Promise<string>;
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
const takeAtOnce = 200;
/** A gateway that said nothing for so long is not counted any more. */
const instanceMs = 10_000;
/** Less than others wait for one that stands still (counter-mode.ts). */
const stoodStillMs = 2000;
/** Draws that are undone later; they end long before, since those who have no answer ask no more. */
const mostReturned = 10_000;

/** A draw on its way. */
interface Attempt {
  /** In which it was sent. */
  epoch: string | undefined;
  /** The turn in which it was sent. */
  turn: number;
  givenUp: boolean;
}

export class RedisCounters implements Counters {
  readonly prefix: string;
  readonly #options: RedisCountersOptions;
  readonly #time: ServerTime;
  readonly #live = new IdTable<Draw>();
  readonly #settlements: Settlements;
  readonly #scripts: { readonly [name in keyof CounterScripts]: Script };
  readonly #timer: NodeJS.Timeout;
  #epoch: string | undefined;
  #beginning: Promise<string> | undefined;
  /** Draws without an answer that are to be undone, and in which epoch. */
  readonly #returned = new Map<string, string>();
  /** Rises whenever others are told what runs here: what was sent before is not granted behind it. */
  #turn = 0;
  /** Draws in a row that were not answered in time. */
  #missed = 0;
  #failedLooks = 0;
  #closed = false;

  /** By which a new epoch is filled. */
  readonly filling: EpochFill;

  constructor(options: RedisCountersOptions) {
    this.#options = options;
    this.prefix = `gw:{${options.tenant}}:`;
    this.filling = new EpochFill({
      client: options.client,
      key: this.#key,
      prefix: this.prefix,
      now: () => this.#time.wall(),
      take: (draw, epoch) =>
        this.#scripts.draw.run(this.#key, this.#drawArguments(draw, epoch, true)),
    });
    this.#time = new ServerTime(options.clock);
    const texts = counterScripts(options.time ?? serverTime);
    const script = (name: keyof CounterScripts): Script => new Script(options.client, texts[name]);
    this.#scripts = {
      draw: script('draw'),
      settle: script('settle'),
      vacate: script('vacate'),
      written: script('written'),
      booked: script('booked'),
      lost: script('lost'),
      renew: script('renew'),
      balance: script('balance'),
      repair: script('repair'),
    };
    this.#settlements = new Settlements({
      send: (calls) => this.#sendSettle(calls),
      log: options.log,
      atOnce: 64,
      together: takeAtOnce,
      waitMs: settleWithinMs,
    });
    this.#timer = setInterval(() => void this.renew(), renewEveryMs);
    this.#timer.unref();
    // Another server may answer now, or the same one with less in it.
    options.client.on('close', () => (this.#epoch = undefined));
  }

  wall(): number {
    return this.#time.wall();
  }

  /** Whether several draws in a row were not answered, or nobody is connected. */
  get lost(): boolean {
    return this.#missed >= lostAfter || this.gone || this.#options.client.status !== 'ready';
  }

  /** Whether it was looked for several times in a row in vain: no broken connection alone. */
  get gone(): boolean {
    return this.#failedLooks >= lostAfter;
  }

  /** Waits for the first connection, not without end. */
  async connected(): Promise<void> {
    const deadline = performance.now() + firstConnectionMs;
    while (this.#options.client.status !== 'ready' && performance.now() < deadline) {
      await pause(slowMs / 5);
    }
  }

  /** Whether draws can be answered now. */
  healthy(): boolean {
    return !this.lost;
  }

  get live(): Iterable<Draw> {
    return this.#live.entries().map(([, draw]) => draw);
  }

  /** @throws StoreError `unavailable` within 50 ms where there is no answer */
  async draw(wanted: Draw): Promise<DrawResult> {
    const begun = performance.now();
    const patience = this.#options.patienceMs ?? slowMs;
    const attempt: Attempt = { epoch: undefined, turn: this.#turn, givenUp: false };
    // Before the draw, so that it finds what has become free; and in the same write.
    this.#settlements.flush();
    try {
      const result = await within(patience, this.#ask(wanted, attempt));
      this.#missed = 0;
      // This process stood still with the answer before it: others may have gone on without it.
      if (performance.now() - begun > stoodStillMs + patience) throw late();
      if (result.granted) this.#keep(wanted, attempt);
      return result;
    } catch (error) {
      // Building an epoch anew takes longer than a draw may; `look` tells whether Redis is there.
      if (this.#beginning === undefined) this.#missed += 1;
      attempt.givenUp = true;
      this.#giveBack(wanted.callId, attempt.epoch);
      throw unavailable(error);
    }
  }

  /** Knows of a call that was admitted elsewhere, and counts it in the present epoch. @throws StoreError */
  async take(wanted: Draw): Promise<void> {
    this.#live.set(wanted.callId, wanted);
    try {
      await this.#ask(wanted);
    } catch (error) {
      throw unavailable(error);
    }
  }

  /** Also of a call of another gateway, which died. */
  settle(callId: string, used: Used): void {
    this.#live.delete(callId);
    this.#settlements.add(callId, used);
  }

  /** Where it does not arrive, the places come back with the settlement. */
  vacate(callId: string): void {
    const draw = this.#live.get(callId);
    if (draw === undefined || draw.concurrent.length === 0) return;
    this.#live.set(callId, { ...draw, concurrent: [] });
    this.#run('vacate', [callId]).catch(() => undefined);
  }

  /** What a call that runs here has drawn. */
  held(callId: string): Draw | undefined {
    return this.#live.get(callId);
  }

  /**
   * From now on nothing is granted in the epoch that was known, also not by an answer on its way: what runs
   * here is told to those who build the next one.
   */
  forsake(): void {
    this.#turn += 1;
    this.#epoch = undefined;
  }

  async settled(): Promise<void> {
    await this.#settlements.sent();
  }

  /** What was not told is found by `abandoned`. Never throws. */
  async written(rows: readonly CallRow[]): Promise<void> {
    const told = rows.filter(({ budgets }) => budgets.length > 0);
    const sent: Promise<unknown>[] = [];
    for (let i = 0; i < told.length; i += takeAtOnce) {
      const some = told.slice(i, i + takeAtOnce).flatMap((row) => [
        row.id,
        // An estimate never takes the place of what is booked.
        isEstimate(row) ? '' : String(row.cost?.total ?? 0),
      ]);
      sent.push(this.#run('written', some));
    }
    await Promise.allSettled(sent);
  }

  async booked(callId: string, nanodollars: number): Promise<void> {
    try {
      await this.#run('booked', [callId, String(nanodollars)]);
    } catch (error) {
      throw unavailable(error);
    }
  }

  async abandoned(): Promise<readonly CallRow[]> {
    try {
      const answer = await this.#run('lost', [String(takeAtOnce)]);
      const at = Math.floor(this.wall());
      const rows: CallRow[] = [];
      for (let i = 2; i + 1 < answer.length; i += 2) {
        const holds = holdsOf(String(answer[i + 1]));
        rows.push(lostCall(String(answer[i]), holds, at));
      }
      return rows;
    } catch (error) {
      throw unavailable(error);
    }
  }

  async balance(counter: string, window: string): Promise<Balance> {
    try {
      const [, , settled, open] = await this.#run('balance', [`${counter}|${window}`]);
      return { settled: Number(settled), open: Number(open) };
    } catch (error) {
      throw unavailable(error);
    }
  }

  async settledIn(
    windows: readonly Pick<Spent, 'counter' | 'window'>[],
  ): Promise<readonly number[]> {
    const settled: number[] = [];
    try {
      for (let i = 0; i < windows.length; i += takeAtOnce) {
        const some = windows.slice(i, i + takeAtOnce);
        const names = some.map(({ counter, window }) => `${counter}|${window}`);
        const [, , ...each] = await this.#run('balance', names);
        for (let at = 0; at < each.length; at += 2) settled.push(Number(each[at]));
      }
      return settled;
    } catch (error) {
      throw unavailable(error);
    }
  }

  async repair({ counter, window, settled, booked }: Drift): Promise<void> {
    try {
      await this.#run('repair', [`${counter}|${window}`, String(settled), String(booked)]);
    } catch (error) {
      throw unavailable(error);
    }
  }

  /**
   * Whether the server answers now, and takes what it is told: one without memory, a replica, or one that
   * cannot save answers every ping. Ends `lost`. Never throws.
   */
  async look(): Promise<boolean> {
    try {
      const { client } = this.#options;
      await within(slowMs, client.set(`${this.prefix}look`, '1', 'PX', 2 * instanceMs));
      this.#missed = 0;
      this.#failedLooks = 0;
      for (const [callId, epoch] of this.#returned) this.#sendBack(callId, epoch);
      return true;
    } catch {
      this.#failedLooks += 1;
      return false;
    }
  }

  /** Says that this gateway is there, and tells how many are. @throws StoreError */
  async instances(id: string): Promise<number> {
    const { client } = this.#options;
    const key = `${this.prefix}instances`;
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
      for (let i = 0; i === 0 || i < calls.length; i += takeAtOnce) {
        const some = calls.slice(i, i + takeAtOnce);
        await this.#run('renew', [String(leaseMs), String(moneyGraceMs), ...some]);
      }
    } catch (error) {
      this.#options.log.warn('leases_not_renewed', { calls: calls.length, reason: String(error) });
    }
  }

  /** Asks for the epoch again, and counts the running calls in the one there is. @throws StoreError */
  begin(): Promise<string> {
    this.#beginning ??= this.#begin().finally(() => (this.#beginning = undefined));
    return this.#beginning;
  }

  /** The epoch that is in Redis, and which run of the server answers. @throws an error of the client */
  async present(): Promise<{ readonly epoch: string | undefined; readonly run: string }> {
    const [epoch, info] = await Promise.all([
      this.#options.client.get(this.#key),
      this.#options.client.info('server'),
    ]);
    return { epoch: epoch ?? undefined, run: /^run_id:(\w+)/m.exec(info)?.[1] ?? '' };
  }

  /** Ends that epoch, if it is there: nothing is admitted until another one is filled. */
  async clear(epoch: string): Promise<void> {
    await this.#options.client.eval(clearScript, 1, this.#key, this.prefix, epoch);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#settlements.close();
    this.#closed = true;
  }

  /** Again where others were told meanwhile what runs here: they count elsewhere by now, perhaps (`forsake`). */
  async #begin(): Promise<string> {
    for (;;) {
      const turn = this.#turn;
      const epoch = await this.#options.epoch(this.#epoch);
      if (epoch !== this.#epoch) await this.#countRunning(epoch);
      if (turn !== this.#turn) continue;
      this.#epoch = epoch;
      return epoch;
    }
  }

  /** What the book did not know yet of calls that run here. */
  async #countRunning(epoch: string): Promise<void> {
    for (const draw of this.live) {
      if (!this.#live.has(draw.callId)) continue;
      await this.#scripts.draw.run(this.#key, this.#drawArguments(draw, epoch, true));
    }
  }

  get #key(): string {
    return `${this.prefix}epoch`;
  }

  /**
   * Only what was granted is counted again in a new epoch.
   * @throws StoreError when the epoch that granted it is over and the running calls were counted again
   */
  #keep(wanted: Draw, { epoch, turn }: Attempt): void {
    if (turn !== this.#turn || (this.#epoch !== undefined && this.#epoch !== epoch)) {
      throw new StoreError('unavailable', 'The counters were built anew meanwhile.');
    }
    this.#live.set(wanted.callId, wanted);
  }

  /** Without an attempt it is taken without asking whether it fits. */
  async #ask(wanted: Draw, attempt?: Attempt): Promise<DrawResult> {
    const answer = await this.#inEpoch((epoch) => {
      if (attempt?.givenUp === true) throw new StoreError('unavailable', 'Given up.');
      if (attempt !== undefined) {
        attempt.epoch = epoch;
        attempt.turn = this.#turn;
      }
      const values = this.#drawArguments(wanted, epoch, attempt === undefined);
      return this.#scripts.draw.run(this.#key, values);
    });
    const now = Number(answer[1]);
    if (answer[0] === 'done') throw late();
    const reading = readingOf(wanted, answer);
    const refused = answer[0] === 'refused' ? refusal(wanted, reading, now) : undefined;
    return refused ?? grant(wanted, reading, { wall: now, taken: answer[0] === 'known' });
  }

  /**
   * Whether a draw without an answer was taken is not known: this comes behind it and undoes it, in its
   * own epoch only, since the call may be counted elsewhere meanwhile; again until it arrived, since a server
   * that stood still takes what a broken connection has left it.
   */
  #giveBack(callId: string, epoch: string | undefined): void {
    if (epoch === undefined) return;
    if (this.#returned.size < mostReturned) this.#returned.set(callId, epoch);
    this.#sendBack(callId, epoch);
  }

  #sendBack(callId: string, epoch: string): void {
    const nothing = [this.prefix, epoch, '0', callId, '0', '0'];
    this.#scripts.settle.run(this.#key, nothing).then(
      () => this.#returned.delete(callId),
      () => undefined,
    );
  }

  #drawArguments(wanted: Draw, epoch: string, force: boolean): readonly (string | number)[] {
    return drawArguments(wanted, { prefix: this.prefix, epoch, force, now: this.#time.wall() });
  }

  async #sendSettle(calls: readonly Settlement[]): Promise<void> {
    const values = [String(moneyGraceMs)];
    for (const { callId, used } of calls) {
      const nanodollars = Math.max(0, used.nanodollars ?? 0);
      values.push(callId, String(Math.max(0, used.tokens)), String(nanodollars));
    }
    try {
      await this.#run('settle', values);
    } catch (error) {
      throw isRefusal(error) ? new StoreError('refused', String(error), error) : error;
    }
  }

  #run(script: keyof CounterScripts, values: readonly string[]): Promise<Answer> {
    return this.#inEpoch((epoch) =>
      this.#scripts[script].run(this.#key, [this.prefix, epoch, ...values]),
    );
  }

  /** @throws StoreError, or an error of the client */
  async #inEpoch(ask: (epoch: string) => Promise<Answer>): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      if (this.#closed) throw new StoreError('closed', 'The counters are closed.');
      const epoch = this.#epoch ?? (await this.begin());
      const answer = await ask(epoch);
      if (typeof answer[1] === 'number') this.#time.heard(answer[1]);
      if (answer[0] !== 'epoch') return answer;
      if (tries === 3) throw new StoreError('unavailable', 'The counters are being built anew.');
      if (this.#epoch === epoch) this.#epoch = undefined;
    }
  }
}

function late(): StoreError {
  return new StoreError('unavailable', 'The draw came too late.');
}
