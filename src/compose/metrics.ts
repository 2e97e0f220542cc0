/** Part of the composition root: what the metrics of a gateway are made of. */
import type { Server } from 'node:http';
import type { Settings } from '../config/settings.ts';
import type { Webhooks } from '../features/webhooks.ts';
import type { TargetHealth } from '../gateway/targets/health.ts';
import type { Sweeper } from '../gateway/deadlines.ts';
import { countConnections } from '../http/listen.ts';
import type { Overload } from '../http/overload/overload.ts';
import type { LineLog } from '../observe/log.ts';
import type { GatewayFacts } from '../observe/metrics/gateway-families.ts';
import { Metrics } from '../observe/metrics/metrics.ts';
import { systemClock } from '../observe/runtime.ts';
import type { SpanTracer } from '../observe/traces/tracer.ts';
import type { LocalEngines } from '../providers/local.ts';
import type { HttpClient } from '../wire/http-client.ts';
import type { Access } from './access.ts';
import type { Contents, Idempotency, Responses } from './features.ts';
import { storeDown, type Tallies, unready } from './host/data-plane-host.ts';
import type { Limits } from './limits.ts';
import { version } from './options.ts';

export interface FactSources {
  readonly access: Pick<Access, 'storeFacts' | 'status'>;
  readonly client: HttpClient;
  readonly data: Server;
  readonly engines: LocalEngines;
  readonly health: TargetHealth;
  readonly idempotency: Idempotency;
  readonly contents: Contents;
  readonly responses: Responses;
  readonly limits: Pick<Limits, 'budgets'>;
  readonly log: LineLog;
  readonly overload: Overload;
  readonly ready: boolean;
  readonly settings: Settings;
  readonly sweeper: Sweeper;
  readonly tracer: Pick<SpanTracer, 'counts'> | undefined;
  readonly webhooks: Pick<Webhooks, 'counts'>;
}

/** @param sources read at each scrape. */
export function createMetrics(sources: () => FactSources): Metrics {
  return new Metrics({
    isDeclared: (model) => sources().settings.routes.some(({ name }) => name === model),
    facts: () => gatewayFacts(sources()),
  });
}

/** The current state of the gateway. */
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
    responses: sources.responses.stored,
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

// Part of the composition root: `/api/status`.

interface StatusInput {
  readonly url: string;
  readonly adminUrl: string;
  readonly providers: readonly string[];
  /** The metrics of all serving processes. */
  readonly tallies: Tallies;
}

export function statusJson(
  { access, engines, ready, settings, webhooks }: FactSources,
  { url, adminUrl, providers, tallies }: StatusInput,
): { readonly [name: string]: string | number | boolean | null } {
  const [engine] = engines.status();
  const { [unready]: notReady = 0, [storeDown]: down = 0, ...counts } = tallies;
  const { store_up: up = true, ...store } = access.status();
  return {
    version,
    pid: process.pid,
    url,
    admin_url: adminUrl,
    ready: ready && notReady === 0,
    ...counts,
    providers: providers.join(','),
    engine: engine?.phase ?? null,
    engine_reason: engine?.reason ?? null,
    config: settings.configFile ?? null,
    data_dir: settings.dataDir,
    webhooks_dropped: webhooks.counts.dropped,
    ...store,
    store_up: up === true && down === 0,
  };
}
