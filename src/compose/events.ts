/**
 * Part of the composition root: routes events of budgets, targets, stores and the gateway itself to log,
 * metrics and webhooks.
 */
import { hostname } from 'node:os';
import type { JsonObject } from '../json/value.ts';
import type { Log } from '../core/runtime.ts';
import type { DeadCredential, TargetChange } from '../gateway/targets/health.ts';
import { later, newId, systemClock as clock } from '../observe/runtime.ts';
import type { EventSource } from '../admin/events.ts';
import { EventLog } from '../features/events.ts';
import { HealthEvents } from '../features/health-events.ts';
import { type Webhook, Webhooks } from '../features/webhooks.ts';
import { deadCredentialJson } from './local.ts';
import type { HttpClient } from '../wire/http-client.ts';

interface EventDeps {
  readonly client: HttpClient;
  readonly log: Log;
  /** The current ones: a reload replaces them. */
  readonly hooks: () => readonly Webhook[];
  /** Why the store cannot be used; undefined when it can. */
  readonly storeFailure: () => string | undefined;
}

/** The events that the data plane reports. */
export type PlaneEvents = Pick<
  Events,
  'tell' | 'credentialOut' | 'targetChanged' | 'pressureChanged' | 'counts'
>;

const lookEveryMs = 1000;

export class Events {
  readonly #kept = new EventLog();
  readonly #since = clock.wall();
  readonly #webhooks: Webhooks;
  readonly #health: HealthEvents;
  readonly #storeFailure: EventDeps['storeFailure'];
  #timer: NodeJS.Timeout | undefined;
  #storeReason: string | undefined;

  constructor(deps: EventDeps) {
    const { storeFailure } = deps;
    this.#webhooks = new Webhooks({
      ...deps,
      clock,
      newId,
      random: Math.random,
      source: hostname(),
      onEvent: (event) => this.#kept.add(event),
      failed: (failure) => this.note('webhook.failed', failure),
    });
    const tell = (type: string, data: JsonObject): void => this.#webhooks.tell(type, data);
    this.#health = new HealthEvents({ clock, later, tell });
    this.#storeFailure = storeFailure;
  }

  /** Examines the store from now on. */
  start(): void {
    this.#timer ??= setInterval(() => this.#look(), lookEveryMs).unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#health.close();
    this.#webhooks.close();
  }

  get counts(): Webhooks['counts'] {
    return this.#webhooks.counts;
  }

  tell(type: string, data: JsonObject): void {
    this.#webhooks.tell(type, data);
  }

  /** Adds an event to the list without sending it to webhooks. */
  note(type: string, data: JsonObject): void {
    const created = new Date(clock.wall()).toISOString();
    this.#kept.add({ id: newId('evt_'), type, created_at: created, source: hostname(), data });
  }

  /** As the admin API shows them. */
  get source(): EventSource {
    const kept = this.#kept;
    return {
      since: this.#since,
      list: () => kept.list(),
      get forgotten() {
        return kept.forgotten;
      },
      hooks: () => this.#webhooks.states(),
      test: (id) => this.#webhooks.test(id),
    };
  }

  credentialOut(dead: DeadCredential): void {
    const data = deadCredentialJson(dead);
    const subject = credentialSubject(dead.provider, dead.credential);
    this.#health.saw({ subject, level: 1, type: 'credential.out', data });
  }

  targetChanged(change: TargetChange): void {
    const { provider, model, credential, out } = change;
    if (model === undefined) {
      // The event says more than the name of the credential.
      if (out !== undefined) return;
      const data = { provider, credential: credential ?? null };
      const subject = credentialSubject(provider, credential);
      return this.#health.saw({ subject, level: 0, type: 'credential.back', data });
    }
    const target = `${provider}/${model}`;
    const state =
      out === undefined
        ? { level: 0, type: 'target.back', data: { target } }
        : { level: 1, type: 'target.out', data: outJson(target, out) };
    this.#health.saw({ subject: `target ${target}`, ...state });
  }

  pressureChanged(step: number, facts: JsonObject): void {
    const type = step === 0 ? 'overload.left' : 'overload.entered';
    this.#health.saw({ subject: 'overload', level: step, type, data: { ...facts, step } });
  }

  #look(): void {
    const reason = this.#storeFailure();
    if (reason === this.#storeReason) return;
    this.#storeReason = reason;
    const state =
      reason === undefined
        ? { level: 0, type: 'store.up', data: {} }
        : { level: 1, type: 'store.down', data: { reason } };
    this.#health.saw({ subject: 'store', ...state });
  }
}

function outJson(target: string, out: NonNullable<TargetChange['out']>): JsonObject {
  return { target, error: out.error, failures: out.failures, retry_after_s: out.ms / 1000 };
}

function credentialSubject(provider: string, credential: string | undefined): string {
  return `credential ${provider} ${credential ?? ''}`;
}
