/**
 * Admission under load (G2, G5–G10): one object that the data plane asks before it begins anything, and that
 * samples the process several times a second.
 */
import type { ServerResponse } from 'node:http';
import { expectedError, GatewayError } from '../../core/errors.ts';
import type { Clock, Log } from '../../core/runtime.ts';
import { BadKeys } from './bad-keys.ts';
import { type RoomRequest, BodyBudget, SlowBodies } from './body-budget.ts';
import {
  type Collection,
  DeferredWork,
  type LoadSample,
  type LoadSource,
  PressureLevel,
  type Step,
} from './load.ts';
import { CounterMap } from '../../core/counter-map.ts';

// Limits concurrent calls (G2, G6, G8): at most `limits.streams`, and fewer while the event loop is delayed.
// Then each further call would only slow down all others, and refusing it keeps the gateway at its capacity. A
// key above its share is refused before others are.

export interface SlotLimits {
  readonly streams: number;
  /** Share of the slots that a key may hold while slots are scarce and other keys have calls: percent, 1 to 100. */
  readonly keySharePercent: number;
  /** Target for the median delay of the event loop. */
  readonly loopDelayMs: number;
}

interface CallSlotsDeps {
  /** The current limits: a reload changes them. */
  readonly limits: () => SlotLimits;
  readonly clock: Pick<Clock, 'now'>;
}

/** Why there is no slot: all are taken, or the key's share is. */
type NoSlot = 'all' | 'key';

/** Fewer calls than this are never the cause: a turn of the loop for all of them is short. */
export const minSlots = 256;
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
const sharingMs = 60_000;

export class CallSlots {
  readonly #deps: CallSlotsDeps;
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

  constructor(deps: CallSlotsDeps) {
    this.#deps = deps;
  }

  /** Calls that hold a slot. */
  get live(): number {
    return this.#live;
  }

