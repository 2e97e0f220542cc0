/**
 * Events of the gateway: what each says in one sentence, how bad it is, and the newest of them, kept in memory. They
 * are lost at a restart; the log has a line of each.
 */
import { type JsonObject, isObject } from '../json/value.ts';

export const severities = ['info', 'warning', 'error'] as const;
export type Severity = (typeof severities)[number];

/** As it is posted to webhooks. */
export interface GatewayEvent {
  readonly id: string;
  /** `target.out` */
  readonly type: string;
  readonly created_at: string;
  /** The machine of the gateway. */
  readonly source: string;
  readonly data: JsonObject;
}

/** How bad it is, and the sentence that says it. */
interface Told {
  readonly severity: Severity;
  readonly text: string;
  /** What it is about: events of one subject follow each other. */
  readonly subject: string;
  /** The subject is well again. */
  readonly isResolved?: true;
}

/** What an event says to people. Types that this table lacks are named. */
export function tellEvent({ type, data }: Pick<GatewayEvent, 'type' | 'data'>): Told {
  return texts.get(type)?.(data) ?? { severity: 'info', text: `${type}.`, subject: type };
}

const texts: ReadonlyMap<string, (data: JsonObject) => Told> = new Map<
  string,
  (data: JsonObject) => Told
>([
  ['budget.threshold', budgetText],
  [
    'credential.out',
    (data) => ({
      severity: 'error',
      text: `${credentialOf(data)} was refused (${part(data, 'error')}); it is tried again in ${seconds(data)}.`,
      subject: credentialOf(data),
    }),
  ],
  [
    'credential.back',
    (data) => ({
      severity: 'info',
      text: `${credentialOf(data)} is accepted again.`,
      subject: credentialOf(data),
      isResolved: true,
    }),
  ],
  [
    'target.out',
    (data) => ({
      severity: 'error',
      text: `${part(data, 'target')} is down: ${part(data, 'failures')} failures in a row (${part(data, 'error')}). Its circuit breaker is open for ${seconds(data)}.`,
      subject: `Target ${part(data, 'target')}`,
    }),
  ],
  [
    'target.back',
    (data) => ({
      severity: 'info',
      text: `${part(data, 'target')} answers again.`,
      subject: `Target ${part(data, 'target')}`,
      isResolved: true,
    }),
  ],
  [
    'store.down',
    (data) => ({
      severity: 'error',
      text: `The store cannot be used: ${part(data, 'reason')}.`,
      subject: 'Store',
    }),
  ],
  [
    'store.up',
    () => ({
      severity: 'info',
      text: 'The store can be used again.',
      subject: 'Store',
      isResolved: true,
    }),
  ],
  [
    'overload.entered',
    (data) => ({
      severity: 'warning',
      text: `The gateway is overloaded: step ${part(data, 'step')} of 3, ${part(data, 'calls')} running calls.`,
      subject: 'Overload',
    }),
  ],
  [
    'overload.left',
    () => ({
      severity: 'info',
      text: 'The overload is over.',
      subject: 'Overload',
      isResolved: true,
    }),
  ],
  ['config.applied', configText],
  [
    'config.refused',
    ({ problems }) => ({
      severity: 'error',
      text: `The changed configuration was refused; the one before stays. ${listed(problems)}`,
      subject: 'Configuration',
    }),
  ],
  [
    'webhook.failed',
    (data) => ({
      severity: 'warning',
      text: `${part(data, 'event')} was not delivered to ${part(data, 'host')}: ${part(data, 'reason')}.`,
      subject: `Webhook ${part(data, 'host')}`,
    }),
  ],
  [
    'webhook.test',
    () => ({
      severity: 'info',
      text: 'This is a test event. Nothing has happened.',
      subject: 'Webhook test',
      isResolved: true,
    }),
  ],
  [
    'gateway.started',
    (data) => ({
      severity: 'info',
      text: `Model Gateway ${part(data, 'version')} started.`,
      subject: 'Gateway',
    }),
  ],
]);

function budgetText(data: JsonObject): Told {
  const holder = isObject(data['holder']) ? data['holder'] : {};
  const name = `${part(holder, 'kind')} ${part(holder, 'name')}`;
  const per = part(data, 'per');
  const amount = `$${part(data, 'budget_usd')} ${per === 'ever' ? 'in total' : `a ${per}`}`;
  const threshold = Number(data['threshold']);
  const refused = data['refused'] === true ? ' Calls are refused.' : '';
  return {
    severity: threshold >= 100 ? 'error' : threshold >= 80 ? 'warning' : 'info',
    text: `The budget of ${name} is spent to ${threshold} %: $${part(data, 'spent_usd')} of ${amount}.${refused}`,
    subject: `Budget of ${name}`,
  };
}

function configText({ needs_restart: waiting }: JsonObject): Told {
  const names = Array.isArray(waiting) ? waiting.map(String) : [];
  const rest = names.length === 0 ? '' : ` Read at start only: ${names.join(', ')}.`;
  return {
    severity: 'info',
    text: `The configuration was read again and applied.${rest}`,
    subject: 'Configuration',
    isResolved: true,
  };
}

function credentialOf(data: JsonObject): string {
  const name = data['credential'];
  return typeof name === 'string'
    ? `Credential ${name} of ${part(data, 'provider')}`
    : `The credential of ${part(data, 'provider')}`;
}

function seconds(data: JsonObject): string {
  return `${Math.ceil(Number(data['retry_after_s']))} s`;
}

function part(data: JsonObject, name: string): string {
  const value = data[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '?';
}

function listed(problems: unknown): string {
  const all = Array.isArray(problems) ? problems.map(String) : [];
  const more = all.length > 1 ? ` (and ${all.length - 1} more)` : '';
  return `${all[0] ?? ''}${more}`;
}

/** An event with its number since the start: 1, 2, 3, … */
export interface RecentEvent extends GatewayEvent {
  readonly seq: number;
}

/** Older ones are forgotten. */
const maxKept = 1000;

export class EventLog {
  #kept: RecentEvent[] = [];
  #seq = 0;

  add(event: GatewayEvent): void {
    this.#seq += 1;
    this.#kept.push({ ...event, seq: this.#seq });
    if (this.#kept.length > maxKept) this.#kept.shift();
  }

  /** Newest first. */
  list(): readonly RecentEvent[] {
    return this.#kept.toReversed();
  }

  /** How many are no longer kept. */
  get forgotten(): number {
    return this.#seq - this.#kept.length;
  }
}
