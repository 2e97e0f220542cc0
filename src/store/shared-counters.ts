/**
 * The counters of several gateways: Redis as long as it answers. Where it does not (reliability.md §6):
 * rates are each gateway's share of the limit; budgets are counted in PostgreSQL; where that is away too
 * they refuse, or admit up to a small cap where the config says so. Never silently open.
 *
 * Budgets are counted in one place at a time. All gateways look every quarter of a second where that is
 * (counter-mode.ts); on the way to PostgreSQL, and where Redis forgot, nobody grants until every gateway
 * has told what its calls hold and spent: so long calls with a budget are E18. The way back takes no pause.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock, Log } from '../core/runtime.ts';
import type { CallRow } from './calls.ts';
import type { CounterMode } from './counter-mode.ts';
import type { Balance, Counters, Draw, DrawResult, Drift, Spent, Used } from './counters.ts';
import { MemoryCounters } from './memory-counters.ts';
import type { PostgresCounters } from './postgres-counters.ts';
import { slowMs, type RedisCounters } from './redis-counters.ts';
import { StoreError } from './store-error.ts';
import { Unbooked } from './unbooked.ts';

export interface SharedCountersOptions {
  readonly redis: RedisCounters;
  readonly postgres: PostgresCounters;
  readonly mode: CounterMode;
  readonly clock: Clock;
  readonly log: Log;
  /** This gateway's own name among the others. */
  readonly instance: string;
  /** What calls with a budget get while neither server counts. */
  readonly onStoreLoss: 'closed' | 'open';
  /** How long Redis must answer before it counts again; default 10 s. */
  readonly returnAfterMs?: number;
}

const lookEveryMs = 250;
/**
 * So often a gateway says that it lives. Unless it could for so long, others may soon take it for dead, and
 * count without it (counter-mode.ts): what is left until then is longer than a draw may stand still on its way.
 */
const seenEveryMs = 500;
const seenForMs = 2500;
/** Calls told in one statement. */
const toldAtOnce = 1000;
/** The latest: an epoch is filled within seconds. */
const mostLate = 20_000;
/** A gateway that alone does not reach Redis must not move all others again and again. */
const leaveAgainMs = 60_000;
const defaultReturnAfterMs = 10_000;
/** So long a gateway goes by its share without a word; then it says so, and stops where it is alone. */
const quietShareMs = 60_000;
/** Per budget and gateway, in nanodollars, where budgets are open without any store. */
const openCap = 1_000_000_000;

