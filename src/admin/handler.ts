/**
 * The admin API: JSON for the command line and the dashboard, on a listener of its own (S9). The
 * handler knows no HTTP, so that a command can run it on the store while no gateway runs.
 */
import type { Server } from 'node:http';
import { join } from 'node:path';
import { z } from 'zod';
import { TokenCheck } from '../access/admin-token.ts';
import type { Actor } from '../access/audit.ts';
import type { RandomBytes } from '../access/key-format.ts';
import type { JsonObject } from '../json/value.ts';
import type { Log, NewId } from '../core/runtime.ts';
import type { Secret } from '../core/secret.ts';
import { auditRoutes } from './audit.ts';
import { createAdminHttpServer } from './server.ts';
import {
  backupRoutes,
  type ConfigRouteParts,
  configRoutes,
  type MetricsSource,
} from './operations.ts';
import { callRoutes, type ContentRouteParts, contentRoutes } from './calls.ts';
import { keyRoutes, type KeyRouteParts } from './keys.ts';
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
import { policyRoutes, type PolicyRouteParts } from './policies.ts';
import { explainRoutes } from './explain.ts';
import { playgroundRoutes, type Caller } from './playground.ts';
import { priceRoutes, type PriceRouteParts } from './prices.ts';
import { providerRoutes, type ProviderRouteParts } from './providers.ts';
import { type SessionRouteParts, sessionRoutes, Sessions } from './auth.ts';
import { dashboardFiles } from './dashboard.ts';
import { openApiRoute } from './openapi.ts';
import { seriesRoutes, usageRoutes, type UsageRouteParts } from './usage.ts';

/** What can be called, as `models` shows it. */
export interface AdminModel {
  readonly id: string;
  readonly targets: readonly {
    /** `provider/model`. */
    readonly target: string;
    /** E.g. `out until …`, `cooling down until …`; `unknown` when nothing is known against it. */
    readonly health: string;
    /** Of a provider with several: by name, never by value. */
    readonly credentials?: readonly { readonly name: string; readonly health: string }[];
  }[];
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
}

export interface AdminParts
  extends
    KeyRouteParts,
    PolicyRouteParts,
    UsageRouteParts,
    ContentRouteParts,
    PriceRouteParts,
    ConfigRouteParts,
    ProviderRouteParts,
    SessionRouteParts {
  /** Of the program. */
  readonly version: string;
  /** Looks at the folder of model files again. */
  models(): Promise<readonly AdminModel[]>;
  modelProblems(): readonly ModelProblem[];
  status(): JsonObject | Promise<JsonObject>;
  reload(): Promise<ReloadOutcome>;
  /** Absent where no gateway runs. */
  readonly playground?: Caller;
  readonly explainer?: Caller;
}

interface AdminServerParts extends AdminParts {
  readonly adminToken: Pick<TokenCheck, 'verify' | 'verifyDigest'>;
  /** The per-run secret of run.json, for the command line on the same machine. */
  readonly controlToken: Secret;
  readonly newId: NewId;
  /** Folder of the built dashboard; it may be missing. */
  readonly dashboardFolder?: string;
  /** For ids of sessions. */
  readonly random: RandomBytes;
  readonly metrics?: MetricsSource;
  /** Delays answers to wrong tokens; default: a real timer. */
  readonly wait?: (ms: number) => Promise<void>;
}

/** All routes, in the order in which they are described. */
export function adminRoutes(parts: AdminParts): readonly AdminRoute[] {
  const routes = [
    ...keyRoutes(parts),
    ...policyRoutes(parts),
    ...usageRoutes(parts),
    ...seriesRoutes(parts),
    ...callRoutes(parts),
    ...contentRoutes(parts),
    ...priceRoutes(parts),
    ...auditRoutes(parts),
    ...backupRoutes(parts),
    ...gatewayRoutes(parts),
    ...configRoutes(parts),
    ...playgroundRoutes(),
    ...explainRoutes(),
    ...providerRoutes(parts),
    ...sessionRoutes(parts),
  ];
  return [...routes, openApiRoute(routes, parts.version)];
}

/** Beside the program, in a checkout (`src/`) and in a package (`dist/`) alike. */
const builtDashboard = join(import.meta.dirname, '..', '..', 'dist', 'dashboard');

const commandLine: Actor = { name: 'command' };

