/**
 * The admin API: JSON for the command line and the dashboard, on a listener of its own (S9). The
 * handler knows no HTTP, so that a command can run it on the store while no gateway runs.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { TokenCheck } from '../access/keys/admin-token.ts';
import type { Actor } from '../access/audit.ts';
import { type RandomBytes, presentedKey } from '../access/keys/key-format.ts';
import { parseBody } from '../core/client-body.ts';
import { GatewayError, expectedError } from '../core/errors.ts';
import { orders, type RouteOrder } from '../core/provider.ts';
import type { Log, NewId } from '../core/runtime.ts';
import type { Secret } from '../core/secret.ts';
import { BadKeys } from '../http/overload/bad-keys.ts';
import { type BodyWatch, checkBodyHeaders, readBody } from '../http/body.ts';
import {
  HeldAnswers,
  type UnauthenticatedConnections,
} from '../http/overload/connection-limits.ts';
import { checkRequestHead } from '../http/request-headers.ts';
import type { RefusalLog } from '../http/send.ts';
import type { Json, JsonObject } from '../json/value.ts';
import { StoreError } from '../store/store-error.ts';
import { auditRoutes } from './audit.ts';
import { type Admitted, enter } from './auth.ts';
import { budgetRoutes } from './budgets.ts';
import { exportRoutes } from './call-export.ts';
import { type ConfigFileRouteDeps, configFileRoutes } from './config-file.ts';
import { type DiagnosticsRouteDeps, diagnosticsRoutes } from './diagnostics.ts';
import { type TailRouteDeps, tailRoutes } from './call-tail.ts';
import { cookieHeader } from './cookies.ts';
import { type ContentRouteDeps, callRoutes, contentRoutes } from './calls.ts';
import { type DashboardFiles, dashboardFiles, sendDashboard } from './dashboard.ts';
import {
  type Caller,
  type CallerDeps,
  createCaller,
  explain,
  explainRoutes,
  isExplain,
  isPlayground,
  play,
  playgroundRoutes,
} from './explain.ts';
import { keyListRoutes } from './key-list.ts';
import { type KeyRouteDeps, keyRoutes } from './keys.ts';
import { eventRoutes } from './events.ts';
import { failureRoutes } from './failures.ts';
import { openApiRoute } from './openapi.ts';
import {
  type MetricsSource,
  backupRoutes,
  configRoutes,
  metricsAnswer,
  metricsPath,
} from './operations.ts';
import { peopleRoutes } from './people/people.ts';
import { hasRole, rolesFor } from './people/roles.ts';
import { type SessionRouteDeps, sessionRoutes } from './people/session-routes.ts';
import { Sessions } from './people/sessions.ts';
import { SignIn, type SignInDeps } from './people/sign-in.ts';
import { type PolicyRouteDeps, policyRoutes } from './policies.ts';
import { type PriceRouteDeps, priceRoutes, providerRoutes } from './providers.ts';
import {
  type AdminAnswer,
  type AdminHandler,
  type AdminRequest,
  type AdminRoute,
  errorAnswer,
  findRoute,
  next,
  noBody,
  page,
  readInput,
  refusalAnswer,
} from './route.ts';
import { type UsageRouteDeps, seriesRoutes, usageRoutes } from './usage.ts';

/** What can be called, as `models` shows it. */
export interface AdminModel {
  readonly id: string;
  readonly targets: readonly {
    /** `provider/model`. */
    readonly target: string;
    /** `healthy`, `degraded: …`, `down: …`, or `unknown`: never called. */
    readonly health: string;
    /** Of a provider with several: by name, never by value. */
    readonly credentials?: readonly { readonly name: string; readonly health: string }[];
    /** Of weighted routes. */
    readonly weight?: number;
  }[];
  /** The order of targets, for routes with several. */
  readonly order?: RouteOrder;
  /** What the APIs of all targets take besides text; absent = not known. */
  readonly abilities?: readonly string[];
  /** Tokens of prompt and answer together, as far as that is known. */
  readonly maxInputTokens?: number;
  /** Tokens of an answer at most, as far as that is known. */
  readonly maxOutputTokens?: number;
  /** Size, parameters, context: of models that run on this machine. */
  readonly local?: JsonObject;
}

/** Something in the folder of model files that cannot be called, and why. */
export interface ModelProblem {
  readonly subject: string;
  readonly why: string;
}