export class SharedCounters implements Counters {
  readonly #options: SharedCountersOptions;
  /** Shares of rates, while Redis is away. */
  readonly #share: MemoryCounters;
  /** Capped budgets, while everything is away. */
  readonly #capped: MemoryCounters;
  /** Calls that were admitted without Redis. */
  readonly #apart = new Map<string, Draw>();
  readonly #timer: NodeJS.Timeout;
  #place: 'redis' | 'postgres' = 'redis';
  /** What spent money, and the book does not know. */
  readonly #unbooked = new Unbooked();
  /** What was asked for (`CounterMode`), and up to where it was told; when that was noted. */
  #asked = 0;
  #told = -1;
  #seenAt = Number.NEGATIVE_INFINITY;
  /** One telling after the other. */
  #telling: Promise<void> = Promise.resolve();
  /**
   * Calls that PostgreSQL granted and that ended before this gateway knew that Redis counts again: the epoch
   * that is filled meanwhile may have them as running.
   */
  readonly #late = new Map<string, Used>();
  #looking: Promise<void> | undefined;
  #moving: Promise<void> | undefined;
  #returning = false;
  #instances = 1;
  /** When this gateway may move budgets again. */
  #leaveAgainAt = Number.NEGATIVE_INFINITY;
  /** Monotonic ms. */
  #lostSince: number | undefined;
  #answersSince: number | undefined;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(options: SharedCountersOptions) {
    this.#options = options;
    this.#share = new MemoryCounters(options.clock);
    this.#capped = new MemoryCounters(options.clock);
    this.#timer = setInterval(() => void this.look(), lookEveryMs);
    this.#timer.unref();
  }

  /** Where budgets are counted, as known here. */
  get place(): 'redis' | 'postgres' {
    return this.#place;
  }

  /** Whether Redis is to count again. */
  get returning(): boolean {
    return this.#returning;
  }

  wall(): number {
    const { redis, postgres } = this.#options;
    return this.#place === 'redis' ? redis.wall() : postgres.wall();
  }

  async draw(draw: Draw): Promise<DrawResult> {
    const { redis } = this.#options;
    if (draw.budgets.length > 0) await this.#knowPlace();
    if (this.#place === 'redis' && !redis.lost) {
      try {
        const result = await redis.draw(draw);
        this.#lostSince = undefined;
        if (this.#isPlace('redis') || !result.granted) return result;
        // PostgreSQL was told of what runs before this came.
        redis.settle(draw.callId, { tokens: 0, nanodollars: 0 });
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
      }
    }
    this.#lose();
    return this.#drawApart(draw);
  }

  settle(callId: string, used: Used): void {
    const paid = (this.#apart.get(callId)?.budgets.length ?? 0) > 0;
    this.#apart.delete(callId);
    if (paid) this.#keepLate(callId, used);
    this.#share.settle(callId, used);
    this.#capped.settle(callId, used);
    const { redis, postgres } = this.#options;
    postgres.settle(callId, used);
    const draw = redis.held(callId);
    if (draw !== undefined) this.#keepUnbooked(draw, Math.max(0, used.nanodollars ?? 0));
    if (this.#place === 'redis' || draw !== undefined) redis.settle(callId, used);
  }

  vacate(callId: string): void {
    const apart = this.#apart.get(callId);
    if (apart !== undefined) this.#apart.set(callId, { ...apart, concurrent: [] });
    this.#share.vacate(callId);
    const { redis, postgres } = this.#options;
    postgres.vacate(callId);
    redis.vacate(callId);
  }

  balance(counter: string, window: string): Promise<Balance> {
    const { redis, postgres } = this.#options;
    return (this.#place === 'redis' ? redis : postgres).balance(counter, window);
  }

  async settledIn(
    windows: readonly Pick<Spent, 'counter' | 'window'>[],
  ): Promise<readonly number[] | undefined> {
    return this.#place === 'redis' ? this.#options.redis.settledIn(windows) : undefined;
  }

  repair(drift: Drift): Promise<void> {
    const { redis, postgres } = this.#options;
    return this.#place === 'redis' ? redis.repair(drift) : postgres.repair();
  }

  written(rows: readonly CallRow[]): void {
    this.#options.postgres.forget(this.#unbooked.booked(rows.map(({ id }) => id)));
    if (this.#place === 'redis') void this.#options.redis.written(rows);
  }

  /** While Redis counts PostgreSQL may still have what was told there, by gateways that died since. */
  async abandoned(): Promise<readonly CallRow[]> {
    const { redis, postgres } = this.#options;
    const told = await postgres.abandoned();
    if (this.#place !== 'redis') return told;
    const lost = await redis.abandoned();
    const known = new Set(lost.map(({ id }) => id));
    return [...lost, ...told.filter(({ id }) => !known.has(id))];
  }

  async booked(callId: string, nanodollars: number): Promise<void> {
    if (this.#place === 'redis') await this.#options.redis.booked(callId, nanodollars);
  }

  healthy(): boolean {
    const { redis, postgres } = this.#options;
    if (this.#place === 'redis' && !redis.lost) return true;
    return postgres.healthy() || !this.#overdue();
  }

  /** So that the first call waits for nothing. Never throws. */
  async begin(): Promise<void> {
    await this.#options.redis.connected();
    await this.look();
    if (this.#place === 'redis') await this.#options.redis.begin().catch(() => undefined);
  }

  /** Looks where budgets are counted, and moves there. Never throws. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
    await this.#moving;
    const { redis, postgres, mode, instance } = this.#options;
    await Promise.all([redis.close(), postgres.close()]);
    // Where that fails the others wait a while for one that is dead.
    await mode.gone(instance).catch(() => undefined);
  }

  async #look(): Promise<void> {
    await this.#lookAtRedis();
    try {
      await this.#lookAtPlace();
    } catch (error) {
      if (this.#place === 'redis' && !this.#options.redis.lost) return;
      this.#warn('counters_not_moved', { reason: String(error) });
    }
  }

  async #lookAtRedis(): Promise<void> {
    const { redis, clock, instance } = this.#options;
    const answers = await redis.look();
    if (!answers) {
      this.#answersSince = undefined;
      return;
    }
    this.#answersSince ??= clock.now();
    // Where it fails the last known number goes on to hold.
    this.#instances = await redis.instances(instance).catch(() => this.#instances);
  }

  async #lookAtPlace(): Promise<void> {
    const { redis, mode, clock } = this.#options;
    // First: where others did not wait for this gateway, since it seemed dead, what is read behind it says so.
    const saidAt = await this.#live();
    const looked = clock.now();
    const row = await mode.read();
    this.#asked = row.asked;
    if (row.mode === 'postgres') this.#movedToPostgres();
    if (row.asked > this.#told) await this.tell(row.asked);
    if (saidAt !== undefined) this.#seenAt = Math.max(this.#seenAt, saidAt);
    if (row.mode === 'postgres') {
      if (!row.usable) await mode.open();
      if (this.#mayReturn()) this.#move(() => this.#return());
    } else if (this.#place === 'postgres') {
      this.#move(() => this.#movedToRedis());
    } else if (redis.gone && looked >= this.#leaveAgainAt) {
      await mode.leaveRedis(row.epoch);
      this.#leaveAgainAt = looked + leaveAgainMs;
      await this.#lookAtPlace();
    }
  }

  /** Beside the looks, which go on: it may have to wait for gateways that died. */
  #move(move: () => Promise<void>): void {
    this.#moving ??= move()
      .catch((error: unknown) => this.#warn('counters_not_moved', { reason: String(error) }))
      .finally(() => (this.#moving = undefined));
  }

  /**
   * Says that this gateway lives, where it is time for that. The answer is since when it may count as seen, once
   * it has read where budgets are counted.
   */
  async #live(): Promise<number | undefined> {
    const { mode, clock, instance } = this.#options;
    const now = clock.now();
    if (this.#told < 0 || now - this.#seenAt < seenEveryMs) return undefined;
    await mode.tell(instance, this.#told);
    return now;
  }

  /**
   * Tells PostgreSQL what calls of this gateway hold and spent that the book does not know, and notes that.
   * Behind it nothing of the past is granted any more. @throws StoreError
   */
  tell(asked: number): Promise<void> {
    const before = this.#telling;
    this.#telling = before.catch(() => undefined).then(() => this.#tell(asked));
    return this.#telling;
  }

  async #tell(asked: number): Promise<void> {
    const { redis, postgres, mode, clock, instance } = this.#options;
    if (asked <= this.#told) return;
    redis.forsake();
    const held = [...redis.live].filter(({ budgets }) => budgets.length > 0);
    await this.#inParts(held, (some) =>
      // What ended since is told as spent: nobody would settle its hold.
      postgres.takeMoney(some.filter(({ callId }) => redis.held(callId) !== undefined)),
    );
    const spent = this.#unbooked.calls;
    await this.#inParts(spent, (some) => postgres.takeSpent(some));
    postgres.forget(this.#unbooked.told(spent));
    const now = clock.now();
    await mode.tell(instance, asked);
    this.#seenAt = now;
    this.#told = Math.max(this.#told, asked);
  }

  /** Between the parts it says that it lives, though it has much to tell. */
  async #inParts<T>(all: readonly T[], tell: (some: readonly T[]) => Promise<void>): Promise<void> {
    for (let at = 0; at < all.length; at += toldAtOnce) {
      if (at > 0) await this.#options.mode.tell(this.#options.instance, this.#told);
      await tell(all.slice(at, at + toldAtOnce));
    }
  }

  #keepUnbooked(draw: Draw, nanodollars: number): void {
    if (this.#unbooked.add({ draw, nanodollars })) return;
    this.#warn('spending_not_told', { call: draw.callId });
  }

  #keepLate(callId: string, used: Used): void {
    this.#late.set(callId, used);
    if (this.#late.size <= mostLate) return;
    for (const oldest of this.#late.keys()) {
      this.#late.delete(oldest);
      return;
    }
  }

  #mayReturn(): boolean {
    const { clock, returnAfterMs = defaultReturnAfterMs } = this.#options;
    return this.#answersSince !== undefined && clock.now() - this.#answersSince >= returnAfterMs;
  }

  #movedToPostgres(): void {
    if (this.#place === 'postgres') return;
    this.#place = 'postgres';
    this.#lose();
    this.#options.log.error('counters_moved', { to: 'postgres', reason: 'Redis does not answer' });
  }

  /**
   * Others count elsewhere only when this gateway has told what it holds, or seems dead: as long as it was seen, and
   * read behind that where budgets are counted, not long ago it grants, however slow the book is. One that was not, since it stood still, is seen before it
   * grants. Where the book is away nobody can move, and it goes on.
   */
  async #knowPlace(): Promise<void> {
    const { clock, postgres } = this.#options;
    const isUnseen = (): boolean => clock.now() - this.#seenAt > seenForMs && postgres.healthy();
    if (!isUnseen()) return;
    await Promise.race([this.look(), pause(slowMs, undefined, { ref: false })]);
    if (isUnseen()) throw new StoreError('unavailable', 'Where budgets are counted is not known.');
  }

  async #return(): Promise<void> {
    this.#returning = true;
    try {
      await this.#movedToRedis();
    } finally {
      this.#returning = false;
    }
  }

  async #movedToRedis(): Promise<void> {
    const { redis, log } = this.#options;
    await redis.begin();
    for (const draw of this.#apart.values()) await redis.take(draw);
    this.#apart.clear();
    this.#place = 'redis';
    for (const [callId, used] of this.#late) redis.settle(callId, used);
    this.#late.clear();
    this.#lostSince = undefined;
    log.warn('counters_moved', { to: 'redis' });
  }

  /** From now on rates are shares; places that running calls hold count in them. */
  #lose(): void {
    if (this.#lostSince !== undefined) return;
    const { clock, redis, log } = this.#options;
    this.#lostSince = clock.now();
    this.#warnedAt = clock.now();
    log.warn('limits_by_share', { instances: this.#instances });
    for (const { callId, concurrent } of redis.live) {
      this.#share.take({ callId, concurrent, requests: [], tokens: [], budgets: [] });
    }
  }

  #isPlace(place: 'redis' | 'postgres'): boolean {
    return this.#place === place;
  }

  #overdue(): boolean {
    return (
      this.#lostSince !== undefined && this.#options.clock.now() - this.#lostSince > quietShareMs
    );
  }

  async #drawApart(draw: Draw): Promise<DrawResult> {
    const { postgres } = this.#options;
    if (this.#overdue()) {
      if (!postgres.healthy())
        throw new StoreError('unavailable', 'Nobody counts: Redis and PostgreSQL are away.');
      this.#warn('limits_by_share', { instances: this.#instances });
    }
    const rates = this.#share.draw(this.#shareOf(draw));
    if (!rates.granted) return rates;
    if (draw.budgets.length === 0) return this.#admit(draw, rates);
    try {
      const money = await this.#drawMoney(draw);
      if (money.granted) return this.#admit(draw, { ...rates, budgets: money.budgets });
      this.#share.undo(draw.callId);
      return money;
    } catch (error) {
      this.#share.undo(draw.callId);
      throw error;
    }
  }

  #admit<T extends DrawResult>(draw: Draw, result: T): T {
    this.#apart.set(draw.callId, draw);
    return result;
  }

  async #drawMoney(draw: Draw): Promise<DrawResult> {
    const { postgres, onStoreLoss } = this.#options;
    if (postgres.healthy()) {
      const hasTold = this.#told >= this.#asked;
      if (this.#place === 'postgres' && hasTold) return postgres.draw(moneyOf(draw));
      void this.look();
      throw new StoreError('unavailable', 'The counters are being moved to PostgreSQL.');
    }
    if (onStoreLoss === 'closed') {
      throw new StoreError('unavailable', 'Nobody counts budgets: Redis and PostgreSQL are away.');
    }
    this.#warn('budgets_capped', { dollars: openCap / 1e9 });
    const budgets = draw.budgets.map((budget) => ({
      ...budget,
      nanodollars: Math.min(budget.nanodollars, openCap),
    }));
    return this.#capped.draw({ ...moneyOf(draw), budgets });
  }

  #shareOf({ callId, concurrent, requests, tokens }: Draw): Draw {
    const share = (amount: number): number => Math.max(1, Math.floor(amount / this.#instances));
    return {
      callId,
      concurrent: concurrent.map((c) => ({ ...c, most: c.most === 0 ? 0 : share(c.most) })),
      requests: requests.map((r) => ({ ...r, perMinute: share(r.perMinute) })),
      tokens: tokens.map((t) => ({ ...t, perMinute: share(t.perMinute) })),
      budgets: [],
    };
  }

  /** Once a minute. */
  #warn(event: string, fields: { readonly [name: string]: string | number }): void {
    const now = this.#options.clock.now();
    if (now - this.#warnedAt < quietShareMs) return;
    this.#warnedAt = now;
    this.#options.log.error(event, fields);
  }
}

function moneyOf(draw: Draw): Draw {
  return { ...draw, concurrent: [], requests: [], tokens: [] };
}
