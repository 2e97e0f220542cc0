/** The state of a gateway as metrics. */
import type { BudgetReading } from '../../access/budget-watch.ts';
import type { HealthReading } from '../../gateway/targets/health.ts';
import {
  type Family,
  labelText,
  mayBeLabel,
  type NumberFamily,
  type NumberSample,
  other,
  single,
} from './family.ts';

export function gatewayFamilies(facts: GatewayFacts): readonly Family[] {
  const { version, ready, calls, countersUp, clientConnections, log, webhooks } = facts;
  return [
    gauge('model_gateway_build_info', {
      help: 'Always 1; the labels name the version of the gateway and of Node.',
      samples: [{ labels: labelText({ version, node: process.versions.node }), value: 1 }],
      across: 'max',
    }),
    gauge('model_gateway_ready', {
      help: '1 while the gateway accepts calls, as /readyz reports; 0 while it starts, drains or has no store.',
      samples: single(ready ? 1 : 0),
      across: 'min',
    }),
    gauge('model_gateway_calls_in_flight', {
      help: 'Calls in progress.',
      samples: single(calls.live),
    }),
    gauge('model_gateway_streams_in_flight', {
      help: 'Calls in progress that stream their answer.',
      samples: single(calls.streams),
    }),
    gauge('model_gateway_client_connections', {
      help: 'Open client connections.',
      samples: single(clientConnections),
    }),
    ...overloadFamilies(facts.overload),
    ...storeFamilies(facts.store),
    gauge('model_gateway_counters_up', {
      help: '1 while limits and budgets can be enforced.',
      samples: single(countersUp ? 1 : 0),
      across: 'min',
    }),
    counter('model_gateway_log_lines_dropped', {
      help: 'Log lines dropped because the output was blocked.',
      samples: single(log.dropped),
    }),
    counter('model_gateway_webhooks_dropped', {
      help: 'Webhook events that were dropped after their last retry or for lack of room.',
      samples: single(webhooks.dropped),
    }),
    counter('model_gateway_webhooks_delivered', {
      help: 'Webhook events that the receiver accepted.',
      samples: single(webhooks.delivered),
    }),
    gauge('model_gateway_webhooks_pending', {
      help: 'Webhook events that are queued or being sent.',
      samples: single(webhooks.pending),
    }),
    ...(facts.spans === undefined ? [] : spanFamilies(facts.spans)),
    ...idempotencyFamilies(facts.idempotency),
    storedResponses(facts.responses),
    ...contentFamilies(facts.contents),
    ...upstreamFamilies(facts),
    ...targetFamilies(facts),
    ...budgetFamilies(facts),
  ];
}

interface FamilyInput extends Pick<NumberFamily, 'help' | 'samples'> {
  readonly unit?: string;
  readonly across?: 'max' | 'min';
}

function gauge(name: string, input: FamilyInput): Family {
  return { name, type: 'gauge', ...input };
}

function counter(name: string, input: FamilyInput): Family {
  return { name, type: 'counter', ...input };
}

function spanFamilies({
  waiting,
  ...outcomes
}: NonNullable<GatewayFacts['spans']>): readonly Family[] {
  return [
    counter('model_gateway_spans', {
      help: 'Spans by outcome: accepted by the collector, dropped, or rejected by the collector.',
      samples: Object.entries(outcomes).map(([outcome, value]) => ({
        labels: labelText({ outcome }),
        value,
      })),
    }),
    gauge('model_gateway_spans_waiting', {
      help: 'Spans queued for export.',
      samples: single(waiting),
    }),
  ];
}

function idempotencyFamilies(facts: GatewayFacts['idempotency']): readonly Family[] {
  return [
    counter('model_gateway_idempotent_calls', {
      help: 'Calls with an Idempotency-Key, by outcome (docs/user/idempotency.md).',
      samples: Object.entries(facts.tallies).map(([outcome, value]) => ({
        labels: labelText({ outcome }),
        value,
      })),
    }),
    gauge('model_gateway_idempotent_calls_held', {
      help: 'Idempotency-Keys held in memory: calls in progress and answers that are not stored yet.',
      samples: single(facts.claims),
    }),
    gauge('model_gateway_idempotent_answer_bytes', {
      help: 'Memory used by answers that are not stored yet.',
      unit: 'bytes',
      samples: single(facts.memory),
    }),
  ];
}

function storedResponses({ tallies }: GatewayFacts['responses']): Family {
  return counter('model_gateway_kept_responses', {
    help: 'Responses that clients asked to be kept, by outcome (docs/user/responses.md).',
    samples: Object.entries(tallies).map(([outcome, value]) => ({
      labels: labelText({ outcome }),
      value,
    })),
  });
}

