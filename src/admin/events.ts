/** `/api/events`, `/api/webhooks`: what the gateway reported since its start, and which webhooks got it. */
import { z } from 'zod';
import type { AuditLog } from '../access/audit.ts';
import { type RecentEvent, severities, tellEvent } from '../features/events.ts';
import { webhookFormats } from '../features/webhook-formats.ts';
import type { WebhookState, WebhookTest } from '../features/webhooks.ts';
import type { JsonObject } from '../json/value.ts';
import { AdminError, type AdminRoute, dateText, noBody, page, readInput, time } from './route.ts';

/** The events of a running gateway. */
export interface EventSource {
  /** Newest first. */
  list(): readonly RecentEvent[];
  /** Older events that are no longer kept. */
  readonly forgotten: number;
  /** When the first could have come; ms since the epoch. */
  readonly since: number;
  hooks(): readonly WebhookState[];
  /** Undefined: there is no such hook. */
  test(id: string): Promise<WebhookTest | undefined>;
}

export interface EventRouteDeps {
  /** Absent where no gateway runs. */
  readonly events?: EventSource;
  readonly audit: AuditLog;
}

const query = z.strictObject({
  limit: page.shape.limit,
  before: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .optional()
    .describe('Only events with a smaller `seq`: `next` of the previous page.'),
  group: z
    .string()
    .max(100)
    .optional()
    .describe('Only events of this group (target), or of this type (target.out).'),
  severity: z
    .enum(severities, `must be ${severities.join(', ')}`)
    .optional()
    .describe('Only events of this severity or above.'),
});

const event = z.strictObject({
  seq: z.number().int().describe('1, 2, 3, … since the start of the gateway.'),
  id: z.string(),
  type: z.string(),
  at: time,
  severity: z.enum(severities),
  resolved: z.boolean().describe('The problem is resolved.'),
  subject: z.string(),
  text: z.string().describe('What happened, one or two sentences.'),
  data: z.record(z.string(), z.unknown()),
});

const hook = z.strictObject({
  id: z.string(),
  host: z.string().describe('The rest of the address may be a secret and is not shown.'),
  format: z.enum(webhookFormats),
  events: z.array(z.string()).nullable().describe('Groups that are sent; null: all.'),
  delivered: z.number().int().describe('Since the start of the gateway.'),
  dropped: z.number().int(),
  pending: z.number().int(),
  delivered_at: time.nullable(),
  failures: z
    .array(z.strictObject({ at: time, event: z.string(), reason: z.string() }))
    .describe('The last five, newest first.'),
});

export function eventRoutes({ events, audit }: EventRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/events',
      about: {
        summary: 'List the events of this gateway since its start, newest first.',
        query,
        answer: z.strictObject({
          events: z.array(event),
          next: z.number().int().nullable(),
          since: time.nullable().describe('Start of the gateway; null where none runs.'),
          forgotten: z.number().int().describe('Older events that are no longer kept.'),
        }),
      },
      run: (request) => {
        const { limit, before = Infinity, ...chosen } = readInput(query, request.query);
        const fitting = (events?.list() ?? [])
          .filter(({ seq }) => seq < before)
          .map(eventJson)
          .filter((each) => fits(each, chosen));
        const shown = fitting.slice(0, limit);
        const next = fitting.length > limit ? (shown.at(-1)?.seq ?? null) : null;
        const since = events === undefined ? null : dateText(events.since);
        const body = { events: shown, next, since, forgotten: events?.forgotten ?? 0 };
        return { status: 200, body };
      },
    },
    {
      method: 'GET',
      path: '/api/webhooks',
      about: {
        summary: 'List the webhooks of the configuration, with the deliveries of their events.',
        answer: z.strictObject({ webhooks: z.array(hook) }),
      },
      run: () => ({ status: 200, body: { webhooks: (events?.hooks() ?? []).map(hookJson) } }),
    },
    {
      method: 'POST',
      path: '/api/webhooks/:id/test',
      about: {
        summary: 'Post a test event to a webhook, once, and say what it answered.',
        body: noBody,
        answer: z.strictObject({
          delivered: z.boolean(),
          reason: z.string().nullable().describe('Why not.'),
          ms: z.number().int(),
        }),
      },
      run: async ({ id, body, actor }) => {
        readInput(noBody, body);
        const host = events?.hooks().find((each) => each.id === id)?.host;
        if (events === undefined || host === undefined) throw new AdminError(404, noHook);
        await audit.note({ actor, action: 'webhook.test', subject: `webhook:${host}` });
        const result = await events.test(id);
        if (result === undefined) throw new AdminError(404, noHook);
        const { delivered, reason = null, ms } = result;
        return { status: 200, body: { delivered, reason, ms } };
      },
    },
  ];
}

const noHook = 'There is no such webhook; the configuration may have changed.';

function eventJson(kept: RecentEvent) {
  const { seq, id, type, data, created_at: at } = kept;
  const { severity, isResolved = false, subject, text } = tellEvent(kept);
  return { seq, id, type, at, severity, resolved: isResolved, subject, text, data };
}

function fits(
  { type, severity }: Pick<ReturnType<typeof eventJson>, 'type' | 'severity'>,
  wanted: Pick<z.output<typeof query>, 'group' | 'severity'>,
): boolean {
  const { group } = wanted;
  if (group !== undefined && type !== group && !type.startsWith(`${group}.`)) return false;
  return severities.indexOf(severity) >= severities.indexOf(wanted.severity ?? 'info');
}

function hookJson({
  id,
  hook: of,
  host,
  deliveredAt,
  failures,
  ...counts
}: WebhookState): JsonObject {
  const { delivered, dropped, pending } = counts;
  return {
    id,
    host,
    format: of.format ?? 'json',
    events: of.events === undefined ? null : [...of.events],
    delivered,
    dropped,
    pending,
    delivered_at: deliveredAt === undefined ? null : dateText(deliveredAt),
    failures: failures.map((each) => ({ ...each, at: dateText(each.at) })),
  };
}
