/** Part of the composition root: `/api/status`. */
import { storeDown, unready, type Tallies } from './front.ts';
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
  const { [unready]: notReady = 0, [storeDown]: down = 0, ...counts } = tallies;
  const { store_up: up = true, ...store } = access.status();
  return {
    version,
    url,
    ready: ready && notReady === 0,
    ...counts,
    providers: providers.join(','),
    engine: engine?.phase ?? null,
    engine_reason: engine?.reason ?? null,
    config: settings.configFile ?? null,
    data_dir: settings.dataDir,
    ...store,
    store_up: up === true && down === 0,
  };
}
