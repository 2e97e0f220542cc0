/** Routes of the admin API: what they take and answer, and how a path finds its route. */
import { z } from 'zod';
import type { Actor } from '../access/audit.ts';
import { GatewayError } from '../core/errors.ts';
import type { Json, JsonObject } from '../json/value.ts';
import { StoreError } from '../store/store-error.ts';
import type { Member } from './people/roles.ts';
import type { Session } from './people/sessions.ts';

export interface AdminAnswer {
  readonly status: number;
  readonly body: JsonObject;
  /** Sent instead of `body`, where it was requested. */
  readonly csv?: string;
  /** Of the file that a browser saves it as; no character that a header would take for its own. */
  readonly fileName?: string;
  /** Sent instead of both. */
  readonly bytes?: { readonly type: string; readonly content: Buffer; readonly encoding?: string };
  /** Sent instead of all of these, piece by piece. A failure on the way cuts the answer, so that its reader notices. */
  readonly pieces?: { readonly type: string; readonly content: AsyncIterable<string> };
  /** Value of the `allow` header of a 405. */
  readonly allow?: string;
  /** Its connection ends. */
  readonly last?: true;
  /** After which a 429 may be another. */
  readonly retryAfterMs?: number;
  /** Of what was read, for `If-Match` of a change. */
  readonly etag?: string;
  /** The session's cookie from now on, and for how long; 0: none. */
  readonly cookie?: { readonly value: string; readonly ms: number };
}

/** How a request came in over HTTP, for the routes of sessions. */
export interface HttpContext {
  readonly signedIn: boolean;
  /** Wall time in ms. */
  readonly now: number;
  readonly origin?: string;
  /** What a change expects to find. */
  readonly ifMatch?: string;
  readonly session?: Session;
}

/** What comes with a request besides its path. */
interface AdminSent {
  readonly body?: Json | undefined;
  /** Default: the command line. */
  readonly actor?: Actor;
  readonly member?: Member | undefined;
  /** Absent without HTTP. */
  readonly http?: HttpContext;
}

/** The admin API without HTTP: the path includes the query string. Never throws. */
export type AdminHandler = (method: string, path: string, sent?: AdminSent) => Promise<AdminAnswer>;

export interface AdminRequest {
  /** What stands for `:id` or `:name` in the route's path; '' where it has none. */
  readonly id: string;
  readonly query: { readonly [name: string]: string };
  readonly body: Json | undefined;
  /** The authenticated caller, for the audit log. */
  readonly actor: Actor;
  /** The person who asks; undefined: a command or a token, which see everything. */
  readonly member: Member | undefined;
  readonly http: HttpContext | undefined;
}

/** What `/api/openapi.json` says of a route; a test fails on a route without it. */
export interface RouteAbout {
  /** One line. */
  readonly summary: string;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** The body of a successful answer. */
  readonly answer: z.ZodType;
  /** Whether the answer can be CSV, too. */
  readonly csv?: true;
  /** Default 200. */
  readonly status?: number;
}

