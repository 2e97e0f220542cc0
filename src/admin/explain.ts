/**
 * `POST /api/explain` on the admin listener: what a request would do. It takes the way of every call (head, scope,
 * labels, route, limits) and ends before the upstream request; nothing is sent, reserved or recorded.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Admission, AdmissionPreview } from '../access/admission.ts';
import { costOf } from '../access/cost.ts';
import type { PreviewedLimit } from '../access/preview-counters.ts';
import type { PriceTable } from '../access/prices.ts';
import { KeyPrincipal, type Principal } from '../access/keys/principal.ts';
import { type RequestedSize, Reservation } from '../access/reservation.ts';
import type { Call } from '../core/call.ts';
import { parseClientBody } from '../core/client-body.ts';
import type { ClientDialect } from '../core/dialect.ts';
import { GatewayError } from '../core/errors.ts';
import { type Price, dollarsText } from '../core/money.ts';
import { noPolicy } from '../core/policy.ts';
import type { NewId } from '../core/runtime.ts';
import { clientDialects } from '../dialects/registry.ts';
import { type ExplainedCall, type ExplainedTarget, explainCall } from '../gateway/explain.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { nameOf, neverCalled } from '../gateway/targets/health.ts';
import type { AuthenticationDeps } from '../http/authenticate-request.ts';
import { DataPlane, type DataPlaneOptions } from '../http/data-plane.ts';
import { callingEndpoints, generatingEndpoints } from '../http/paths.ts';
import { idHeaders } from '../http/send.ts';
import { tryParse } from '../json/parse.ts';
import type { Pieces } from '../json/pieces.ts';
import type { Json, JsonObject } from '../json/value.ts';
import type { CallStore } from '../store/store.ts';
import { priceAnswer, priceJson } from './providers.ts';
import { type AdminAnswer, type AdminRoute, errorAnswer } from './route.ts';

const explainPath = '/api/explain';

/** Endpoints as clients name them, after `/v1`. */
const endpoints = callingEndpoints(clientDialects);

/** The period of calls from which the mean length of answers is computed. */
const lookBackMs = 7 * 86_400_000;

export interface ExplainDeps {
  readonly keys: CallerKeys;
  readonly options: DataPlaneOptions;
  readonly admission: Pick<Admission, 'preview'>;
  readonly prices: () => Pick<PriceTable, 'find' | 'otherwise'>;
  readonly store: Pick<CallStore, 'usage'>;
}

/** Data about a call before its targets are examined. */
interface Previewed extends AdmissionPreview {
  readonly size: RequestedSize | undefined;
}

/** A data plane that explains calls instead of making them. */
export function explainerOf({ keys, options, ...input }: ExplainDeps): CallerDeps {
  // Keyed by the principal of one request, so that nothing remains of a client that disconnects.
  const previews = new WeakMap<object, Previewed>();
  const makePlane: CallerDeps['makePlane'] = ({ authenticate, refreshKey }) => {
    const { contents: _kept, tracer: _traced, refused: _counted, ...own } = options;
    return new DataPlane({
      ...own,
      authenticate: (...presented) => fromAnywhere(authenticate(...presented)),
      refreshKey,
      record: () => undefined,
      admission: {
        admit: async (call) => {
          const preview = await input.admission.preview(call);
          previews.set(call.principal, { ...preview, size: call.size });
          return preview.grant;
        },
      },
      serve: async (gateway, call, sink) => {
        const preview = previews.get(call.caller);
        const bodies = new LongTexts(gateway.newId);
        const answer = await explanation({ ...input, gateway, call, preview, bodies });
        const bytes = bodies.written(answer);
        sink.start(200, [
          ...idHeaders(call.id),
          'content-type',
          'application/json',
          'content-length',
          String(bytes.length),
        ]);
        sink.end(bytes);
      },
    });
  };
  return { keys, makePlane };
}