/** A configuration is applied as a whole or not at all. */
export interface ReloadOutcome {
  readonly applied: boolean;
  /** What is wrong with the new configuration, one line each, with file and line. */
  readonly problems: readonly string[];
  /** Settings that differ from those that run, and are read at start only. */
  readonly needsRestart?: readonly string[];
}

export interface AdminDeps
  extends
    KeyRouteDeps,
    PolicyRouteDeps,
    UsageRouteDeps,
    ContentRouteDeps,
    TailRouteDeps,
    PriceRouteDeps,
    ConfigFileRouteDeps,
    DiagnosticsRouteDeps,
    SessionRouteDeps {
  /** Of the program. */
  readonly version: string;
  /** Examines the folder of model files again. */
  models(): Promise<readonly AdminModel[]>;
  modelProblems(): readonly ModelProblem[];
  status(): JsonObject | Promise<JsonObject>;
  reload(): Promise<ReloadOutcome>;
  /** Absent where no gateway runs. */
  readonly playground?: CallerDeps;
  /** Loads what explains calls. */
  readonly explainer?: () => Promise<CallerDeps>;
}

export interface AdminHttpDeps extends AdminDeps {
  readonly adminToken: Pick<TokenCheck, 'verify' | 'verifyDigest'>;
  /** The per-run secret of run.json, for the command line on the same machine. */
  readonly controlToken: Secret;
  readonly newId: NewId;
  /** Folder of the built dashboard; it may be missing. */
  readonly dashboardFolder?: string;
  /** For ids of sessions. */
  readonly random: RandomBytes;
  readonly metrics?: MetricsSource;
  /** Where people sign in, and what seals their sign-in; absent = by the admin token alone. */
  readonly oidc?: Pick<SignInDeps, 'settings' | 'sealer'>;
  /** Delays answers to wrong tokens; default: a real timer. */
  readonly wait?: (ms: number) => Promise<void>;
}

/** All routes, in the order in which they are described. */
export function adminRoutes(deps: AdminDeps): readonly AdminRoute[] {
  const routes = [
    // Lists before keys and calls: their last parts would be ids.
    ...keyListRoutes(deps),
    ...keyRoutes(deps),
    ...policyRoutes(deps),
    ...usageRoutes(deps),
    ...seriesRoutes(deps),
    ...failureRoutes(deps),
    ...budgetRoutes(deps),
    ...exportRoutes(deps),
    ...tailRoutes(deps),
    ...callRoutes(deps),
    ...contentRoutes(deps),
    ...priceRoutes(deps),
    ...auditRoutes(deps),
    ...backupRoutes(deps),
    ...gatewayRoutes(deps),
    ...eventRoutes(deps),
    ...configRoutes(deps),
    ...configFileRoutes(deps),
    ...playgroundRoutes(),
    ...explainRoutes(),
    ...providerRoutes(deps),
    ...diagnosticsRoutes(deps),
    ...sessionRoutes(deps),
    ...peopleRoutes({ ...deps, people: deps.store.people }),
  ];
  return [...routes, openApiRoute(routes, deps.version)];
}

/** Beside the program, in a checkout (`src/`) and in a package (`dist/`) alike. */
const builtDashboard = join(import.meta.dirname, '..', '..', 'dist', 'dashboard');

const commandLine: Actor = { name: 'command' };

/** The admin API without HTTP and without a token, for processes that can open the store directly. */
export function createAdminHandler(deps: AdminDeps, routes = adminRoutes(deps)): AdminHandler {
  return async (method, path, { body, actor = commandLine, member, http } = {}) => {
    try {
      return await answer(routes, { method, path, body, actor, member, http });
    } catch (error) {
      return refusalAnswer(error) ?? failure(deps.log, error);
    }
  };
}

/** Answers one request of the admin listener. Never throws. */
export type AnswerHttp = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** What counts the connections and the refusals of the listener. */
export interface ListenerGuards {
  readonly strangers: UnauthenticatedConnections;
  readonly refusals: RefusalLog;
}

/**
 * The admin API over HTTP. Everything but `GET /healthz` and signing in needs the admin token, the control token or a
 * session; keys of the data plane open nothing (S9, S10, S11).
 */
