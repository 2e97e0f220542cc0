/** Part of the composition root: `/api/status`. */
import type { FactSources } from './start-metrics.ts';
import { version } from './version.ts';

export interface StatusParts {
  readonly url: string;
  readonly providers: readonly string[];
}

export function statusJson(
  { access, engines, idempotency, overload, ready, settings, sweeper }: FactSources,
  { url, providers }: StatusParts,
): { readonly [name: string]: string | number | boolean | null } {
  const [engine] = engines.status();
  return {
    version,
    url,
    ready,
    live_calls: sweeper.size,
    ...overload.status(),
    ...idempotency.status(),
    providers: providers.join(','),
    engine: engine?.phase ?? null,
    engine_reason: engine?.reason ?? null,
    config: settings.configFile ?? null,
    data_dir: settings.dataDir,
    ...access.status(),
  };
}