/** The same caller without address limits: the admin's address is not the one from which the key is used. */
function fromAnywhere(principal: Principal): Principal {
  return {
    ...principal,
    anywhere: true,
    policies: () => principal.policies(),
    allowsModel: (name) => principal.allowsModel(name),
    allowsEndpoint: (scope) => principal.allowsEndpoint(scope),
    allowsAddress: () => true,
    revoked: () => principal.revoked(),
  };
}

export function isExplain(url: string): boolean {
  return url === explainPath || url.startsWith(`${explainPath}?`);
}

/**
 * Explains the request in the body. `?endpoint=` is its dialect, `?key=ID` the key of the call. A request that the endpoint
 * itself would refuse gets the endpoint's error: its status, in its dialect.
 */
export async function explain(
  explainer: Caller,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<AdminAnswer | undefined> {
  if (request.method !== 'POST') {
    return { ...errorAnswer(405, 'This address takes POST only.'), allow: 'POST' };
  }
  const { searchParams } = new URL(request.url ?? '', 'http://gateway');
  const asked = searchParams.get('endpoint')?.replace(/^\/?(v1\/)?/, '');
  const endpoint = asked === undefined ? endpoints[0] : endpoints.find((each) => each === asked);
  if (endpoint === undefined) {
    return errorAnswer(400, `There is no such endpoint; ${endpoints.join(' or ')}.`, 'endpoint');
  }
  return callAs(explainer, request, response, `/v1/${endpoint}`);
}

interface Explaining extends Pick<ExplainDeps, 'prices' | 'store'> {
  readonly gateway: Gateway;
  readonly call: Call;
  readonly preview: Previewed | undefined;
  readonly bodies: LongTexts;
}

async function explanation(input: Explaining): Promise<JsonObject> {
  const { gateway, call, preview } = input;
  const explained = await explainCall(gateway, call);
  const refusal = preview?.refusal ?? explained.refusal;
  const { prompt } = explained;
  const targets: JsonObject[] = [];
  for (const target of explained.targets) targets.push(await targetJson(target, input));
  return {
    endpoint: call.dialect.id,
    model: call.head.model,
    route: { name: call.route.name, order: call.route.order, strict: call.strict },
    key: call.caller.keyId,
    tags: [...call.labels.tags],
    refused: refusal === undefined ? null : refusalJson(call, refusal),
    prompt:
      prompt === undefined ? null : { tokens: prompt.tokens, counted_by: countedBy[prompt.source] },
    cost: await costJson(input, explained),
    limits: (preview?.limits ?? []).map(limitJson),
    targets,
  };
}

const countedBy = {
  reported: 'provider',
  counted: 'tokenizer',
  estimated: 'estimate',
} as const;

/**
 * The highest cost, by the most expensive target, and the expected one, by the first target and an answer of mean
 * length.
 */
async function costJson(
  input: Explaining,
  { targets: [first], prompt }: Pick<ExplainedCall, 'targets' | 'prompt'>,
): Promise<JsonObject> {
  const { call, gateway, preview } = input;
  const outputTokens = await usualOutput(input, gateway.clock.wall());
  const promptTokens = prompt?.tokens;
  const price = first === undefined ? undefined : priceOf(input, first.target);
  const known = price !== undefined && promptTokens !== undefined && outputTokens !== undefined;
  const expected = known
    ? costOf(price, { freshInputTokens: promptTokens, outputTokens })?.total
    : undefined;
  return {
    highest_usd: dollarsOrNull(await highestCost(input)),
    expected_usd: dollarsOrNull(expected),
    expected_output_tokens: outputTokens ?? null,
    reserved_output_tokens: preview?.grant?.outputCap ?? call.head.maxOutputTokens ?? null,
  };
}

/** What a budget would reserve, in nanodollars; undefined where a price is not known, or the cost has no bound. */
async function highestCost(input: Explaining): Promise<number | undefined> {
  const { call, preview } = input;
  const reserved = preview?.grant?.reserved;
  const size = preview?.size;
  if (reserved !== undefined || size === undefined) return reserved;
  const prices = call.route.targets.map((target) => priceOf(input, target));
  const known = prices.filter((price) => price !== undefined);
  if (known.length < prices.length) return undefined;
  const reservation = new Reservation(size, known);
  try {
    reservation.assertPriced();
  } catch {
    return undefined;
  }
  return reservation.cost();
}

function dollarsOrNull(nanodollars: number | undefined): string | null {
  return nanodollars === undefined ? null : dollarsText(nanodollars);
}

/** The mean answer to calls of this model in the last week; undefined where there was none. */
async function usualOutput({ call, store }: Explaining, now: number): Promise<number | undefined> {
  const filter = { model: call.head.model };
  const [row] = await store.usage({ by: 'model', since: now - lookBackMs, filter });
  const answered = row === undefined ? 0 : row.calls - row.failed;
  if (row === undefined || answered <= 0) return undefined;
  const mean = Math.round(row.outputTokens / answered);
  return Math.min(mean, call.head.maxOutputTokens ?? mean);
}

function priceOf(
  { prices, gateway }: Explaining,
  { provider, model }: ExplainedTarget['target'],
): Price | undefined {
  return prices().find(provider.id, model, gateway.clock.wall());
}

async function targetJson(explained: ExplainedTarget, input: Explaining): Promise<JsonObject> {
  const { target, place, why, failure, request, notes, refusal } = explained;
  const price = priceOf(input, target);
  return {
    target: nameOf(target),
    credential: target.credential ?? null,
    place: place ?? null,
    why,
    health: failure ?? neverCalled,
    price: price === undefined ? null : priceJson(price),
    mode: request?.mode ?? null,
    notes: notes.map((note) => ({ ...note })),
    refused: refusal === undefined ? null : refusalJson(input.call, refusal),
    request: request === undefined ? null : requestJson(request.request, input.bodies),
  };
}

type SentRequest = NonNullable<ExplainedTarget['request']>['request'];

function requestJson(request: SentRequest, bodies: LongTexts): JsonObject {
  const { endpoint, method, headers, body } = request;
  return {
    method,
    url: `${endpoint.origin}${endpoint.path}`,
    headers: shownHeaders([...endpoint.headers, ...headers]),
    body: body === undefined ? null : shownBody(body, bodies),
  };
}

const noKeys: ReadonlySet<string> = new Set();

/** A translated one may nest deeper than a client's may. */
function shownBody(body: Pieces, bodies: LongTexts): Json {
  try {
    const source = parseClientBody(body, noKeys);
    return source === undefined ? bodies.hold(body) : source.value;
  } catch {
    return tryParse(body.toString()) ?? null;
  }
}

/** Long bodies in an answer: placeholders replace them until it is written, so that they are not parsed (G11). */
class LongTexts {
  readonly #mark: string;
  readonly #held: Pieces[] = [];

  constructor(newId: NewId) {
    this.#mark = newId('body_');
  }

  /** @returns the placeholder for the JSON of the body */
  hold(body: Pieces): string {
    this.#held.push(body);
    return `${this.#mark}:${this.#held.length - 1}`;
  }

  written(answer: JsonObject): Buffer {
    const pieces: Buffer[] = [];
    for (const [i, text] of JSON.stringify(answer).split(`"${this.#mark}:`).entries()) {
      const end = i === 0 ? -1 : text.indexOf('"');
      if (i > 0) pieces.push(...(this.#held[Number(text.slice(0, end))]?.list ?? []));
      pieces.push(Buffer.from(text.slice(end + 1)));
    }
    return Buffer.concat(pieces);
  }
}

/** Headers whose values are not secrets. */
const openHeaders: ReadonlySet<string> = new Set([
  'content-type',
  'accept',
  'accept-encoding',
  'anthropic-version',
  'anthropic-beta',
  'user-agent',
]);

function shownHeaders(flat: readonly string[]): JsonObject {
  const shown: { [name: string]: Json } = {};
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const name = (flat[i] ?? '').toLowerCase();
    shown[name] = openHeaders.has(name) ? (flat[i + 1] ?? '') : '[masked]';
  }
  return shown;
}

function refusalJson(
  { dialect, id }: { readonly dialect: ClientDialect; readonly id: string },
  error: GatewayError,
): JsonObject {
  const { status, body } = dialect.writeError(error, id);
  return { status, body };
}

function limitJson({ kind, holder, limit, takes, model, budget }: PreviewedLimit): JsonObject {
  const money = kind === 'budget';
  return {
    kind,
    holder: `${holder.kind}:${holder.name}`,
    limit: money ? dollarsText(limit) : limit,
    takes: money ? dollarsText(takes) : takes,
    left: budget === undefined ? null : dollarsText(budget.left),
    per: budget === undefined ? (kind === 'concurrent' ? null : 'minute') : budget.per,
    window: budget?.window ?? null,
    models: model ?? null,
  };
}

const refused = z
  .strictObject({ status: z.number(), body: z.looseObject({}) })
  .nullable()
  .describe('The error that the client would get; null: the request would be sent.');
const note = z.strictObject({
  path: z.string(),
  what: z.enum(['lost', 'changed']),
  why: z.string(),
});

const explained = z.strictObject({
  endpoint: z.string(),
  model: z.string(),
  route: z.strictObject({ name: z.string(), order: z.string(), strict: z.boolean() }),
  key: z.string(),
  tags: z.array(z.string()),
  refused,
  prompt: z
    .strictObject({
      tokens: z.number(),
      counted_by: z.enum(['provider', 'tokenizer', 'estimate']),
    })
    .nullable(),
  cost: z.strictObject({
    highest_usd: z
      .string()
      .nullable()
      .describe(
        'At the most expensive target. Null: a price is unknown, or the cost is unbounded.',
      ),
    expected_usd: z
      .string()
      .nullable()
      .describe('At the first target, with the mean answer length of a week.'),
    expected_output_tokens: z.number().nullable(),
    reserved_output_tokens: z.number().nullable(),
  }),
  limits: z.array(
    z.strictObject({
      kind: z.enum(['concurrent', 'requests', 'tokens', 'budget']),
      holder: z.string(),
      limit: z.union([z.number(), z.string()]).describe('Dollars of a budget, as text.'),
      takes: z.union([z.number(), z.string()]),
      left: z.string().nullable().describe('Dollars; only for budgets.'),
      per: z.string().nullable(),
      window: z.string().nullable(),
      models: z.string().nullable().describe('Null: all models.'),
    }),
  ),
  targets: z.array(
    z.strictObject({
      target: z.string(),
      credential: z.string().nullable(),
      place: z.number().nullable().describe('Position in the order of attempts; null: not tried.'),
      why: z.string(),
      health: z.string(),
      price: priceAnswer.nullable(),
      mode: z.enum(['relay', 'translate']).nullable(),
      notes: z.array(note),
      refused,
      request: z
        .strictObject({
          method: z.string(),
          url: z.string(),
          headers: z.record(z.string(), z.string()),
          body: z.looseObject({}).nullable(),
        })
        .nullable(),
    }),
  ),
});

/** The route's description, and the answer of a command that reads the store itself. */
export function explainRoutes(): readonly AdminRoute[] {
  return [
    {
      method: 'POST',
      path: explainPath,
      about: {
        summary:
          'Explain a request without sending it: targets, upstream bodies, notes, tokens, cost, limits.',
        query: z.strictObject({
          endpoint: z
            .enum(endpoints)
            .optional()
            .describe('Of the request in the body. Default: chat/completions.'),
          key: z
            .string()
            .optional()
            .describe('Id of the key to call as. Default: none, no limits.'),
        }),
        body: z.looseObject({ model: z.string() }),
        answer: explained,
      },
      run: () => errorAnswer(503, 'No gateway runs here that could explain a call.'),
    },
  ];
}

// The dashboard's playground: `POST /api/playground/chat/completions` and `…/messages` on the admin listener,
// for authenticated callers. Its calls take the normal path and have ledger rows.

/** Replaces `/v1` of the endpoints. */
const prefix = '/api/playground';

/** Replaces the key id in rows of calls without a key. */
const playgroundKeyId = 'playground';

/** Without limits: a caller with the admin token could create such a key anyway. */
export const playgroundPrincipal: Principal = new KeyPrincipal({
  id: playgroundKeyId,
  name: 'Playground',
  digest: '',
  previous: [],
  models: ['*'],
  endpoints: clientDialects.map(({ scope }) => scope),
  cidrs: [],
  tags: [],
  policy: noPolicy,
  shrink: true,
  createdAt: 0,
  version: 1,
});

/** A data plane whose callers are named by the id of their key. */
interface Plane {
  /** Never throws. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void> | undefined;
}

interface CallerKeys {
  /** What a key may do; undefined unless it is active. */
  principalOf(keyId: string): Principal | undefined;
}

/** Makes calls for the admin plane, as any key or as none. */
export interface Caller extends CallerKeys {
  readonly plane: Plane;
}

export interface CallerDeps {
  readonly keys: CallerKeys;
  /** A data plane with this authenticator. */
  makePlane(authenticator: Pick<AuthenticationDeps, 'authenticate' | 'refreshKey'>): Plane;
}

export function createCaller({ keys, makePlane }: CallerDeps): Caller {
  const principalOf = (id: string): Principal | undefined =>
    id === playgroundKeyId ? playgroundPrincipal : keys.principalOf(id);
  // `play` puts the id of the key where clients send the key.
  const authenticate = (id = ''): Principal => {
    const principal = principalOf(id);
    if (principal !== undefined) return principal;
    throw new GatewayError('unauthenticated', 'The key that this call was made as is not active.');
  };
  return { principalOf, plane: makePlane({ authenticate, refreshKey: () => undefined }) };
}

export function isPlayground(url: string): boolean {
  return url.startsWith(`${prefix}/`);
}

/** Makes the playground's call. Resolves as `callAs`. */
export function play(
  playground: Caller,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<AdminAnswer | undefined> {
  const { pathname } = new URL(request.url ?? '', 'http://gateway');
  return callAs(playground, request, response, `/v1${pathname.slice(prefix.length)}`);
}

/**
 * Has the data plane handle the request under another path; `?key=ID` makes the call as that key, with its scope, limits
 * and budgets. Resolves when it is over, or with what to answer instead of it.
 */
async function callAs(
  { principalOf, plane }: Caller,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<AdminAnswer | undefined> {
  const { searchParams } = new URL(request.url ?? '', 'http://gateway');
  const keyId = searchParams.get('key') ?? playgroundKeyId;
  if (principalOf(keyId) === undefined) {
    return errorAnswer(404, 'There is no active key with this id to call with.', 'key');
  }
  // What opened the admin plane is none of the data plane's business.
  delete request.headers['x-api-key'];
  delete request.headers.cookie;
  // Stored answers are sealed with a client's secret, and here is none.
  delete request.headers['idempotency-key'];
  request.headers.authorization = keyId;
  Object.assign(request, { url: path });
  await plane.handle(request, response);
  return undefined;
}

/** So that the addresses are described, and what a command gets that asks the store itself. */
export function playgroundRoutes(): readonly AdminRoute[] {
  return generatingEndpoints(clientDialects).map((endpoint) => ({
    method: 'POST',
    path: `${prefix}/${endpoint}`,
    about: {
      summary: `Call POST /v1/${endpoint} as the playground does: answers and errors are those of the data plane.`,
      query: z.strictObject({
        key: z.string().optional().describe('Id of the key to call as. Default: none, no limits.'),
      }),
      body: z.looseObject({ model: z.string() }),
      answer: z.looseObject({}),
    },
    run: () => errorAnswer(503, 'No gateway runs here that could make a call.'),
  }));
}