export async function answerOverHttp(
  deps: AdminHttpDeps,
  guards: ListenerGuards,
): Promise<AnswerHttp> {
  const { clock, playground } = deps;
  const explainer = await deps.explainer?.();
  const control = TokenCheck.of(deps.controlToken);
  const sessions = new Sessions({ ...deps, people: deps.store.people });
  const signIn =
    deps.oidc && new SignIn({ ...deps, ...deps.oidc, people: deps.store.people, sessions });
  void signIn?.probe();
  const routes = adminRoutes({ ...deps, sessions, ...(signIn && { signInButton: signIn.button }) });
  const guarded: GuardedDeps = {
    ...guards,
    routes,
    signIn,
    handle: createAdminHandler(deps, routes),
    dashboard: dashboardFiles(deps.dashboardFolder ?? builtDashboard),
    sessions,
    actorOf: (token) => {
      // First: it is known also while the store, and the admin token in it, is not.
      if (control.verify(token)) return 'command';
      return deps.adminToken.verify(token) ? 'admin' : undefined;
    },
    ...(deps.metrics === undefined ? {} : { metrics: deps.metrics }),
    ...(playground === undefined ? {} : { playground: createCaller(playground) }),
    ...(explainer === undefined ? {} : { explainer: createCaller(explainer) }),
    log: deps.log,
    guesses: new BadKeys({ clock, perMinute: () => guessesPerMinute }),
    allGuesses: new BadKeys({ clock, perMinute: () => guessesInAll }),
    held: new HeldAnswers(deps.wait ?? passed),
    wallNow: () => clock.wall(),
  };
  return (request, response) => serve(guarded, request, response);
}

async function answer(
  routes: readonly AdminRoute[],
  request: Pick<AdminRequest, 'body' | 'actor' | 'member' | 'http'> & {
    readonly method: string;
    readonly path: string;
  },
): Promise<AdminAnswer> {
  const { method, path, body, actor, member, http } = request;
  const queryAt = path.indexOf('?');
  const found = findRoute(routes, method, queryAt === -1 ? path : path.slice(0, queryAt));
  if (!('route' in found)) return found;
  const query = Object.fromEntries(
    new URLSearchParams(queryAt === -1 ? '' : path.slice(queryAt + 1)),
  );
  return found.route.run({ id: found.id, query, body, actor, member, http });
}

function failure(log: Log, error: unknown): AdminAnswer {
  const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
  log.error('admin_request_failed', { cause });
  return errorAnswer(500, 'The gateway failed to handle this request. See its log for the cause.');
}

/** Commands read all of them. */
const maxModels = 10_000;

const modelsPage = z.strictObject({
  limit: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(maxModels, `must be at most ${maxModels}`)
    .default(maxModels)
    .describe('Maximum number of models.'),
  after: page.shape.after,
});

const modelsAnswer = z.strictObject({
  models: z.array(
    z.strictObject({
      id: z.string(),
      targets: z.array(
        z.strictObject({
          target: z.string(),
          health: z.string(),
          credentials: z.array(z.strictObject({ name: z.string(), health: z.string() })).optional(),
          weight: z.number().optional().describe('Share of calls, of weighted routes.'),
        }),
      ),
      order: z.enum(orders).optional().describe('Which target is asked first; of several.'),
      abilities: z
        .array(z.string())
        .optional()
        .describe('What the APIs of all targets take besides text; absent: unknown.'),
      max_input_tokens: z.number().int().nullable().describe('Context window; null if unknown.'),
      max_tokens: z.number().int().nullable().describe('Maximum output; null if unknown.'),
      local: z.record(z.string(), z.unknown()).optional(),
    }),
  ),
  problems: z.array(z.strictObject({ subject: z.string(), why: z.string() })),
  next,
});

function gatewayRoutes(deps: AdminDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/models',
      about: {
        summary: 'List the models that can be called and their targets.',
        query: modelsPage,
        answer: modelsAnswer,
      },
      run: async ({ query }) => {
        const { limit, after } = readInput(modelsPage, query);
        const models = await deps.models();
        const start = after === undefined ? 0 : models.findIndex(({ id }) => id === after) + 1;
        const shown = models.slice(start, start + limit);
        const more = start + limit < models.length;
        const listed = shown.map(modelJson);
        const problems = deps.modelProblems().map(({ subject, why }) => ({ subject, why }));
        return {
          status: 200,
          body: { models: listed, problems, next: more ? (shown.at(-1)?.id ?? null) : null },
        };
      },
    },
    {
      method: 'GET',
      path: '/api/status',
      about: {
        summary: 'Show the status of the gateway.',
        answer: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
      },
      run: async () => ({ status: 200, body: await deps.status() }),
    },
    {
      method: 'POST',
      path: '/api/reload',
      about: {
        summary: 'Reload the configuration; it is applied as a whole or not at all.',
        body: noBody,
        answer: z.strictObject({
          applied: z.literal(true),
          needs_restart: z
            .array(z.string())
            .describe('Settings that differ from those that run, and are read at start only.'),
        }),
      },
      run: ({ actor }) => reload(deps, actor),
    },
  ];
}

