/**
 * Rates and slots counted in Redis, and while it is away by each gateway's share of the limit: limit ÷ gateways,
 * as many as there were when Redis answered last, at least 1 (F91).
 */
import type { Clock, Log } from '../../core/runtime.ts';
import { StoreError } from '../store-error.ts';
import type { ReserveRequest, ReserveResult, RateCounters, Used } from './counters.ts';
import { MemoryCounters } from './memory-counters.ts';
import type { RedisCounters } from './redis-counters.ts';

export interface RedisRatesOptions {
  readonly redis: RedisCounters;
  readonly clock: Clock;
  readonly log: Log;
  /** This gateway's own name among the others. */
  readonly instance: string;
  /** Whether the database answers: without both, nothing is counted for longer than a minute. */
  isStoreUp(): boolean;
}

const lookEveryMs = 250;
/** The time for which a gateway enforces its share without a log line. Then it logs this, and refuses calls if the database is away too. */
const quietShareMs = 60_000;

export class RedisRates implements RateCounters {
  readonly #options: RedisRatesOptions;
  /** Shares, while Redis is away. */
  readonly #share: MemoryCounters;
  readonly #timer: NodeJS.Timeout;
  #looking: Promise<void> | undefined;
  #instances = 1;
  /** Monotonic ms; undefined while Redis counts. */
  #lostSince: number | undefined;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(options: RedisRatesOptions) {
    this.#options = options;
    this.#share = new MemoryCounters(options.clock);
    this.#timer = setInterval(() => void this.look(), lookEveryMs);
    this.#timer.unref();
  }

  /** Waits for the first connection, so that the first call waits for nothing. Never throws. */
  async begin(): Promise<void> {
    await this.#options.redis.connected();
    await this.look();
  }

  wall(): number {
    return this.#options.redis.wall();
  }

  /** Whether Redis counts now. */
  get counts(): boolean {
    return this.#lostSince === undefined;
  }

  async reserve(request: ReserveRequest, peek = false): Promise<ReserveResult> {
    const { redis } = this.#options;
    if (!redis.lost) {
      try {
        const result = await redis.reserve(request, peek);
        this.#lostSince = undefined;
        return result;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
      }
    }
    this.#lose();
    return this.#reserveShare(request, peek);
  }

  settle(callId: string, used: Used): void {
    this.#share.settle(callId, used);
    this.#options.redis.settle(callId, used);
  }

  releaseSlots(callId: string): void {
    this.#share.releaseSlots(callId);
    this.#options.redis.releaseSlots(callId);
  }

  healthy(): boolean {
    const { redis, isStoreUp } = this.#options;
    return !redis.lost || isStoreUp() || !this.#isOverdue();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
    await this.#options.redis.close();
  }

  /** Looks whether Redis answers, and how many gateways there are. Never throws. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { redis, instance } = this.#options;
    if (!(await redis.look())) return;
    if (this.#lostSince !== undefined) this.#lostSince = undefined;
    // Where it fails the last known number continues to hold.
    this.#instances = await redis.instances(instance).catch(() => this.#instances);
  }

  /** From now on rates are shares. The slots of running calls count in them. */
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

  #isOverdue(): boolean {
    const since = this.#lostSince;
    return since !== undefined && this.#options.clock.now() - since > quietShareMs;
  }

  /** @throws StoreError */
  #reserveShare(request: ReserveRequest, peek: boolean): ReserveResult {
    const { clock, log, isStoreUp } = this.#options;
    if (this.#isOverdue()) {
      if (!isStoreUp()) {
        throw new StoreError(
          'unavailable',
          'Rates cannot be counted: Redis and PostgreSQL are unavailable.',
        );
      }
      const now = clock.now();
      if (now - this.#warnedAt >= quietShareMs) {
        this.#warnedAt = now;
        log.error('limits_by_share', { instances: this.#instances });
      }
    }
    const result = this.#share.reserve(this.#shareOf(request));
    if (peek && result.granted) this.#share.undo(request.callId);
    return result;
  }

  #shareOf({ callId, concurrent, requests, tokens }: ReserveRequest): ReserveRequest {
    const share = (amount: number): number => Math.max(1, Math.floor(amount / this.#instances));
    return {
      callId,
      concurrent: concurrent.map((c) => ({ ...c, most: c.most === 0 ? 0 : share(c.most) })),
      requests: requests.map((r) => ({ ...r, perMinute: share(r.perMinute) })),
      tokens: tokens.map((t) => ({ ...t, perMinute: share(t.perMinute) })),
      budgets: [],
    };
  }
}
