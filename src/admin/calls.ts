/** `/api/calls`: the ledger, call by call. */
import { z } from 'zod';
import type { Failure } from '../core/faults.ts';
import { dollarsNumber, type Cost } from '../core/money.ts';
import type { Clock } from '../core/runtime.ts';
import { tokenClasses, type CountedUsage } from '../core/token-classes.ts';
import type { FoundContent, LoggedContents } from '../features/content-log/sealed-content.ts';
import { tryParse } from '../json/parse.ts';
import type { Json, JsonObject } from '../json/value.ts';
import type { AttemptRow, CallCursor, CallQuery, CallRow, CallsWithin } from '../store/calls.ts';
import { faultFilter } from './failures.ts';
import type { KeyRouteDeps } from './keys.ts';
import { withinOf } from './people/part.ts';
import type { Member } from './people/roles.ts';
import { priceAnswer, priceJson } from './providers.ts';
import {
  type AdminAnswer,
  AdminError,
  type AdminRequest,
  type AdminRoute,
  dateText,
  next,
  readInput,
  time,
} from './route.ts';
import { groupFilter, inPeriod, readFilter, readWhen, type UsageRouteDeps } from './usage.ts';

const outcomes = ['ok', 'failed', 'canceled'] as const;

const modes = ['relay', 'translate'] as const;

const name = z.string().min(1, 'must not be empty').max(800);

/** The filters of calls, in a list and in an export. */
export const callFilters = z.strictObject({
  ...inPeriod,
  ...groupFilter,
  outcome: z.enum(outcomes, `must be one of ${outcomes.join(', ')}`).optional(),
  endpoint: z
    .string()
    .max(100)
    .optional()
    .describe('openai-chat, anthropic-messages or openai-responses.'),
  user: z.string().max(800).optional().describe('Only of this user, as the client named it.'),
  status: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(100, 'must be at least 100')
    .max(599, 'must be at most 599')
    .optional()
    .describe('The HTTP status that the client saw.'),
  mode: z.enum(modes, `must be one of ${modes.join(', ')}`).optional(),
  notes: z
    .string()
    .min(1, 'must not be empty')
    .max(200)
    .optional()
    .describe('Text that the notes contain.'),
  fault: faultFilter,
  error: name.optional().describe('Error code of a failed call: rate_limited.'),
  reason: name.optional().describe('Named reason of a failure: price_unknown.'),
  upstream_model: name.optional().describe('The model that answered, as its provider names it.'),
  min_cost_usd: z.coerce
    .number('must be a number')
    .min(0, 'must be at least 0')
    .max(1_000_000, 'must be at most 1000000')
    .optional()
    .describe('Only calls with a known cost of at least this.'),
  min_ms: z.coerce
    .number('must be a number')
    .min(0, 'must be at least 0')
    .max(1e9, 'must be at most 1000000000')
    .optional()
    .describe('Only calls that took at least this.'),
});

const query = z.strictObject({
  limit: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(1000, 'must be at most 1000')
    .default(50)
    .describe('Maximum number of calls.'),
  after: z.string().max(800).optional().describe('`next` of the previous page.'),
  ...callFilters.shape,
});

const count = z.number().int().nullable();
const usd = z.number().nullable();
const text = z.string().nullable();
const counts = z.strictObject(
  Object.fromEntries(tokenClasses.map(({ column, about }) => [column, count.describe(about)])),
);

/** Of a call, and of each attempt. */
const failure = {
  fault: text.describe('Whose fault a failure is: limit, client, provider or gateway.'),
  reason: text.describe('Named reason of the error, such as price_unknown.'),
  message: text.describe('Why it failed, at most 500 characters; credentials are masked.'),
};