function modelJson(model: AdminModel): JsonObject {
  const { id, targets, local, order, abilities, maxInputTokens, maxOutputTokens } = model;
  return {
    id,
    targets: targets.map(({ target, health, credentials, weight }) => ({
      target,
      health,
      ...(credentials === undefined
        ? {}
        : { credentials: credentials.map(({ name, health: state }) => ({ name, health: state })) }),
      ...(weight === undefined ? {} : { weight }),
    })),
    ...(order === undefined ? {} : { order }),
    ...(abilities === undefined ? {} : { abilities: [...abilities] }),
    max_input_tokens: maxInputTokens ?? null,
    max_tokens: maxOutputTokens ?? null,
    ...(local === undefined ? {} : { local }),
  };
}

async function reload(deps: AdminDeps, actor: Actor): Promise<AdminAnswer> {
  const { applied, problems, needsRestart = [] } = await deps.reload();
  const after = { applied, problems };
  await deps.audit.note({ actor, action: 'config.reload', subject: 'config', after });
  if (applied) {
    return { status: 200, body: { applied: true, needs_restart: [...needsRestart] } };
  }
  const message = `The new configuration is invalid; the current one stays active: ${problems.join('; ')}`;
  return { status: 422, body: { error: { message, problems } } };
}

// HTTP around the admin API: authentication, the body limit, and JSON for every answer.

const bodyLimitBytes = 1024 * 1024;
/** Of a request without a credential: signing in, which sends a token. */
const strangersBodyBytes = 4 * 1024;
/** Such a body comes in one piece with its head, or soon after it. */
const strangersBodyMs = 2000;
/** Wrong tokens a minute and address (S11); the right one opens all the while. */
const guessesPerMinute = 5;
/** The same of all addresses together: many of them can guess for one. */
const guessesInAll = 60;

interface GuardedDeps extends ListenerGuards {
  readonly signIn: SignIn | undefined;
  readonly routes: readonly AdminRoute[];
  readonly handle: AdminHandler;
  /** Whose this bearer token is; undefined when it opens nothing. */
  actorOf(token: string): Actor['name'] | undefined;
  readonly sessions: Sessions;
  readonly dashboard: DashboardFiles;
  /** Absent = there are none. */
  readonly metrics?: MetricsSource;
  readonly log: Log;
  /** Answers what is under its addresses. */
  readonly playground?: Caller;
  /** Explains calls. */
  readonly explainer?: Caller;
  readonly guesses: BadKeys;
  readonly allGuesses: BadKeys;
  readonly held: HeldAnswers;
  readonly wallNow: () => number;
}

const refused: AdminAnswer = errorAnswer(
  401,
  'The admin token is missing or not valid. Send it as "Authorization: Bearer TOKEN".',
);

/** Paths of calls. Without a hint, the client takes the 401 of this plane for a refusal of its key. */
const ofDataPlane = /^\/+(v1(\/|\?|$)|(chat\/completions|messages|responses)(\?|$))/;

/** Strangers get it too, so it does not name the address of the data plane. */
const otherPlane: AdminAnswer = errorAnswer(
  401,
  "This is the admin plane of the gateway, which takes the admin token. Calls go to its data plane, by default port 8686: correct the client's base address.",
);

const tooManyGuesses: AdminAnswer = errorAnswer(
  429,
  'Too many requests without a valid admin token came from this address. Send a valid one, or wait.',
);

async function serve(
  deps: GuardedDeps,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const given = await answerRoute(deps, request, response);
    if (given !== undefined) await send(request, response, given);
  } catch (error) {
    if (isLeft(error)) return;
    const refusal = refusalAnswer(error);
    if (refusal === undefined || response.headersSent) {
      deps.log.error('admin_request_failed', {
        cause: error instanceof Error ? error.stack : 'unknown',
      });
    }
    const failed = errorAnswer(500, 'The gateway failed. See its log for the cause.');
    await send(request, response, refusal ?? failed);
  }
}

