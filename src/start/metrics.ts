/** Part of the composition root: what the metrics of a gateway are made of. */
import type { Server } from 'node:http';
import type { Settings } from '../config/settings.ts';
import type { TargetHealth } from '../gateway/health.ts';
import type { Sweeper } from '../gateway/sweeper.ts';
import { systemClock } from '../observe/clock.ts';
import type { LineLog } from '../observe/log.ts';
import type { SpanTracer } from '../observe/traces/tracer.ts';
import type { LocalEngines } from '../providers/local.ts';
import { countConnections } from '../server/doors.ts';
import type { GatewayFacts } from '../server/metrics/gateway-facts.ts';
import { Metrics } from '../server/metrics/metrics.ts';
import type { Overload } from '../server/overload/overload.ts';
import type { Webhooks } from '../server/webhooks.ts';
import type { Access } from './access.ts';
import type { Contents } from './content.ts';
import type { Idempotency } from './idempotency.ts';
import type { Limits } from './limits.ts';
import { version } from '../version.ts';
import type { HttpClient } from '../wire/http-client.ts';

export interface FactSources {
  readonly access: Pick<Access, 'storeFacts' | 'status'>;
  readonly client: HttpClient;
  readonly data: Server;
  readonly engines: LocalEngines;
  readonly health: TargetHealth;
  readonly idempotency: Idempotency;
  readonly contents: Contents;
  readonly limits: Pick<Limits, 'budgets'>;
  readonly log: LineLog;
  readonly overload: Overload;
  readonly ready: boolean;
  readonly settings: Settings;
  readonly sweeper: Sweeper;
  readonly tracer: Pick<SpanTracer, 'counts'> | undefined;
  readonly webhooks: Pick<Webhooks, 'counts'>;
}

/** @param sources what is asked at each scrape. */
export function createMetrics(sources: () => FactSources): Metrics {
  return new Metrics({
    isDeclared: (model) => sources().settings.routes.some(({ name }) => name === model),
    facts: () => gatewayFacts(sources()),
  });
}

/** How the gateway is at this moment. */
async function gatewayFacts(sources: FactSources): Promise<GatewayFacts> {
  const { access, client, engines, health, limits, overload, settings, sweeper, tracer } = sources;
  const { store, countersUp } = access.storeFacts();
  return {
    version,
    ready: sources.ready,
    calls: { live: sweeper.size, streams: sweeper.streams },
    overload: {
      step: overload.step,
      ...overload.load,
      slots: overload.calls.slots,
      slotsHeld: overload.calls.live,
      bodyMemory: overload.bodies.taken,
      shedBy: overload.shedBy,
    },
    clientConnections: await countConnections(sources.data),
    upstreams: client.counts(),
    store,
    countersUp,
    log: { dropped: sources.log.dropped },
    ...(tracer === undefined ? {} : { spans: tracer.counts() }),
    webhooks: sources.webhooks.counts,
    idempotency: sources.idempotency.answers,
    contents: sources.contents.log,
    health: health.readings(),
    targets: targetsOf(settings),
    budgets: limits.budgets(systemClock.wall()),
    engines: engines.status(),
  };
}

function targetsOf({ routes }: Settings): readonly string[] {
  return routes.flatMap(({ targets }) =>
    targets.map(({ provider, model }) => `${provider}/${model}`),
  );
}