  /** The current cap. */
  get slots(): number {
    return Math.min(this.#deps.limits().streams, this.#borne);
  }

  /** Takes a slot for a call of this key, or returns why there is none. Each slot is released once. */
  enter(key: string): NoSlot | undefined {
    if (key !== this.#lastKey) {
      // The very first key replaces no other.
      if (this.#lastKey !== '') this.#changedAt = this.#deps.clock.now();
      this.#lastKey = key;
    }
    const refused = this.#refusal(key, this.#held.of(key));
    if (refused !== undefined) return refused;
    if (this.#live >= this.slots) this.#reserve(key, 1);
    this.#held.add(key, 1);
    this.#live += 1;
    return undefined;
  }

  /** Whether other keys have made calls within the last minute. */
  othersAsk(key: string): boolean {
    return key !== this.#lastKey || this.#deps.clock.now() - this.#changedAt < sharingMs;
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
    const { streams, loopDelayMs } = this.#deps.limits();
    const now = this.#deps.clock.now();
    const inTime = delayMs < loopDelayMs / 2;
    if (inTime || now - this.#lateAt > inTimeMs) this.#lateSince = undefined;
    if (delayMs > loopDelayMs) {
      if (this.#staysLate(delayMs / loopDelayMs, now)) {
        // A lower cap takes effect as calls end. No calls are admitted until then; lowering it further meanwhile
        // would leave half of the event loop idle for seconds.
        const kept = delayMs > 4 * loopDelayMs ? 0.75 : 0.9;
        if (this.#live <= this.slots) {
          this.#borne = Math.max(minSlots, Math.floor(this.#live * kept));
        }
      }
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
    const refuses = this.#borne < this.#deps.limits().streams;
    return now - this.#lateSince >= burstMs && (refuses || this.#lateness >= burstDepth * burstMs);
  }

  #refusal(key: string, held: number): NoSlot | undefined {
    const { slots } = this;
    if (this.#live < scarce * slots) return undefined;
    const { keySharePercent } = this.#deps.limits();
    const othersAsk = this.othersAsk(key);
    if (othersAsk && held >= Math.max(1, (keySharePercent / 100) * slots)) return 'key';
    if (this.#live < slots) return undefined;
    const spare = Math.ceil(reserve * slots);
    return othersAsk && held < spare && this.#inReserve < spare ? undefined : 'all';
  }
}

function regainedOf(busy: number): number {
  if (busy < busyParts.idle) return regained.idle;
  return busy < busyParts.calm ? regained.calm : regained.near;
}

interface OverloadLimits extends SlotLimits {
  /** Maximum size of a request body. */
  readonly bodyBytes: number;
  /** Memory limit of the process; undefined = the system's. */
  readonly memoryBytes: number | undefined;
  /** Minimum bytes per second of a body. */
  readonly bodyRate: number;
  /** Refused keys per minute and address. */
  readonly badKeys: number;
}

/** Calls whose clients do not read. */
interface SlowReaders {
  /** Cuts the call that has waited longest; false when there is none. */
  cutStalest(error: GatewayError): boolean;
}

interface OverloadDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
  /** The current limits: a reload changes them. */
  readonly limits: () => OverloadLimits;
  readonly load: LoadSource;
  readonly slowReaders: SlowReaders;
  /** Called for each change of the pressure level. */
  readonly changed?: (step: Step, facts: { readonly [name: string]: number }) => void;
  /** Memory limit of the process and maximum heap, in bytes. */
  readonly memory: { readonly process: number; readonly heap: number };
  readonly collectGarbage: (collection: Collection) => void;
}

/** Why a call was refused. */
type ShedReason = 'pressure' | 'slots' | 'key_share' | 'large_body' | 'body_memory';

/** From the first pressure level on, larger bodies are refused. */
const largeBody = 1024 * 1024;
/** Minimum interval of collections, since one takes some hundred ms. */
const collectEveryMs = 10_000;
/** The same while a large body needs memory. */
const collectForBodyMs = 2000;
/** Bodies may fill the memory up to this share, since their garbage takes more for a while. */
const forBodies = { large: 0.78, medium: 0.84 };
/** Garbage is collected before calls are refused. */
const collectFrom = 0.75;
/**
 * A thorough collection takes a second on a full heap, so it runs only if bodies would be refused otherwise.
 */
const thoroughFrom = 0.8;
/**
 * A gateway at rest gives back what its start or its last calls left in the young generation: 14 MB. Calls that come
 * more often than this never wait for it.
 */
const trimAfterMs = 3000;
/** A gateway at rest that holds more collects all garbage: that of long bodies is not in the young generation. */
const muchAtRest = 256 * 1024 * 1024;
/** The next such collection waits for this much more than the last one left: each costs compiled code (docs/maintainer/performance.md). */
const moreAtRest = 64 * 1024 * 1024;
/** Refused calls that get a ledger row, per second; the rest of a flood is counted. */
const rowsPerSecond = 10;
const second = 1000;

export class Overload {
  readonly calls: CallSlots;
  readonly bodies: BodyBudget;
  readonly slowBodies: SlowBodies;
  readonly badKeys: BadKeys;
  /** For work that is due for many connections at once. */
  readonly paced = new DeferredWork();
  readonly #deps: OverloadDeps;
  readonly #pressure = new PressureLevel();
  /** Complete answers that the client has not read yet. */
  readonly #unread = new Set<ServerResponse>();
  #delayMs = 0;
  #rssBytes = 0;
  #wantsRoom = false;
  #collectedAt = Number.NEGATIVE_INFINITY;
  /** Since when no call runs; undefined = the young generation was trimmed since. */
  #restsSince: number | undefined;
  /** A call began since the last sample. */
  #called = false;
  /** Resident memory above which a gateway at rest collects all garbage. */
  #mostAtRest = muchAtRest;
  /** Refused calls since the start. */
  readonly shedBy: { [R in ShedReason]: number } = {
    pressure: 0,
    slots: 0,
    key_share: 0,
    large_body: 0,
    body_memory: 0,
  };
  #shed = 0;
  #shedBefore = 0;
  #shedSince = 0;
  #stop: (() => void) | undefined;

  constructor(deps: OverloadDeps) {
    const { clock, limits } = deps;
    this.#deps = deps;
    this.calls = new CallSlots({ limits, clock });
    this.bodies = new BodyBudget({
      bytes: () => Math.min(this.#memoryBytes / 2, this.#deps.memory.heap),
      hasLeft: (asked) => this.#hasLeft(asked),
      shareOf: (key) => (this.calls.othersAsk(key) ? limits().keySharePercent / 100 : 1),
    });
    this.slowBodies = new SlowBodies({ clock, rate: () => limits().bodyRate });
    this.badKeys = new BadKeys({ clock, perMinute: () => limits().badKeys });
  }

  start(): void {
    this.#restsSince ??= this.#deps.clock.now();
    this.#stop ??= this.#deps.load((sample) => this.#look(sample));
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  get step(): Step {
    return this.#pressure.step;
  }

  /** Largest body that may be read now. A larger one is refused as overload, or as too large for ever. */
  get maxBodyBytes(): number {
    return Math.min(this.#deps.limits().bodyBytes, this.bodies.longest);
  }

  /** @throws GatewayError `overloaded` when bodies of this length are refused now. */
  checkBody(length: number): void {
    if (this.step === 0 || length <= largeBody) return;
    throw this.refusal('The gateway is overloaded and accepts no large bodies', 'large_body');
  }

  /**
   * Takes a slot for a call; `calls.leave` releases it.
   * @throws GatewayError `overloaded`.
   */
  enter(key: string): void {
    this.#called = true;
    if (this.step >= 2) throw this.refusal('The gateway is short of memory', 'pressure');
    const why = this.calls.enter(key);
    if (why === 'all')
      throw this.refusal('The gateway is at its limit of concurrent calls', 'slots');
    if (why === 'key') {
      throw this.refusal('This key is at its share of the concurrent calls', 'key_share');
    }
  }

  /** Runs the work in a slot. @throws GatewayError `overloaded`, and what the work throws. */
  async within<T>(key: string, work: () => Promise<T>): Promise<T> {
    this.enter(key);
    try {
      return await work();
    } finally {
      this.calls.leave(key);
    }
  }

  /** E10; the retry times of callers differ. */
  refusal(why: string, reason: ShedReason): GatewayError {
    this.shedBy[reason] += 1;
    const retryAfterMs = second + Math.floor(this.#deps.random() * 9 * second);
    return expectedError('overloaded', `${why}; retry later.`, { retryAfterMs });
  }

  /** Counts a refused call, and logs the count of each second. Returns whether the call gets a ledger row. */
  noteShed(): boolean {
    const now = this.#deps.clock.now();
    if (now - this.#shedSince >= second) {
      this.#logShed();
      this.#shedSince = now;
    }
    this.#shed += 1;
    return this.#shed - this.#shedBefore <= rowsPerSecond;
  }

  /** An answer is complete; its client may not have read it. */
  answered(response: ServerResponse): void {
    if (response.writableLength === 0 || response.destroyed) return;
    this.#unread.add(response);
    response.once('close', () => this.#unread.delete(response));
  }

  /** By the last sample of the process. */
  get load(): { readonly memoryShare: number; readonly loopDelayMs: number } {
    return { memoryShare: this.#pressure.share, loopDelayMs: this.#delayMs };
  }

  status(): { readonly [name: string]: number } {
    return {
      pressure: this.step,
      memory_share: Math.round(this.#pressure.share * 100) / 100,
      loop_delay_ms: Math.round(this.#delayMs),
      call_slots: this.calls.slots,
      calls_held: this.calls.live,
      calls_shed: this.#shed,
      body_memory: this.bodies.taken,
    };
  }

  get #memoryBytes(): number {
    return this.#deps.limits().memoryBytes ?? this.#deps.memory.process;
  }

  /**
   * Whether the body fits; garbage in its way is collected soon. Values are created faster than samples are
   * taken, and their garbage is in no count, so the current memory of the process decides (G5).
   */
  #hasLeft({ cost, added, size }: RoomRequest): boolean {
    const used = Math.max(this.#rssBytes + added, this.#deps.load.rssBytes?.() ?? 0);
    const has = used + cost <= forBodies[size] * this.#memoryBytes;
    if (!has) this.#wantsRoom = true;
    return has;
  }

  #look(sample: LoadSample): void {
    const { clock } = this.#deps;
    const now = clock.now();
    this.#delayMs = sample.delayMs;
    this.#rssBytes = sample.rssBytes;
    this.bodies.looked();
    this.calls.adapt(sample);
    const idle = this.calls.live === 0;
    const changed = this.#pressure.update({ ...sample, memoryBytes: this.#memoryBytes, idle, now });
    if (changed) this.#logLevelChange();
    // Memory that is collected but not returned to the system would still block the body.
    if (this.#wantsRoom) this.#collect(now, collectForBodyMs, 'compact');
    else if (this.#pressure.share >= thoroughFrom) this.#collect(now, collectEveryMs, 'compact');
    else if (this.#pressure.share >= collectFrom) this.#collect(now, collectEveryMs, 'full');
    else this.#trim(now, idle);
    if (this.step === 3) this.#relieve();
    if (this.#shed > this.#shedBefore && now - this.#shedSince >= second) this.#logShed();
  }

  #collect(now: number, everyMs: number, collection: Collection): void {
    if (now - this.#collectedAt < everyMs) return;
    this.#collectedAt = now;
    this.#wantsRoom = false;
    this.#deps.collectGarbage(collection);
  }

  /** Once after the start, and once after each time in which calls ran. */
  #trim(now: number, idle: boolean): void {
    if (!idle || this.#called) this.#restsSince = now;
    this.#called = false;
    if (this.#restsSince === undefined || now - this.#restsSince < trimAfterMs) return;
    this.#restsSince = undefined;
    if (this.#rssBytes <= this.#mostAtRest) return this.#deps.collectGarbage('young');
    this.#deps.collectGarbage('full');
    const left = this.#deps.load.rssBytes?.() ?? this.#rssBytes;
    this.#mostAtRest = Math.max(muchAtRest, left + moreAtRest);
  }

  /** A few per sample, since memory is freed with a delay. */
  #relieve(): void {
    for (const response of [...this.#unread].slice(0, 8)) response.destroy();
    const why = 'The gateway is out of memory, and the client did not read this answer.';
    const error = new GatewayError('overloaded', why, { retryable: false });
    for (let i = 0; i < 8; i++) if (!this.#deps.slowReaders.cutStalest(error)) return;
  }

  #logLevelChange(): void {
    const { log } = this.#deps;
    const { step, share } = this.#pressure;
    const fields = {
      step,
      memory_share: Math.round(share * 100) / 100,
      loop_delay_ms: Math.round(this.#delayMs),
      calls: this.calls.live,
    };
    if (step === 0) log.info('pressure', fields);
    else log.warn('pressure', fields);
    const { changed } = this.#deps;
    changed?.(step, fields);
  }

  #logShed(): void {
    const calls = this.#shed - this.#shedBefore;
    this.#shedBefore = this.#shed;
    if (calls > 0) this.#deps.log.warn('calls_shed', { calls, slots: this.calls.slots });
  }
}