function contentFamilies({
  tallies,
  redacted,
  memory,
}: GatewayFacts['contents']): readonly Family[] {
  return [
    counter('model_gateway_contents', {
      help: 'Calls of keys with content logging, by outcome of the content (docs/user/content.md).',
      samples: Object.entries(tallies).map(([outcome, value]) => ({
        labels: labelText({ outcome }),
        value,
      })),
    }),
    counter('model_gateway_redacted_contents', {
      help: 'Calls whose logged content had a text that looks like a key or credential; it was removed.',
      samples: single(redacted),
    }),
    gauge('model_gateway_content_bytes', {
      help: 'Memory used by call contents that are not written yet.',
      unit: 'bytes',
      samples: single(memory),
    }),
  ];
}

function overloadFamilies(overload: GatewayFacts['overload']): readonly Family[] {
  const { step, memoryShare, loopDelayMs, slots, slotsHeld, bodyMemory, shedBy } = overload;
  return [
    counter('model_gateway_shed_calls', {
      help: 'Calls refused because the gateway was overloaded, by reason.',
      samples: Object.entries(shedBy).map(([reason, value]) => ({
        labels: labelText({ reason }),
        value,
      })),
    }),
    gauge('model_gateway_pressure_step', {
      help: 'Pressure level of the process, 0 to 3 (docs/operator/overload.md).',
      samples: single(step),
      across: 'max',
    }),
    gauge('model_gateway_memory_used_ratio', {
      help: 'Share of the allowed memory in use: the higher of resident memory and heap.',
      unit: 'ratio',
      samples: single(memoryShare),
      across: 'max',
    }),
    gauge('model_gateway_event_loop_delay_seconds', {
      help: 'Median delay of the event loop over the last quarter of a second.',
      unit: 'seconds',
      samples: single(loopDelayMs / 1000),
      across: 'max',
    }),
    gauge('model_gateway_call_slots', {
      help: 'Current limit of concurrent calls; lower while the event loop is delayed.',
      samples: single(slots),
    }),
    gauge('model_gateway_call_slots_held', {
      help: 'Slots in use by calls and by token counts.',
      samples: single(slotsHeld),
    }),
    gauge('model_gateway_request_body_memory_bytes', {
      help: 'Memory reserved for request bodies.',
      unit: 'bytes',
      samples: single(bodyMemory),
    }),
  ];
}

function storeFamilies(store: GatewayFacts['store']): readonly Family[] {
  const { up, queued, spooled, waitMs, saved, failures, refused } = store;
  return [
    gauge('model_gateway_store_up', {
      help: '1 while the store accepts writes.',
      samples: single(up ? 1 : 0),
      across: 'min',
    }),
    gauge('model_gateway_ledger_queued_rows', {
      help: 'Finished calls in memory that are not written to the store yet.',
      samples: single(queued),
    }),
    gauge('model_gateway_ledger_spooled_rows', {
      help: 'Finished calls spooled to the local disk until the store is back.',
      samples: single(spooled),
    }),
    gauge('model_gateway_ledger_lag_seconds', {
      help: 'Age of the current write to the store; a few milliseconds when the store is healthy.',
      unit: 'seconds',
      samples: single(waitMs / 1000),
      across: 'max',
    }),
    counter('model_gateway_ledger_rows', {
      help: 'Calls written to the store.',
      samples: single(saved),
    }),
    counter('model_gateway_ledger_write_failures', {
      help: 'Failed writes of the ledger; each is retried.',
      samples: single(failures),
    }),
    counter('model_gateway_ledger_refused_rows', {
      help: 'Rows that the store rejected for their content; they are in refused-calls.jsonl.',
      samples: single(refused),
    }),
  ];
}

/** Origins come from the config, which may have very many. */
const maxOrigins = 100;

function upstreamFamilies({ upstreams, engines }: GatewayFacts): readonly Family[] {
  return [
    gauge('model_gateway_upstream_connections', {
      help: 'Upstream connections, by state.',
      samples: upstreams.slice(0, maxOrigins).flatMap(({ origin, open, idle }) => [
        { labels: labelText({ origin, state: 'idle' }), value: idle },
        { labels: labelText({ origin, state: 'busy' }), value: Math.max(0, open - idle) },
      ]),
    }),
    gauge('model_gateway_engine_up', {
      help: '1 while the model is loaded in the embedded engine.',
      samples: engines.map(({ name, phase }) => ({
        labels: labelText({ model: name, phase }),
        value: phase === 'ready' ? 1 : 0,
      })),
    }),
  ];
}

const maxTargets = 300;
const stateNumbers = { closed: 0, half_open: 1, open: 2 } as const;

interface TargetSeries {
  readonly labels: string;
  state: number;
  cooling: boolean;
}

