/** Part of the composition root: `/api/status`. */
import type { Tallies } from './front.ts';
import type { FactSources } from './metrics.ts';
import { version } from '../version.ts';

export interface StatusParts {
  readonly url: string;
  readonly providers: readonly string[];
  /** Of all processes that serve. */
  readonly tallies: Tallies;
}

export function statusJson(
  { access, engines, ready, settings }: FactSources,
  { url, providers, tallies }: StatusParts,
): { readonly [name: string]: string | number | boolean | null } {
  const [engine] = engines.status();
  return {
    version,
    url,
    ready,
    ...tallies,
    providers: providers.join(','),
    engine: engine?.phase ?? null,
    engine_reason: engine?.reason ?? null,
    config: settings.configFile ?? null,
    data_dir: settings.dataDir,
    ...access.status(),
  };
}
