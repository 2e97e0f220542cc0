/**
 * Posts events to the addresses of `webhooks:`, signed, with retries. Nothing here holds up a call: what
 * cannot be sent in time is dropped, and that is logged (F95).
 */
import { createHmac } from 'node:crypto';
import type { Clock, Later, Log, NewId } from '../core/runtime.ts';
import type { Secret } from '../core/secret.ts';
import { Pieces } from '../json/pieces.ts';
import type { JsonObject } from '../json/value.ts';
import type { HttpClient } from '../wire/http-client.ts';
import { requestWhole } from '../wire/exchange.ts';

export interface Webhook {
  readonly url: string;
  readonly secret: Secret;
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
}

/** Events of one hook that wait or are on their way: one that hangs takes nothing from the others. */
const maxPending = 100;
const tries = 6;
const firstRetryMs = 1000;
const limits = { timeoutMs: 10_000, maxBytes: 64 * 1024 } as const;
const connectMs = 5000;

export class Webhooks {
  readonly #deps: WebhookDeps;
  readonly #waits = new Set<() => void>();
  #dropped = 0;
  #delivered = 0;
  /** By address. */
  readonly #pending = new Map<string, number>();
  #closed = false;

  constructor(deps: WebhookDeps) {
    this.#deps = deps;
  }

  /** Events since the start, each as often as there are hooks for it. */
  get counts(): { readonly dropped: number; readonly delivered: number; readonly pending: number } {
    let pending = 0;
    for (const each of this.#pending.values()) pending += each;
    return { dropped: this.#dropped, delivered: this.#delivered, pending };
  }

  /** Never throws, never waits. */
  tell(type: string, data: JsonObject): void {
    const { newId, clock, hooks, log } = this.#deps;
    const id = newId('evt_');
    const { source = '' } = this.#deps;
    const created = new Date(clock.wall()).toISOString();
    const event = { id, type, created_at: created, source, data };
    const body = JSON.stringify(event);
    for (const hook of hooks()) {
      if (hook.events?.some((group) => type.startsWith(`${group}.`)) === false) continue;
      const pending = this.#pending.get(hook.url) ?? 0;
      if (this.#closed || pending >= maxPending) {
        this.#dropped += 1;
        log.error('webhook_dropped', { id, host: hostOf(hook), reason: 'too many are waiting' });
        continue;
      }
      this.#pending.set(hook.url, pending + 1);
      void this.#deliver(hook, { id, type, body }).finally(() => this.#done(hook.url));
    }
  }

  #done(url: string): void {
    const pending = this.#pending.get(url) ?? 1;
    if (pending === 1) this.#pending.delete(url);
    else this.#pending.set(url, pending - 1);
  }

  /** What was not delivered by now is given up. */
  close(): void {
    this.#closed = true;
    for (const wake of this.#waits) wake();
  }

  async #deliver(hook: Webhook, event: Outgoing): Promise<void> {
    const { log, random } = this.#deps;
    let reason = '';
    for (let attempt = 0; attempt < tries && !this.#closed; attempt++) {
      if (attempt > 0)
        await this.#wait(
          (0.5 + random() / 2) * ((this.#deps.firstRetryMs ?? firstRetryMs) * 2 ** (attempt - 1)),
        );
      if (this.#closed) break;
      const result = await this.#post(hook, event);
      if (result === undefined) {
        this.#delivered += 1;
        return;
      }
      ({ reason } = result);
      if (result.final) break;
    }
    this.#dropped += 1;
    log.error('webhook_dropped', { id: event.id, host: hostOf(hook), reason });
  }

  /** Undefined when it arrived. */
  async #post(
    { url, secret }: Webhook,
    { id, type, body }: Outgoing,
  ): Promise<{ readonly reason: string; readonly final: boolean } | undefined> {
    const { client, clock } = this.#deps;
    const { origin, pathname, search } = new URL(url);
    const seconds = Math.floor(clock.wall() / 1000);
    const signed = createHmac('sha256', secret.reveal()).update(`${seconds}.${body}`).digest('hex');
    const headers = [
      'content-type',
      'application/json',
      'x-gateway-event',
      type,
      'x-gateway-delivery',
      id,
      'x-gateway-signature',
      `t=${seconds},v1=${signed}`,
    ];
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
      return { reason: error instanceof Error ? error.message : String(error), final: false };
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

interface Outgoing {
  readonly id: string;
  readonly type: string;
  readonly body: string;
}

/** Paths of hooks often are secrets. */
function hostOf({ url }: Webhook): string {
  return new URL(url).host;
}

// What becomes of parts of the gateway that fail and come back, as events for webhooks: one when it gets
// worse, one when it is well again, and no more than these two a minute and subject, however it flaps: what fails again
// within the minute is reported at its end, unless it was undone.

interface HealthChange {
  /** What it is about: changes of one subject follow each other. */
  readonly subject: string;
  /** 0 = well; what is higher is worse. */
  readonly level: number;
  readonly type: string;
  readonly data: JsonObject;
}

interface HealthEventDeps {
  readonly tell: (type: string, data: JsonObject) => void;
  readonly clock: Clock;
  readonly later: Later;
}

interface Subject {
  /** The level that was reported last. */
  reported: number;
  /** When a bad state was last reported, monotonic ms. */
  badAt: number;
  latest: HealthChange;
  /** Since the last event. */
  changes: number;
  cancel: (() => void) | undefined;
}

const everyMs = 60_000;
const maxSubjects = 1000;

export class HealthEvents {
  readonly #deps: HealthEventDeps;
  readonly #subjects = new Map<string, Subject>();

  constructor(deps: HealthEventDeps) {
    this.#deps = deps;
  }

  /** Never throws, never waits. */
  saw(change: HealthChange): void {
    const { clock, later } = this.#deps;
    const known = this.#subjects.get(change.subject);
    if (known === undefined && change.level === 0) return;
    const subject = known ?? this.#begin(change);
    subject.latest = change;
    subject.changes += 1;
    const waitMs = subject.badAt + everyMs - clock.now();
    // A state that gets worse after it was reported as bad is reported at once, and so is its end.
    if (waitMs <= 0 || change.level === 0 || subject.reported > 0) this.#tell(subject);
    else {
      subject.cancel ??= later(waitMs, () => {
        subject.cancel = undefined;
        this.#tell(subject);
      });
    }
  }

  close(): void {
    for (const { cancel } of this.#subjects.values()) cancel?.();
    this.#subjects.clear();
  }

  #begin(latest: HealthChange): Subject {
    if (this.#subjects.size >= maxSubjects) this.#forgetOne();
    const badAt = Number.NEGATIVE_INFINITY;
    const subject = { reported: 0, badAt, latest, changes: 0, cancel: undefined };
    this.#subjects.set(latest.subject, subject);
    return subject;
  }

  /** Rather one that is well. */
  #forgetOne(): void {
    const all = [...this.#subjects];
    const [name, subject] =
      all.find(([, { reported, cancel }]) => reported === 0 && !cancel) ?? all[0] ?? [];
    if (name === undefined) return;
    subject?.cancel?.();
    this.#subjects.delete(name);
  }

  #tell(subject: Subject): void {
    const { latest, reported, changes } = subject;
    const isNews = latest.level === 0 ? reported > 0 : latest.level > reported;
    if (!isNews) return;
    subject.reported = latest.level;
    if (latest.level > 0) subject.badAt = this.#deps.clock.now();
    subject.changes = 0;
    this.#deps.tell(latest.type, { ...latest.data, changes });
  }
}
