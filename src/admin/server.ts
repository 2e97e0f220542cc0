/**
 * The admin listener. What answers its requests is loaded with the first of them: a quarter of all modules, and a
 * library for forms, which a gateway that only serves calls does not need in memory.
 */
import type { Server } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ListenerTls } from '../core/addresses.ts';
import { createListener, dataTimes } from '../http/listen.ts';
import { UnauthenticatedConnections, capConnections } from '../http/overload/connection-limits.ts';
import { RefusalLog, sendJson } from '../http/send.ts';
import { pageSafety } from './dashboard.ts';
import type { AdminHttpDeps, AnswerHttp } from './handler.ts';

const times = { ...dataTimes, requestMs: 30_000 };
/** It has files of its own to open: strangers may not take those of the data plane (G10). */
const maxConnections = 200;
/** The other half is reserved for connections that presented a credential. */
const strangersLimits = { inAll: 100, ofAddress: 64 };

interface AdminServerDeps extends AdminHttpDeps {
  /** Absent: plain HTTP. */
  readonly tls?: ListenerTls | undefined;
}

/** A server that is not listening yet. */
export function createAdminServer(deps: AdminServerDeps): Server {
  const { clock, newId, log, tls } = deps;
  const refusals = new RefusalLog({ log, clock });
  const strangers = new UnauthenticatedConnections(strangersLimits);
  let loading: Promise<AnswerHttp> | undefined;
  // A load that failed is tried again by the next request: files may have been missing for a moment.
  const load = (): Promise<AnswerHttp> =>
    (loading ??= loadAnswers(deps, { strangers, refusals }).catch((error: unknown) => {
      loading = undefined;
      throw error;
    }));
  const logFailure = (error: unknown): void =>
    log.error('admin_request_failed', {
      cause: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
  // Whether people can sign in is asked at the start, and logged.
  if (deps.oidc !== undefined) load().catch(logFailure);
  const server = createListener(
    (request, response) => {
      // Set for every answer, including those of the playground's data plane.
      for (const [name, value] of Object.entries(pageSafety)) response.setHeader(name, value);
      load().then(
        (answer) => answer(request, response),
        (error: unknown) => {
          logFailure(error);
          const message =
            'The admin API could not be loaded. The log says why (admin_request_failed).';
          sendJson(response, { status: 500, body: { error: { message } } });
        },
      );
    },
    {
      newId,
      refused: (refusal) => refusals.note({ ...refusal, plane: 'admin' }),
      refusalHeaders: pageSafety,
      times,
      tls,
      clock,
    },
  );
  strangers.watch(server);
  capConnections(server, () => maxConnections);
  return server;
}

/**
 * The modules that the answers are made of, before the handler that imports all of them. Each is imported in a turn of
 * its own: calls of the data plane wait for one of them, not for all.
 */
const parts: readonly (() => Promise<unknown>)[] = [
  () => import('zod'),
  () => import('../config/access-schema.ts'),
  () => import('./route.ts'),
  () => import('./keys.ts'),
  () => import('./policies.ts'),
  () => import('./usage.ts'),
  () => import('./calls.ts'),
  () => import('./providers.ts'),
  () => import('./explain.ts'),
  () => import('./config-file.ts'),
  () => import('./people/people.ts'),
];

async function loadAnswers(
  deps: AdminHttpDeps,
  guards: { readonly strangers: UnauthenticatedConnections; readonly refusals: RefusalLog },
): Promise<AnswerHttp> {
  for (const part of parts) {
    await part();
    await nextTurn();
  }
  const { answerOverHttp } = await import('./handler.ts');
  return answerOverHttp(deps, guards);
}
