/**
 * Limits concurrent calls (G2, G6, G8): at most `limits.streams`, and fewer while the event loop is delayed.
 * Then each further call would only slow down all others, and refusing it keeps the gateway at its capacity. A
 * key above its share is refused before others are.
 */
import type { Clock } from '../../core/runtime.ts';
import { CounterMap } from '../../core/counter-map.ts';
import type { LoadSample } from './load.ts';

export interface SlotLimits {
  readonly streams: number;
  /** Share of the slots that a key may hold while slots are scarce and other keys have calls. */
  /** Percent, 1 to 100. */
  readonly keySharePercent: number;
  /** Target for the median delay of the event loop. */
  readonly loopDelayMs: number;
}

export interface CallSlotsParts {
  /** The current limits: a reload changes them. */
  readonly limits: () => SlotLimits;
  readonly clock: Pick<Clock, 'now'>;
}

/** Why there is no slot: all are taken, or the key's share is. */
export type NoSlot = 'all' | 'key';

/** Fewer calls than this are never the cause: a turn of the loop for all of them is short. */
export const leastSlots = 256;
/**
 * A burst of calls is late for a moment and is served nevertheless; it is not lasting overload. While calls are
 * refused already, the target is exceeded again and again, and one such second is enough.
 */
const burstMs = 1000;
/**
 * A burst may be this many times later than the bound within that second, or less late for longer. Overload is
 * soon much later than that. A thousand streams that open in two seconds at a freshly started process are done
 * by then.
 */
const burstDepth = 4;
/** A loop that was in time for this long has recovered. */
const inTimeMs = 3000;
/** Shares of busy time. A loop that is busier than `calm` is near its limit, even if it is not late yet. */
const busyParts = { idle: 0.5, calm: 0.9 };
/**
 * Growth of the cap per sample, four a second: 15 % while the loop is half idle, 5 % while it has some idle time.
 * Near the limit each step may be the last one, so 1 %. Without any growth, a gateway with a loop that is never
 * quite idle would keep a low cap for ever.
 */
const regained = { idle: 1.15, calm: 1.05, near: 1.01 };
/** Slots are scarce from this share on. */
const scarce = 0.75;
/**
 * Extra slots for keys that hold less than this share: they did not fill the gateway. They exist even if the
 * cap was lowered and more calls run than allowed.
 */
const reserve = 0.1;
/** Another key counts as active for this long after its last call. */
const besideMs = 60_000;

export class CallSlots {
  readonly #parts: CallSlotsParts;
  readonly #held = new CounterMap();
  /** Calls of the reserve. */
  readonly #reserved = new CounterMap();
  #inReserve = 0;
  #live = 0;
  /** The cap that the event loop sustains. */
  #borne = Number.POSITIVE_INFINITY;
  #lateSince: number | undefined;
  /**
   * Accumulated lateness, in ms of the target: twice as late counts twice. Each sample covers the time since
   * the previous one.
   */
  #lateness = 0;
  #lateAt = Number.NEGATIVE_INFINITY;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #lastKey = '';
  #changedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: CallSlotsParts) {
    this.#parts = parts;
  }

  /** Calls that hold a slot. */
  get live(): number {
    return this.#live;
  }

  /** The current cap. */
  get slots(): number {
    return Math.min(this.#parts.limits().streams, this.#borne);
  }

  /** Takes a slot for a call of this key, or returns why there is none. Each slot is released once. */
  enter(key: string): NoSlot | undefined {
    this.#note(key);
    const refused = this.#refusal(key, this.#held.of(key));
    if (refused !== undefined) return refused;
    if (this.#live >= this.slots) this.#reserve(key, 1);
    this.#held.add(key, 1);
    this.#live += 1;
    return undefined;
  }

  /** Whether other keys have made calls within the last minute. */
  othersAsk(key: string): boolean {
    return key !== this.#lastKey || this.#parts.clock.now() - this.#changedAt < besideMs;
  }

  leave(key: string): void {
    this.#live -= 1;
    this.#held.add(key, -1);
    if (this.#reserved.of(key) > 0) this.#reserve(key, -1);
  }

  #reserve(key: string, change: 1 | -1): void {
    this.#reserved.add(key, change);
    this.#inReserve += change;
  }

  /** Called with each sample: lowers the cap while the loop stays late, and raises it slowly afterwards. */
  adapt({ delayMs, busy }: Pick<LoadSample, 'delayMs' | 'busy'>): void {
    const { streams, loopDelayMs } = this.#parts.limits();
    const now = this.#parts.clock.now();
    const inTime = delayMs < loopDelayMs / 2;
    if (inTime || now - this.#lateAt > inTimeMs) this.#lateSince = undefined;
    if (delayMs > loopDelayMs) {
      if (this.#staysLate(delayMs / loopDelayMs, now))
        this.#take(delayMs > 4 * loopDelayMs ? 0.75 : 0.9);
    } else if (this.#lateSince === undefined && this.#borne < streams) {
      this.#borne = Math.ceil(this.#borne * regainedOf(inTime ? busy : 1));
    }
    this.#lookedAt = now;
  }

  /** Whether lateness is no longer a burst. @param depth multiples of the target. */
  #staysLate(depth: number, now: number): boolean {
    if (this.#lateSince === undefined) {
      this.#lateSince = now;
      this.#lateness = 0;
    } else this.#lateness += depth * (now - this.#lookedAt);
    this.#lateAt = now;
    const refuses = this.#borne < this.#parts.limits().streams;
    return now - this.#lateSince >= burstMs && (refuses || this.#lateness >= burstDepth * burstMs);
  }

  /**
   * A lower cap takes effect as calls end. No calls are admitted until then; lowering it further meanwhile
   * would leave half of the event loop idle for seconds.
   */
  #take(kept: number): void {
    if (this.#live > this.slots) return;
    this.#borne = Math.max(leastSlots, Math.floor(this.#live * kept));
  }

  #refusal(key: string, held: number): NoSlot | undefined {
    const { slots } = this;
    if (this.#live < scarce * slots) return undefined;
    const { keySharePercent } = this.#parts.limits();
    const othersAsk = this.othersAsk(key);
    if (othersAsk && held >= Math.max(1, (keySharePercent / 100) * slots)) return 'key';
    if (this.#live < slots) return undefined;
    const spare = Math.ceil(reserve * slots);
    return othersAsk && held < spare && this.#inReserve < spare ? undefined : 'all';
  }

  #note(key: string): void {
    if (key === this.#lastKey) return;
    // The very first key replaces no other.
    if (this.#lastKey !== '') this.#changedAt = this.#parts.clock.now();
    this.#lastKey = key;
  }
}

function regainedOf(busy: number): number {
  if (busy < busyParts.idle) return regained.idle;
  return busy < busyParts.calm ? regained.calm : regained.near;
}