export const call = z.strictObject({
  id: z.string().describe('The value of x-request-id.'),
  started_at: time,
  key: z.string(),
  team: text,
  tags: z.array(z.string()),
  user: text,
  metadata: z.unknown().describe('Metadata that the client sent with the call.'),
  endpoint: z.string(),
  model: z.string(),
  provider: text,
  upstream_model: text,
  mode: text,
  stream: z.boolean(),
  outcome: z.enum(outcomes),
  status: count,
  error: text,
  ...failure,
  limit: text.describe('The limit or budget that refused: key:ID:requests, team:NAME:month.'),
  attempts: z.number().int(),
  reported: counts.nullable().describe('As the vendor reported.'),
  charged: counts.describe('As charged.'),
  usage_source: z.enum(['reported', 'counted', 'estimated']),
  suspect: z.boolean().describe('The upstream reported impossible counts.'),
  cost_usd: usd.describe('Null: the price is unknown.'),
  cost: z
    .strictObject({
      input: z.number(),
      cache_read: z.number(),
      cache_write: z.number(),
      output: z.number(),
      reasoning: z.number(),
      call: z.number(),
    })
    .nullable()
    .describe('The parts of cost_usd, each rounded.'),
  cache_saved_usd: usd.describe(
    'What caches saved by the price of the call; negative: writing cost more than reading saved. Null: nothing was cached, or the price is unknown.',
  ),
  reserved_usd: usd.describe('Amount that was reserved in budgets while the call ran.'),
  overrun: z.boolean().describe('The call cost more than was reserved.'),
  budgets: z.array(z.strictObject({ counter: z.string(), window: z.string() })),
  first_event_ms: usd,
  total_ms: z.number(),
  notes: text,
});

const attempt = z.strictObject({
  provider: z.string(),
  upstream_model: z.string(),
  credential: text.describe('Name of the credential, if the provider has several.'),
  started_at: time,
  ms: z.number(),
  status: count,
  outcome: z.enum(outcomes),
  error: text,
  ...failure,
  reported: counts.nullable(),
  maybe_billed: z.boolean().describe('Sent but not answered: the vendor may bill it.'),
});

export function callRoutes(deps: UsageRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/calls',
      about: {
        summary:
          'List calls, newest first. A page may be short or empty and still have a next one.',
        query,
        answer: z.strictObject({ calls: z.array(call), next }),
      },
      run: (request) => list(deps, readInput(query, request.query), request.member),
    },
    {
      method: 'GET',
      path: '/api/calls/:id',
      about: {
        summary: 'Show a call with its attempts and the price that was charged.',
        answer: z.strictObject({
          ...call.shape,
          price: priceAnswer.nullable(),
          attempt_list: z.array(attempt),
        }),
      },
      run: ({ id, member }) => show(deps, id, member),
    },
  ];
}

async function list(
  { store, clock, flushLedger, keys }: UsageRouteDeps,
  wanted: z.output<typeof query>,
  member: Member | undefined,
): Promise<AdminAnswer> {
  const before = wanted.after === undefined ? undefined : readCursor(wanted.after);
  const filter = readCallFilter(wanted, clock);
  await flushLedger?.().catch(() => undefined);
  const page = await store.calls.list({
    ...filter,
    limit: wanted.limit,
    ...withinOf(member, keys),
    ...(before === undefined ? {} : { before }),
  });
  const calls = page.calls.map(callJson);
  const following = page.next === undefined ? null : cursorText(page.next);
  return { status: 200, body: { calls, next: following } };
}

async function show(
  { store, flushLedger, keys }: UsageRouteDeps,
  id: string,
  member: Member | undefined,
): Promise<AdminAnswer> {
  await flushLedger?.().catch(() => undefined);
  const row = await store.calls.find(id);
  const { within } = withinOf(member, keys);
  if (row === undefined || (within !== undefined && !isWithin(row, within))) {
    throw new AdminError(404, 'There is no such call; it may have expired from the ledger.');
  }
  const body = {
    ...callJson(row),
    price: row.price === undefined ? null : priceJson(row.price),
    attempt_list: row.attemptRows.map(attemptJson),
  };
  return { status: 200, body };
}

/** @throws AdminError 400 with the name of an invalid time */
export function readCallFilter(
  wanted: z.output<typeof callFilters>,
  clock: Clock,
): Omit<CallQuery, 'limit' | 'before'> {
  return {
    ...definedOf(ownFilters(wanted)),
    ...readFilter(wanted),
    ...readWhen(wanted, clock),
  };
}