/** Whether the client went away, with its request or with the answer unread. */
function isLeft(error: unknown): boolean {
  if (error instanceof GatewayError) return error.code === 'canceled';
  return error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
}

/** Undefined: it was answered. */
async function answerRoute(
  deps: GuardedDeps,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<AdminAnswer | undefined> {
  deps.strangers.unknown(request.socket);
  checkRequestHead(request, response);
  if (sendDashboard(deps.dashboard, request, response)) return undefined;
  const { method = 'GET', url = '/' } = request;
  if (url === '/healthz') return alive(method);
  if ((await deps.signIn?.answer(request, response)) === true) return undefined;
  return answerKnown(deps, request, response);
}

/** For callers with a token or a session, and those who open one. */
async function answerKnown(
  deps: GuardedDeps,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<AdminAnswer | undefined> {
  const { method = 'GET', url = '/' } = request;
  // Before anything else is examined: a stranger learns not even which addresses there are.
  const entry = scraper(deps, request) ?? (await enter(deps, request).catch(withoutReason));
  const unauthorized = ofDataPlane.test(url) ? otherPlane : refused;
  if (entry === 'anonymous') return unauthorized;
  if (entry === 'guess') return wrongToken(deps, request.socket.remoteAddress, unauthorized);
  if (!('http' in entry)) return entry;
  if (entry.name !== undefined) deps.strangers.known(request.socket);
  const refusal = roleRefusal(deps.routes, method, url, entry);
  if (refusal !== undefined) return refusal;
  if (deps.playground !== undefined && isPlayground(url)) {
    return play(deps.playground, request, response);
  }
  if (deps.explainer !== undefined && isExplain(url)) {
    return explain(deps.explainer, request, response);
  }
  return handle(deps, request, entry);
}

/** Why the store is away names its file or its server, and any cookie makes a stranger's request ask it. */
function withoutReason(error: unknown): AdminAnswer {
  if (!(error instanceof StoreError)) throw error;
  return errorAnswer(503, 'The store is not available, so the session cannot be looked up.');
}

/**
 * The one place where roles are enforced (`people/roles.ts`). What no route has is for owners alone: they learn what
 * is there.
 */
function roleRefusal(
  routes: readonly AdminRoute[],
  method: string,
  url: string,
  { member }: Admitted,
): AdminAnswer | undefined {
  if (member === undefined) return undefined;
  const [path = ''] = url.split('?', 1);
  const asked = method === 'HEAD' ? 'GET' : method;
  const found = path === metricsPath ? metricsRoute : findRoute(routes, asked, path);
  if (!('route' in found)) return found;
  const allowed = rolesFor(asked, found.route.path);
  if (hasRole(member, ...allowed)) return undefined;
  return errorAnswer(
    403,
    `${asked} ${found.route.path} is for the roles ${allowed.join(', ')}. You are signed in as ${member.name} with ${member.roles.join(', ')}.`,
  );
}

const metricsRoute = { route: { path: metricsPath } } as const;

function alive(method: string): AdminAnswer {
  if (method === 'GET' || method === 'HEAD') return { status: 200, body: { status: 'ok' } };
  return { ...errorAnswer(405, 'This address takes GET only.'), allow: 'GET, HEAD' };
}

/** Authenticates the token that opens only the metrics. */
function scraper(
  { metrics, wallNow }: GuardedDeps,
  request: IncomingMessage,
): Admitted | undefined {
  if (metrics === undefined || !isMetrics(request)) return undefined;
  const token = presentedKey(request.headers.authorization, undefined);
  if (!metrics.opens(token)) return undefined;
  return { name: 'admin', http: { signedIn: false, now: wallNow() } };
}

async function handle(
  deps: GuardedDeps,
  request: IncomingMessage,
  { name, member, http }: Admitted,
): Promise<AdminAnswer> {
  const { method = 'GET', url = '/' } = request;
  if (deps.metrics !== undefined && name !== undefined && isMetrics(request)) {
    return metricsAnswer(deps.metrics, method, request.headers);
  }
  const { remoteAddress: ip } = request.socket;
  const body = await (name === undefined
    ? strangersJson(request)
    : readJson(request, bodyLimitBytes));
  const actor = { name: name ?? 'admin', ...(ip === undefined ? {} : { ip }) };
  const given = await deps.handle(method, url, { body, actor, member, http });
  if (name !== undefined || given.status !== 401) return given;
  const counted = await wrongToken(deps, ip);
  return counted.status === 401
    ? { ...given, ...(counted.last === true ? { last: counted.last } : {}) }
    : counted;
}

function isMetrics({ url = '/' }: IncomingMessage): boolean {
  return url === metricsPath || url.startsWith(`${metricsPath}?`);
}

/** Delays the answer to a wrong token. The token is checked before, so that a valid one never waits. */
async function wrongToken(
  { guesses, allGuesses, held, refusals }: GuardedDeps,
  address: string | undefined,
  unauthorized: AdminAnswer = refused,
): Promise<AdminAnswer> {
  const waitMs = guesses.refused(address);
  const manyInAll = allGuesses.refused('') !== undefined;
  const status = waitMs === undefined ? 401 : 429;
  refusals.note({ status, error: 'admin_token', address, plane: 'admin' });
  const answer = waitMs === undefined ? unauthorized : { ...tooManyGuesses, retryAfterMs: waitMs };
  if (waitMs === undefined && !manyInAll) return answer;
  return (await held.hold(address)) ? answer : { ...answer, last: true };
}

function passed(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

/** A body without a credential has less time and less room. @throws GatewayError `request_timeout` too. */
async function strangersJson(request: IncomingMessage): Promise<Json | undefined> {
  let timer: NodeJS.Timeout | undefined;
  return await readJson(request, strangersBodyBytes, {
    begun: (refuse) => {
      timer = setTimeout(() => refuse(bodyTooLate()), strangersBodyMs).unref();
    },
    came: () => undefined,
    over: () => clearTimeout(timer),
  });
}

function bodyTooLate(): GatewayError {
  const seconds = strangersBodyMs / 1000;
  return expectedError(
    'request_timeout',
    `The body of a request without a token must arrive within ${seconds} seconds.`,
  );
}

async function readJson(
  request: IncomingMessage,
  maxBytes: number,
  watch?: BodyWatch,
): Promise<Json | undefined> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length === 0 && request.headers['transfer-encoding'] === undefined) return undefined;
  checkBodyHeaders(request, maxBytes);
  return parseBody((await readBody(request, maxBytes, watch)).whole(), new Set()).value;
}

/** @throws what ends an answer in pieces before its end */
async function send(
  request: IncomingMessage,
  response: ServerResponse,
  answer: AdminAnswer,
): Promise<void> {
  if (response.headersSent || response.destroyed) return;
  const { pieces } = answer;
  if (pieces === undefined) {
    const { type, content, encoding } = contentOf(answer);
    writeHead(request, response, answer, {
      'content-type': type,
      'content-length': content.length,
      ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
    });
    response.end(request.method === 'HEAD' ? undefined : content);
  } else {
    writeHead(request, response, answer, { 'content-type': pieces.type });
    await pipeline(pieces.content, response);
  }
  // The rest of an unwanted body is discarded, within the time limit of a request.
  request.resume();
}

function writeHead(
  request: IncomingMessage,
  response: ServerResponse,
  answer: AdminAnswer,
  content: OutgoingHttpHeaders,
): void {
  response.writeHead(answer.status, {
    ...content,
    'cache-control': 'no-store',
    ...(answer.fileName === undefined
      ? {}
      : { 'content-disposition': `attachment; filename="${answer.fileName}"` }),
    ...(answer.cookie === undefined ? {} : { 'set-cookie': cookieHeader(request, answer.cookie) }),
    ...(answer.etag === undefined ? {} : { etag: answer.etag }),
    ...(answer.allow === undefined ? {} : { allow: answer.allow }),
    ...(answer.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    ...(answer.retryAfterMs === undefined
      ? {}
      : { 'retry-after': String(Math.ceil(answer.retryAfterMs / 1000)) }),
    ...(request.complete && answer.last !== true ? {} : { connection: 'close' }),
  });
}

function contentOf({ bytes, csv, body }: AdminAnswer): NonNullable<AdminAnswer['bytes']> {
  if (bytes !== undefined) return bytes;
  return csv === undefined
    ? { type: 'application/json', content: Buffer.from(JSON.stringify(body)) }
    : { type: 'text/csv; charset=utf-8', content: Buffer.from(csv) };
}
