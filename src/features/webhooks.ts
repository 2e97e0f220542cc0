/**
 * Posts events to the addresses of `webhooks:`, with retries. Nothing here holds up a call: what
 * cannot be sent in time is dropped, and that is logged (F95).
 */
import { createHash } from 'node:crypto';
import { GatewayError } from '../core/errors.ts';
import type { Clock, Log, NewId } from '../core/runtime.ts';
import type { Secret } from '../core/secret.ts';
import { Pieces } from '../json/pieces.ts';
import type { JsonObject } from '../json/value.ts';
import type { HttpClient } from '../wire/http-client.ts';
import { requestWhole } from '../wire/exchange.ts';
import type { GatewayEvent } from './events.ts';
import { type WebhookFormat, webhookRequest } from './webhook-formats.ts';

export interface Webhook {
  readonly url: string;
  /** Default: json. */
  readonly format?: WebhookFormat;
  /** Signs or routes events; absent where the address alone is the secret. */
  readonly secret?: Secret;
  /** Beginnings of the types of events that go there, e.g. `budget`; absent = all. */
  readonly events?: readonly string[];
}

interface WebhookDeps {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: NewId;
  /** A number in [0, 1), for jitter. */
  readonly random: () => number;
  /** The current ones: a reload replaces them. */
  readonly hooks: () => readonly Webhook[];
  /** The gateway that sends it. */
  readonly source?: string;
  /** Before the second try; doubles from there. */
  readonly firstRetryMs?: number;
  /** Called with each event before it is sent. */
  readonly onEvent?: (event: GatewayEvent) => void;
  /** Called for each event that a hook did not get. */
  readonly failed?: (failure: {
    readonly host: string;
    readonly event: string;
    readonly reason: string;
  }) => void;
}

/** One delivery that failed. */
export interface WebhookFailure {
  /** Ms since the epoch. */
  readonly at: number;
  /** Type of the event. */
  readonly event: string;
  readonly reason: string;
}

/** A hook and what became of its events since the start of the gateway. */
export interface WebhookState {
  readonly id: string;
  readonly hook: Webhook;
  readonly host: string;
  readonly delivered: number;
  readonly dropped: number;
  readonly pending: number;
  /** Ms since the epoch; undefined: none yet. */
  readonly deliveredAt: number | undefined;
  /** The newest first. */
  readonly failures: readonly WebhookFailure[];
}

/** What became of a test event. */
export interface WebhookTest {
  readonly delivered: boolean;
  /** Why not. */
  readonly reason?: string;
  /** Until the answer. */
  readonly ms: number;
}

/** Events of one hook that wait or are on their way: one that hangs takes nothing from the others. */
const maxPending = 100;
const tries = 6;
const firstRetryMs = 1000;
const limits = { timeoutMs: 10_000, maxBytes: 64 * 1024 } as const;
const connectMs = 5000;
const maxFailures = 5;
/** Hooks that no reload has left are counted on: a bound for those that reloads leave behind. */
const maxTallies = 100;

interface Tally {
  delivered: number;
  dropped: number;
  pending: number;
  deliveredAt: number | undefined;
  failures: WebhookFailure[];
}

export class Webhooks {
  readonly #deps: WebhookDeps;
  readonly #waits = new Set<() => void>();
  #dropped = 0;
  #delivered = 0;
  /** By `idOf`. */
  readonly #tallies = new Map<string, Tally>();
  #closed = false;

  constructor(deps: WebhookDeps) {
    this.#deps = deps;
  }