function ownFilters(wanted: z.output<typeof callFilters>) {
  const { outcome, endpoint, user, status, mode, notes, fault, error, reason } = wanted;
  const { upstream_model: upstreamModel, min_cost_usd: dollars, min_ms: minMs } = wanted;
  const minNanodollars = dollars === undefined ? undefined : Math.round(dollars * 1e9);
  const exact = { outcome, endpoint, user, status, mode, notes, fault, error, reason };
  return { ...exact, upstreamModel, minNanodollars, minMs };
}

function isWithin({ keyId, team }: CallRow, { keys, teams }: CallsWithin): boolean {
  return keys.includes(keyId) || (team !== undefined && teams.includes(team));
}

/** Without the members that are undefined. */
function definedOf<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

function cursorText({ startedAt, id }: CallCursor): string {
  return `${startedAt}.${id}`;
}

function readCursor(after: string): CallCursor {
  const [, startedAt, id] = /^(\d{1,15})\.(.*)$/.exec(after) ?? [];
  if (startedAt === undefined || id === undefined) {
    throw new AdminError(400, 'is not a `next` value of a page of calls', 'after');
  }
  return { startedAt: Number(startedAt), id };
}

export function callJson(row: CallRow): JsonObject {
  return {
    id: row.id,
    started_at: dateText(row.startedAt),
    key: row.keyId,
    ...labelsJson(row),
    endpoint: row.endpoint,
    model: row.model,
    ...servedJson(row),
    reported: row.reported === undefined ? null : countsJson(row.reported),
    charged: countsJson(row.charged),
    usage_source: row.usageSource,
    suspect: row.suspect === true,
    ...moneyJson(row),
    first_event_ms: row.firstEventMs ?? null,
    total_ms: row.totalMs,
    notes: row.notes ?? null,
  };
}

function labelsJson({ team, tags, user, metadata }: CallRow): JsonObject {
  return { team: team ?? null, tags, user: user ?? null, metadata: parsed(metadata) };
}

function parsed(metadata: string | undefined): Json {
  return metadata === undefined ? null : (tryParse(metadata) ?? metadata);
}

function servedJson(row: CallRow): JsonObject {
  return {
    provider: row.provider ?? null,
    upstream_model: row.upstreamModel ?? null,
    mode: row.mode ?? null,
    stream: row.stream,
    outcome: row.outcome,
    status: row.status ?? null,
    error: row.error ?? null,
    ...failureJson(row.failure),
    limit: row.failure?.limit ?? null,
    attempts: row.attempts,
  };
}

function failureJson(failure: Failure | undefined): JsonObject {
  const { fault = null, reason = null, message = null } = failure ?? {};
  return { fault, reason, message };
}

function moneyJson(row: CallRow): JsonObject {
  const { cost, cacheSaved, reservedNanodollars, overrun, budgets } = row;
  return {
    cost_usd: cost === undefined ? null : dollarsNumber(cost.total),
    cost: cost === undefined ? null : costJson(cost),
    cache_saved_usd: cacheSaved === undefined ? null : dollarsNumber(cacheSaved),
    reserved_usd: reservedNanodollars === undefined ? null : dollarsNumber(reservedNanodollars),
    overrun: overrun === true,
    budgets: budgets.map(({ counter, window }) => ({ counter, window })),
  };
}

function costJson({
  input,
  cacheRead,
  cacheWrite,
  output,
  reasoning,
  call: own,
}: Cost): JsonObject {
  return {
    input: dollarsNumber(input),
    cache_read: dollarsNumber(cacheRead),
    cache_write: dollarsNumber(cacheWrite),
    output: dollarsNumber(output),
    reasoning: dollarsNumber(reasoning),
    call: dollarsNumber(own),
  };
}

function attemptJson(row: AttemptRow): JsonObject {
  return {
    provider: row.provider,
    upstream_model: row.upstreamModel,
    credential: row.credential ?? null,
    started_at: dateText(row.startedAt),
    ms: row.ms,
    status: row.status ?? null,
    outcome: row.outcome,
    error: row.error ?? null,
    ...failureJson(row.failure),
    reported: row.reported === undefined ? null : countsJson(row.reported),
    maybe_billed: row.maybeBilled === true,
  };
}