/** The admin API without HTTP and without a token, for processes that can open the store directly. */
export function createAdminHandler(parts: AdminParts): AdminHandler {
  const routes = adminRoutes(parts);
  return async (method, path, { body, actor = commandLine, visit } = {}) => {
    try {
      return await answer(routes, { method, path, body, actor, visit });
    } catch (error) {
      return refusalAnswer(error) ?? failure(parts.log, error);
    }
  };
}

/**
 * The admin listener, not listening yet. Everything but `GET /healthz` and signing in needs the admin
 * token, the control token or a session; keys of the data plane open nothing (S9, S10, S11).
 */
export function createAdminServer(parts: AdminServerParts): Server {
  const control = TokenCheck.of(parts.controlToken);
  const sessions = new Sessions(parts);
  return createAdminHttpServer({
    handle: createAdminHandler({ ...parts, sessions }),
    dashboard: dashboardFiles(parts.dashboardFolder ?? builtDashboard),
    sessions,
    actorOf: (token) => {
      // First: it is known also while the store, and the admin token in it, is not.
      if (control.verify(token)) return 'command';
      return parts.adminToken.verify(token) ? 'admin' : undefined;
    },
    ...(parts.metrics === undefined ? {} : { metrics: parts.metrics }),
    ...(parts.wait === undefined ? {} : { wait: parts.wait }),
    clock: parts.clock,
    newId: parts.newId,
    log: parts.log,
    ...(parts.playground === undefined ? {} : { playground: parts.playground }),
    ...(parts.explainer === undefined ? {} : { explainer: parts.explainer }),
  });
}

async function answer(
  routes: readonly AdminRoute[],
  request: Pick<AdminRequest, 'body' | 'actor' | 'visit'> & {
    readonly method: string;
    readonly path: string;
  },
): Promise<AdminAnswer> {
  const { method, path, body, actor, visit } = request;
  const mark = path.indexOf('?');
  const found = findRoute(routes, method, mark === -1 ? path : path.slice(0, mark));
  if (!('route' in found)) return found;
  const query = Object.fromEntries(new URLSearchParams(mark === -1 ? '' : path.slice(mark + 1)));
  return found.route.run({ id: found.id, query, body, actor, visit });
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
        }),
      ),
      max_input_tokens: z.number().int().nullable().describe('Context window; null if unknown.'),
      max_tokens: z.number().int().nullable().describe('Maximum output; null if unknown.'),
      local: z.record(z.string(), z.unknown()).optional(),
    }),
  ),
  problems: z.array(z.strictObject({ subject: z.string(), why: z.string() })),
  next,
});

function gatewayRoutes(parts: AdminParts): readonly AdminRoute[] {
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
        const models = await parts.models();
        const start = after === undefined ? 0 : models.findIndex(({ id }) => id === after) + 1;
        const shown = models.slice(start, start + limit);
        const more = start + limit < models.length;
        const listed = shown.map(({ id, targets, local, maxInputTokens, maxOutputTokens }) => ({
          id,
          targets: targets.map(({ target, health, credentials }) => ({
            target,
            health,
            ...(credentials === undefined
              ? {}
              : {
                  credentials: credentials.map(({ name, health: state }) => ({
                    name,
                    health: state,
                  })),
                }),
          })),
          max_input_tokens: maxInputTokens ?? null,
          max_tokens: maxOutputTokens ?? null,
          ...(local === undefined ? {} : { local }),
        }));
        const problems = parts.modelProblems().map(({ subject, why }) => ({ subject, why }));
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
      run: async () => ({ status: 200, body: await parts.status() }),
    },
    {
      method: 'POST',
      path: '/api/reload',
      about: {
        summary: 'Reload the configuration; it is applied as a whole or not at all.',
        body: noBody,
        answer: z.strictObject({ applied: z.literal(true) }),
      },
      run: ({ actor }) => reload(parts, actor),
    },
  ];
}

async function reload(parts: AdminParts, actor: Actor): Promise<AdminAnswer> {
  const { applied, problems } = await parts.reload();
  const after = { applied, problems };
  await parts.audit.note({ actor, action: 'config.reload', subject: 'config', after });
  if (applied) return { status: 200, body: { applied: true } };
  const message = `The new configuration is invalid; the current one stays active: ${problems.join('; ')}`;
  return { status: 422, body: { error: { message, problems } } };
}