  /** Events since the start, each as often as there are hooks for it. */
  get counts(): { readonly dropped: number; readonly delivered: number; readonly pending: number } {
    let pending = 0;
    for (const tally of this.#tallies.values()) pending += tally.pending;
    return { dropped: this.#dropped, delivered: this.#delivered, pending };
  }

  /** The hooks as they are configured now. */
  states(): readonly WebhookState[] {
    return this.#deps.hooks().map((hook) => {
      const id = idOf(hook);
      return { id, hook, host: hostOf(hook), ...(this.#tallies.get(id) ?? newTally()) };
    });
  }

  /** Never throws, never waits. */
  tell(type: string, data: JsonObject): void {
    const event = this.#eventOf(type, data);
    this.#deps.onEvent?.(event);
    for (const hook of this.#deps.hooks()) {
      if (hook.events?.some((group) => type.startsWith(`${group}.`)) === false) continue;
      const tally = this.#tallyOf(hook);
      if (this.#closed || tally.pending >= maxPending) {
        this.#drop(hook, event, 'too many are waiting');
        continue;
      }
      tally.pending += 1;
      void this.#deliver(hook, event).finally(() => (tally.pending -= 1));
    }
  }

  /** Posts a test event to one hook, once. Undefined: there is no such hook. Never throws. */
  async test(id: string): Promise<WebhookTest | undefined> {
    const hook = this.#deps.hooks().find((each) => idOf(each) === id);
    if (hook === undefined) return undefined;
    const event = this.#eventOf('webhook.test', {});
    const { clock } = this.#deps;
    const began = clock.now();
    const result = await this.#post(hook, event);
    const ms = Math.round(clock.now() - began);
    if (result === undefined) {
      this.#noteDelivered(hook);
      return { delivered: true, ms };
    }
    this.#noteFailure(hook, event, result.reason);
    return { delivered: false, reason: result.reason, ms };
  }

  /** What was not delivered by now is given up. */
  close(): void {
    this.#closed = true;
    for (const wake of this.#waits) wake();
  }

  #eventOf(type: string, data: JsonObject): GatewayEvent {
    const { newId, clock, source = '' } = this.#deps;
    const created = new Date(clock.wall()).toISOString();
    return { id: newId('evt_'), type, created_at: created, source, data };
  }

  #tallyOf(hook: Webhook): Tally {
    const id = idOf(hook);
    const known = this.#tallies.get(id);
    if (known !== undefined) return known;
    if (this.#tallies.size >= maxTallies) this.#forgetOne();
    const tally = newTally();
    this.#tallies.set(id, tally);
    return tally;
  }

  #forgetOne(): void {
    const current = new Set(this.#deps.hooks().map(idOf));
    const gone = [...this.#tallies].find(([id, { pending }]) => pending === 0 && !current.has(id));
    if (gone !== undefined) this.#tallies.delete(gone[0]);
  }

  async #deliver(hook: Webhook, event: GatewayEvent): Promise<void> {
    const { random } = this.#deps;
    let reason = 'the gateway stopped';
    for (let attempt = 0; attempt < tries && !this.#closed; attempt++) {
      if (attempt > 0)
        await this.#wait(
          (0.5 + random() / 2) * ((this.#deps.firstRetryMs ?? firstRetryMs) * 2 ** (attempt - 1)),
        );
      if (this.#closed) break;
      const result = await this.#post(hook, event);
      if (result === undefined) {
        this.#delivered += 1;
        this.#noteDelivered(hook);
        return;
      }
      ({ reason } = result);
      if (result.final) break;
    }
    this.#drop(hook, event, reason);
  }

  #noteDelivered(hook: Webhook): void {
    const tally = this.#tallyOf(hook);
    tally.delivered += 1;
    tally.deliveredAt = this.#deps.clock.wall();
  }

  #drop(hook: Webhook, event: GatewayEvent, reason: string): void {
    const host = hostOf(hook);
    this.#dropped += 1;
    this.#tallyOf(hook).dropped += 1;
    this.#noteFailure(hook, event, reason);
    this.#deps.log.error('webhook_dropped', { id: event.id, host, reason });
    this.#deps.failed?.({ host, event: event.type, reason });
  }

  #noteFailure(hook: Webhook, { type }: GatewayEvent, reason: string): void {
    const tally = this.#tallyOf(hook);
    const failure = { at: this.#deps.clock.wall(), event: type, reason };
    tally.failures = [failure, ...tally.failures].slice(0, maxFailures);
  }

  /** Undefined when it arrived. */
  async #post(
    hook: Webhook,
    event: GatewayEvent,
  ): Promise<{ readonly reason: string; readonly final: boolean } | undefined> {
    const { client, clock } = this.#deps;
    const { origin, pathname, search } = new URL(hook.url);
    const { headers, body } = webhookRequest(event, hook, Math.floor(clock.wall() / 1000));
    try {
      const endpoint = { origin, path: pathname + search, headers: [] };
      const request = {
        endpoint,
        method: 'POST',
        headers,
        body: Pieces.of(Buffer.from(body)),
      } as const;
      const { status } = await requestWhole(client, { ...request, connectMs }, limits);
      if (status >= 200 && status < 300) return undefined;
      const again = status >= 500 || status === 408 || status === 429;
      return { reason: `status ${status}`, final: !again };
    } catch (error) {
      return { reason: reasonOf(error), final: false };
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#waits.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      timer.unref();
      this.#waits.add(wake);
    });
  }
}

/** The detail names the origin, where the message says "the provider". */
function reasonOf(error: unknown): string {
  if (error instanceof GatewayError && error.detail !== undefined) return error.detail;
  return error instanceof Error ? error.message : String(error);
}

function newTally(): Tally {
  return { delivered: 0, dropped: 0, pending: 0, deliveredAt: undefined, failures: [] };
}

/** Names a hook without its address, which often is a secret. */
function idOf({ url, format = 'json', events = [] }: Webhook): string {
  const text = JSON.stringify([url, format, events]);
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

/** Paths of hooks often are secrets. */
function hostOf({ url }: Webhook): string {
  return new URL(url).host;
}