export function countsJson(usage: CountedUsage): JsonObject {
  return Object.fromEntries(
    tokenClasses.map(({ member, column }) => [column, usage[member] ?? null]),
  );
}

// `/api/calls/:id/content`: what a call said, of keys whose content is logged (docs/user/content.md).

export interface ContentRouteDeps
  extends Pick<UsageRouteDeps, 'store' | 'flushLedger'>, Pick<KeyRouteDeps, 'keys' | 'audit'> {
  readonly contents: Pick<LoggedContents, 'find' | 'removeOf'>;
}

const body = z.strictObject({
  bytes: z.number().int().describe('Size of the body before anything was left out.'),
  cut: z.boolean().describe('The text was truncated.'),
  form: z
    .enum(['json', 'events', 'text'])
    .describe('Events of a stream; the deltas of one text are joined.'),
  content: z.unknown().describe('Without keys, credentials and media data.'),
});

const headers = z.array(
  z.strictObject({
    name: z.string(),
    value: z.string().nullable().describe('Null: not stored, since it may be a secret.'),
  }),
);

const contentAnswer = z.strictObject({
  id: z.string(),
  state: z
    .enum(['kept', 'absent', 'locked', 'unreadable'])
    .describe(
      'absent: never stored, removed, or lost; locked: encrypted with a key that this gateway does not have; unreadable: damaged.',
    ),
  logged_now: z.boolean().describe('The key logs content now.'),
  request: z
    .strictObject({
      method: z.string(),
      path: z.string(),
      headers,
      body: body.nullable().describe('Null: the answer was not read.'),
    })
    .nullable()
    .describe('Null unless the state is `kept`.'),
  answer: z
    .strictObject({
      status: z.number().int(),
      headers,
      body,
      whole: z.boolean().describe('The answer is complete.'),
    })
    .nullable()
    .describe('What was sent to the client; null: nothing.'),
  attempts: z
    .array(z.strictObject({ target: z.string(), status: z.number().int().nullable(), body }))
    .describe('Error answers of upstreams.'),
});

export function contentRoutes(deps: ContentRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/calls/:id/content',
      about: {
        summary: 'Show the request and the answer of a call, if its key logs content.',
        answer: contentAnswer,
      },
      run: ({ id }) => showContent(deps, id),
    },
    {
      method: 'DELETE',
      path: '/api/keys/:id/content',
      about: {
        summary: 'Remove the logged content and the stored responses of a key.',
        answer: z.strictObject({
          removed: z.number().int().describe('Number of calls whose logged content was removed.'),
        }),
      },
      run: (request) => remove(deps, request),
    },
  ];
}

const nothing = { request: null, answer: null, attempts: [] };

async function showContent(
  { contents, store, keys, flushLedger }: ContentRouteDeps,
  id: string,
): Promise<AdminAnswer> {
  await flushLedger?.().catch(() => undefined);
  const found = await contents.find(id);
  const row = await store.calls.find(id);
  if (row === undefined && found.state === 'absent') {
    throw new AdminError(404, 'There is no such call; it may have expired from the ledger.');
  }
  const loggedNow = row !== undefined && keys.find(row.keyId)?.record.logContent === true;
  const { state } = found;
  return { status: 200, body: { id, state, logged_now: loggedNow, ...shown(found) } };
}

/** The stored content: the members are those of `contentAnswer`. */
function shown(found: FoundContent): AdminAnswer['body'] {
  if (found.state !== 'kept') return nothing;
  const { request = null, answer = null, attempts = [] } = found.content;
  return { request, answer, attempts };
}

async function remove(
  { contents, keys, audit, flushLedger }: ContentRouteDeps,
  { id, actor }: AdminRequest,
): Promise<AdminAnswer> {
  if (keys.find(id) === undefined) throw new AdminError(404, `There is no key with the id ${id}.`);
  await flushLedger?.().catch(() => undefined);
  const removed = await contents.removeOf(id);
  const done = { actor, action: 'key.content.delete', subject: `key:${id}` } as const;
  await audit.note({ ...done, after: { removed } });
  return { status: 200, body: { removed } };
}
