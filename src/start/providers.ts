/** Part of the composition root: the providers of the settings and the environment, for people to see. */
import type { Settings } from '../config/settings.ts';
import { providerRows } from '../providers/compatible.ts';
import { readDownloads } from '../local-models/downloads.ts';
import type { AdminProvider, ProviderRouteParts } from '../server/admin-providers.ts';

type Environment = { readonly [name: string]: string | undefined };
type ProviderParts = Pick<ProviderRouteParts, 'providers' | 'downloads'>;
type Described = Pick<AdminProvider, 'id' | 'address' | 'origin'>;

/** Providers of the config and of the environment; engines on loopback ports are found at start. */
export function describeProviders(
  settings: Pick<Settings, 'providers'>,
  env: Environment,
): readonly Described[] {
  const declared = settings.providers.map(({ id, baseUrl, where }) => ({
    id,
    address: baseUrl ?? providerRows.find((row) => row.id === id)?.baseUrl ?? '',
    origin: where,
  }));
  const names = new Set(declared.map(({ id }) => id));
  const found = providerRows.flatMap(({ id, keyVariable, baseUrl, baseUrlVariable, probed }) => {
    if (names.has(id)) return [];
    if (probed === true) return [{ id, address: baseUrl, origin: 'if it answers' }];
    if (keyVariable === undefined || (env[keyVariable] ?? '') === '') return [];
    const address = (baseUrlVariable === undefined ? undefined : env[baseUrlVariable]) ?? baseUrl;
    return [{ id, address, origin: `env ${keyVariable}` }];
  });
  return [
    { id: 'local', address: 'embedded', origin: 'ships with the gateway' },
    ...declared,
    ...found,
  ];
}

/** The same for the admin API. @param there ids of those that answer calls. */
export function adminProviders(
  settings: Pick<Settings, 'providers'>,
  env: Environment,
  there: readonly string[],
): readonly AdminProvider[] {
  return describeProviders(settings, env).map(({ id, address, origin }) => ({
    id,
    address: withoutSecrets(address),
    origin,
    there: there.includes(id),
    credentials:
      settings.providers
        .find((declared) => declared.id === id)
        ?.credentials?.map(({ name }) => name) ?? [],
  }));
}

/** A password, or a token in the query, may stand in an address. */
function withoutSecrets(address: string): string {
  const url = URL.parse(address);
  return url === null ? address : `${url.origin}${url.pathname}`;
}

/** What a gateway tells of them. @param gateway whose settings may change, and ids of those that answer */
export function providerParts(
  gateway: { readonly settings: Settings; readonly providers: readonly string[] },
  env: Environment,
): ProviderParts {
  return {
    providers: () => adminProviders(gateway.settings, env, gateway.providers),
    downloads: () => readDownloads(gateway.settings.local.modelsDir),
  };
}
