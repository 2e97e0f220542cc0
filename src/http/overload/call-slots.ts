/**
 * How many calls run at the same time (G2, G6, G8). At most `limits.streams`; fewer while the event loop
 * is late: then each further call only makes all of them slower, and refusing it is what keeps the
 * gateway at its capacity. A key that would hold more than its share is refused before the others are.
 */
import type { Clock } from '../../core/runtime.ts';
import { CounterMap } from '../../core/counter-map.ts';
import type { LoadSample } from './load.ts';

export interface SlotLimits {
  readonly streams: number;
  /** Part of the slots, 0 to 1, that a key may hold while slots are scarce and other keys ask too. */
  /** Of the calls, 1 to 100. */
  readonly keySharePercent: number;
  /** The usual turn of the event loop may be so late. */
  readonly loopDelayMs: number;
}

export interface CallSlotsParts {
  /** The current ones: a reload changes them. */
  readonly limits: () => SlotLimits;
  readonly clock: Pick<Clock, 'now'>;
}

/** Why there is no slot: all are taken, or this key's share is. */
export type NoSlot = 'all' | 'key';

/** Fewer calls than this are never the cause: a turn of the loop for all of them is short. */
export const leastSlots = 256;
/**
 * Many calls at once are late for a moment, and served all the same; no load that stays. Where calls are refused
 * already the bound is met again and again, and such a second is enough.
 */
const burstMs = 1000;
/**
 * Else a burst may be so many times later than the bound for that second, or less late for longer: what is beyond
 * all that the loop bears is soon much later than that, while a thousand streams that are opened in two seconds by a
 * process that has just started are through by then.
 */
const burstDepth = 4;
/** A loop that was in time for so long is not late any more. */
const inTimeMs = 3000;
/** Of its time. A loop that is busier than the second is near its bound, however early it still is. */
const busyParts = { idle: 0.5, calm: 0.9 };
/**
 * How much more a look gives back: three quarters a second while the loop has half of its time left, a fifth
 * while it has some. Near the bound each step may be the last one, so a twenty-fifth; but none at all would
 * leave few slots for good to a gateway whose loop is never quite idle, and which has long been in time.
 */
const regained = { idle: 1.15, calm: 1.05, near: 1.01 };
/** From this part of the slots on they are scarce. */
const scarce = 0.75;
/**
 * Beyond the slots, for keys that hold less than this: their callers did not fill the gateway. They are
 * there also where slots were taken away, and more calls run than may.
 */
const reserve = 0.1;
/** Another key counts as one that asks for so long after it did. */
const besideMs = 60_000;

export class CallSlots {
  readonly #parts: CallSlotsParts;
  readonly #held = new CounterMap();
  /** Of them, those in the reserve. */
  readonly #reserved = new CounterMap();
  #inReserve = 0;
  #live = 0;
  /** What the event loop bears. */
  #borne = Number.POSITIVE_INFINITY;
  #lateSince: number | undefined;
  /**
   * How late it was for how long, in ms of the bound: twice as late counts twice. A look tells of the time since
   * the one before it, whether that one was late or not.
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

  /** How many there are now. */
  get slots(): number {
    return Math.min(this.#parts.limits().streams, this.#borne);
  }

  /** Takes a slot for a call of this key, or tells why there is none. Each one taken is left once. */
  enter(key: string): NoSlot | undefined {
    this.#note(key);
    const refused = this.#refusal(key, this.#held.of(key));
    if (refused !== undefined) return refused;
    if (this.#live >= this.slots) this.#reserve(key, 1);
    this.#held.add(key, 1);
    this.#live += 1;
    return undefined;
  }

  /** Whether keys beside this one have asked within the last minute. */
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

  /** Called with each sample: fewer slots while the loop stays late, slowly more again afterwards. */
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

  /** The loop is late: whether that is no burst any more. @param depth how many times the bound. */
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
   * What was taken before comes to bear as calls end: until then nobody gets in, and taking more would
   * leave half of the loop idle for seconds.
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
    // The very first key follows nobody.
    if (this.#lastKey !== '') this.#changedAt = this.#parts.clock.now();
    this.#lastKey = key;
  }
}

function regainedOf(busy: number): number {
  if (busy < busyParts.idle) return regained.idle;
  return busy < busyParts.calm ? regained.calm : regained.near;
}