/** Names come from clients as well: what may be no label counts under `other`, by the worst of them. */
function targetSeries({ health, targets }: GatewayFacts): readonly TargetSeries[] {
  const series = new Map<string, TargetSeries>();
  const at = (target: string, credential: string): TargetSeries => {
    const labels = labelText({ target, credential });
    const known = series.get(labels) ?? { labels, state: stateNumbers.closed, cooling: false };
    series.set(labels, known);
    return known;
  };
  const declared = new Set(targets);
  for (const target of declared) at(target, '');
  // Targets that are unhealthy now come before those that were.
  const known = health.toSorted((a, b) => stateNumbers[b.state] - stateNumbers[a.state]);
  for (const { target, credential, state, cooling } of known) {
    const stands = declared.has(target) || (mayBeLabel(target) && series.size < maxTargets);
    const one = stands ? at(target, credential) : at(other, '');
    one.state = Math.max(one.state, stateNumbers[state]);
    one.cooling ||= cooling;
  }
  return [...series.values()];
}

function targetFamilies(facts: GatewayFacts): readonly Family[] {
  const all = targetSeries(facts);
  return [
    gauge('model_gateway_target_state', {
      help: 'Circuit breaker of a target or credential: 0 closed, 1 half-open, 2 open.',
      samples: all.map(({ labels, state }) => ({ labels, value: state })),
      across: 'max',
    }),
    gauge('model_gateway_target_cooling', {
      help: '1 while a target or credential is paused because a rate limit of its provider is exhausted.',
      samples: all.map(({ labels, cooling }) => ({ labels, value: cooling ? 1 : 0 })),
      across: 'max',
    }),
  ];
}

const maxBudgets = 200;

/** The fullest ones; each holder and period once. */
function budgetFamilies({ budgets }: GatewayFacts): readonly Family[] {
  const samples = new Map<string, NumberSample>();
  for (const { holder, per, budgetNanodollars, spentNanodollars } of budgets) {
    if (budgetNanodollars === 0) continue;
    const labels = labelText({ holder: holder.kind, name: holder.name, per });
    const value = spentNanodollars / budgetNanodollars;
    if (value >= (samples.get(labels)?.value ?? 0)) samples.set(labels, { labels, value });
  }
  return [
    gauge('model_gateway_budget_used_ratio', {
      help: 'Share of a budget that settled calls have spent in its current window; the 200 fullest budgets.',
      unit: 'ratio',
      samples: [...samples.values()].sort((a, b) => b.value - a.value).slice(0, maxBudgets),
      across: 'max',
    }),
  ];
}

// Values that a scrape reads from the parts of a gateway. They exist anyway, so nothing is counted for it.

export interface GatewayFacts {
  readonly version: string;
  readonly ready: boolean;
  readonly calls: { readonly live: number; readonly streams: number };
  readonly overload: {
    readonly step: number;
    readonly memoryShare: number;
    readonly loopDelayMs: number;
    readonly slots: number;
    readonly slotsHeld: number;
    /** Bytes. */
    readonly bodyMemory: number;
    readonly shedBy: { readonly [reason: string]: number };
  };
  readonly clientConnections: number;
  readonly upstreams: readonly {
    readonly origin: string;
    readonly open: number;
    readonly idle: number;
  }[];
  readonly store: {
    readonly up: boolean;
    /** Rows that it does not have yet. */
    readonly queued: number;
    /** Rows on the disk of this machine, because the book was away. */
    readonly spooled: number;
    readonly waitMs: number;
    readonly saved: number;
    readonly failures: number;
    readonly refused: number;
  };
  readonly countersUp: boolean;
  readonly log: { readonly dropped: number };
  /** Absent = no traces are configured. */
  readonly spans?: {
    readonly waiting: number;
    readonly sent: number;
    readonly dropped: number;
    readonly failed: number;
  };
  readonly webhooks: {
    readonly dropped: number;
    readonly delivered: number;
    readonly pending: number;
  };
  /** Calls with an `Idempotency-Key`. */
  readonly idempotency: {
    readonly tallies: { readonly [outcome: string]: number };
    /** Calls that are being answered, or wait to be stored. */
    readonly claims: number;
    /** Bytes of their answers. */
    readonly memory: number;
  };
  /** Responses that were to be stored. */
  readonly responses: { readonly tallies: { readonly [outcome: string]: number } };
  /** The content of calls, for keys whose content is logged. */
  readonly contents: {
    readonly tallies: { readonly [outcome: string]: number };
    /** Calls in whose words a key stood. */
    readonly redacted: number;
    readonly memory: number;
  };
  readonly health: readonly HealthReading[];
  /** `provider/model` of all targets that the config names. */
  readonly targets: readonly string[];
  readonly budgets: readonly BudgetReading[];
  readonly engines: readonly { readonly name: string; readonly phase: string }[];
}
