/**
 * The admin listener. What answers its requests is loaded with the first of them: a quarter of all modules, and a
 * library for forms, which a gateway that only serves calls does not need in memory.
 */
import type { Server } from 'node:http';
import type { ListenerTls } from '../core/addresses.ts';
import { createListener, dataTimes } from '../http/listen.ts';
import { UnauthenticatedConnections, capConnections } from '../http/overload/connection-limits.ts';
import { RefusalLog } from '../http/send.ts';
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
  const load = (): Promise<AnswerHttp> => (loading ??= loadAnswers(deps, { strangers, refusals }));
  // Whether people can sign in is asked at the start, and logged.
  if (deps.oidc !== undefined) void load();
  const server = createListener(
    (request, response) => {
      // Set for every answer, including those of the playground's data plane.
      for (const [name, value] of Object.entries(pageSafety)) response.setHeader(name, value);
      load()
        .then((answer) => answer(request, response))
        .catch((error: unknown) => {
          log.error('admin_request_failed', { cause: String(error) });
          response.destroy();
        });
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

/** The library first, in a turn of its own: calls of the data plane wait for less at once. */
async function loadAnswers(
  deps: AdminHttpDeps,
  guards: { readonly strangers: UnauthenticatedConnections; readonly refusals: RefusalLog },
): Promise<AnswerHttp> {
  await import('zod');
  const { answerOverHttp } = await import('./handler.ts');
  return answerOverHttp(deps, guards);
}