export interface AdminRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/api/keys/:id/revoke`; `:id` is an id, `:name` any text, percent-encoded. */
  readonly path: string;
  readonly about?: RouteAbout;
  run(request: AdminRequest): AdminAnswer | Promise<AdminAnswer>;
}

/** A refusal with a text that is safe to show, and the field that is wrong where there is one. */
export class AdminError extends Error {
  readonly status: number;
  readonly field: string | undefined;

  constructor(status: number, message: string, field?: string) {
    super(message);
    this.name = 'AdminError';
    this.status = status;
    this.field = field;
  }
}

/**
 * Input as the schema has it (B75: strict schemas refuse every field that they do not name).
 * @throws AdminError 400 with the first field that is wrong.
 */
export function readInput<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const issue = read.error.issues[0];
  if (issue === undefined) throw new AdminError(400, 'The input is not valid.');
  if (issue.code === 'unrecognized_keys') {
    throw new AdminError(400, 'There is no such field.', issue.keys[0]?.slice(0, 100));
  }
  const field = issue.path.join('.');
  if (field === '') throw new AdminError(400, 'A JSON object is expected.');
  throw new AdminError(400, issue.message, field);
}

/** The route of a path, or what to answer instead. */
export function findRoute(
  routes: readonly AdminRoute[],
  method: string,
  path: string,
): { readonly route: AdminRoute; readonly id: string } | AdminAnswer {
  const fitting = routes.flatMap((route) => {
    const id = matchPath(route.path, path);
    return id === undefined ? [] : [{ route, id }];
  });
  const found = fitting.find(({ route }) => route.method === method);
  if (found !== undefined) return found;
  if (fitting.length === 0) return errorAnswer(404, 'There is no such address in the admin API.');
  const allow = fitting.map(({ route }) => route.method).join(', ');
  return { ...errorAnswer(405, `This address takes ${allow} only.`), allow };
}

/** What stands for `:id` or `:name`, '' when the pattern has none, undefined when the path does not fit. */
function matchPath(pattern: string, path: string): string | undefined {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return undefined;
  let id = '';
  for (const [i, part] of wanted.entries()) {
    const segment = given[i] ?? '';
    const filled = fill(part, segment);
    if (filled === undefined) return undefined;
    id = filled === '' ? id : filled;
  }
  return id;
}

/** The value of a placeholder, '' for a segment that is the same, undefined where it does not fit. */
function fill(part: string, segment: string): string | undefined {
  if (part === ':id') return /^[0-9A-Za-z_-]{1,64}$/.test(segment) ? segment : undefined;
  if (part !== ':name') return part === segment ? '' : undefined;
  try {
    const name = decodeURIComponent(segment);
    return name === '' || name.length > 200 ? undefined : name;
  } catch {
    return undefined;
  }
}

export function errorAnswer(status: number, message: string, field?: string): AdminAnswer {
  return { status, body: { error: { message, ...(field === undefined ? {} : { field }) } } };
}

/** Any thrown value as an answer; undefined when it is a fault of ours, whose text is not for show. */
export function refusalAnswer(thrown: unknown): AdminAnswer | undefined {
  if (thrown instanceof AdminError) return errorAnswer(thrown.status, thrown.message, thrown.field);
  if (thrown instanceof StoreError) {
    return errorAnswer(503, `The store is not available: ${thrown.message}`);
  }
  if (!(thrown instanceof GatewayError)) return undefined;
  const status = statusOf.get(thrown.code);
  return status === undefined
    ? undefined
    : errorAnswer(status, thrown.message, thrown.path?.join('.'));
}

const statusOf: ReadonlyMap<string, number> = new Map([
  ['invalid_request', 400],
  ['too_large', 413],
  ['unsupported_media_type', 415],
  ['request_timeout', 408],
  ['store_unavailable', 503],
]);

// Members that several routes of the admin API have in common.

/** One page of a list. */
export const page = z.strictObject({
  limit: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(1000, 'must be at most 1000')
    .default(100)
    .describe('Maximum number of entries.'),
  after: z.string().max(800).optional().describe('`next` of the previous page.'),
});

export const next = z
  .string()
  .nullable()
  .describe('Pass as `after` for the next page; null on the last.');

export const noBody = z.strictObject({}).optional();

/** A time as the API writes it. */
export const time = z.iso.datetime();

// Points in time as people give them to the admin API: a span (`7d`) or a date.

const unitMs: ReadonlyMap<string, number> = new Map([
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
]);

/** Ten years: longer is a slip of the hand, and far beyond it dates end. */
const maxSpanMs = 3660 * 86_400_000;

const spanForm = /^(\d{1,7})([mhdw])$/;
const dateForm = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

export const spanHint = 'give a span such as 90m, 24h, 30d or 2w';
export const dateHint = 'a date such as 2026-01-31 or 2026-01-31T12:00:00Z';

/** Milliseconds of `90m`, `24h`, `30d`, `2w`; undefined for anything else, zero, or over ten years. */
export function readSpan(text: string): number | undefined {
  const [, amount, unit] = spanForm.exec(text) ?? [];
  const ms = Number(amount) * (unitMs.get(unit ?? '') ?? Number.NaN);
  return ms > 0 && ms <= maxSpanMs ? ms : undefined;
}

/** Ms since the epoch of an ISO 8601 date (midnight UTC) or time with a zone. */
export function readDate(text: string): number | undefined {
  if (!dateForm.test(text) || !isDay(text.slice(0, 10)) || text.includes('T24')) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** `Date.parse` takes the 31st of February for a day in March. */
function isDay(text: string): boolean {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && dateText(ms).startsWith(text);
}

/** A time as the API writes it. */
export function dateText(ms: number): string {
  return new Date(ms).toISOString();
}
