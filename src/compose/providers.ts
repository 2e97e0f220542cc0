/** Part of the composition root: the providers of the settings and the environment, for people to see. */
import { PriceList, PriceTable } from '../access/prices.ts';
import type {
  AdminProvider,
  PriceRouteDeps,
  PricedTarget,
  ProviderRouteDeps,
} from '../admin/providers.ts';
import type { KnownProvider, KnownProviders } from '../config/providers.ts';
import type { Settings } from '../config/settings.ts';
import type { CloudInput } from '../core/cloud.ts';
import type { PriceOrigin } from '../core/money.ts';
import type { Target } from '../core/provider.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { systemClock } from '../observe/runtime.ts';
import { readDownloads } from '../local-models/model-folder.ts';
import { type Cloud, credentialDescription } from '../providers/clouds/cloud.ts';
import { cloudInput } from '../providers/clouds/declaration.ts';
import { priceOrigins, providerRow, providerRows } from '../providers/compatible.ts';
import type { Registry } from '../providers/registry.ts';

/** Providers that the config may name without declaring them. */
export const knownProviders: KnownProviders = new Map<string, KnownProvider>([
  ['local', { embedded: true }],
  ...providerRows.map((row): [string, KnownProvider] => [row.id, row]),
]);

type Environment = { readonly [name: string]: string | undefined };
type ProviderDeps = Pick<ProviderRouteDeps, 'providers' | 'downloads'>;
type Described = Pick<AdminProvider, 'id' | 'address' | 'origin'> & {
  /** The source of a cloud's credential, in words. */
  readonly credential?: string;
};

/** Providers of the config and of the environment; engines on loopback ports are found at start. */
export function describeProviders(
  settings: Pick<Settings, 'providers'>,
  env: Environment,
): readonly Described[] {
  const declared = settings.providers.map((provider): Described => {
    const { id, baseUrl, like = id, where } = provider;
    const row = providerRow(like);
    if (row?.cloud !== undefined) {
      return { id, origin: where, ...ofCloud(row.cloud, cloudInput(provider, env)) };
    }
    return { id, address: baseUrl ?? providerRow(id)?.baseUrl ?? '', origin: where };
  });
  const names = new Set(declared.map(({ id }) => id));
  const found = providerRows.flatMap((row): Described[] => {
    const { id, keyVariable, baseUrl, baseUrlVariable, probed, cloud } = row;
    if (names.has(id)) return [];
    if (cloud !== undefined) {
      if (!cloud.appears(env)) return [];
      const about = ofCloud(cloud, cloudInput({ headers: new Map() }, env));
      return [{ id, origin: about.credential, ...about }];
    }
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

/** The address and the credential of a cloud. */
function ofCloud(
  cloud: Cloud,
  input: CloudInput,
): Required<Pick<Described, 'address' | 'credential'>> {
  return {
    address: cloud.address(input) ?? '',
    credential: credentialDescription({ cloud, input }, systemClock),
  };
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

/** A password, or a token in the query, may be in an address. */
function withoutSecrets(address: string): string {
  const url = URL.parse(address);
  return url === null ? address : `${url.origin}${url.pathname}`;
}

/** The admin API's view of providers. @param gateway whose settings may change, and ids of those that answer */
export function providerDeps(
  gateway: { readonly settings: Settings; readonly providers: readonly string[] },
  env: Environment,
): ProviderDeps {
  return {
    providers: () => adminProviders(gateway.settings, env, gateway.providers),
    downloads: () => readDownloads(gateway.settings.local.modelsDir),
  };
}

// Part of the composition root: what models cost.

/** The data of the package is the same for every configuration. */
const list = new PriceList();

/** The prices of a configuration. */
export function priceTable(settings: Settings, env: Environment, log: Log): PriceTable {
  const origin = priceOrigins(settings.providers, env);
  return new PriceTable({ settings: settings.prices, list, origin, log });
}

/** Models of lists of providers and of clients' questions: names without end. */
const maxWindows = 10_000;

/** The context window of a model as its vendor's list in the price package has it, each looked up once. */
export function listedWindows(
  settings: Pick<Settings, 'providers'>,
  env: Environment,
): (provider: string, model: string) => number | undefined {
  const originOf = priceOrigins(settings.providers, env);
  const known = new Map<string, number | undefined>();
  return (provider, model) => {
    const name = `${provider}/${model}`;
    if (known.has(name)) return known.get(name);
    if (known.size >= maxWindows) known.clear();
    const origin = originOf(provider);
    const window =
      origin?.kind === 'list' ? windowIn(origin, origin.models?.[model] ?? model) : undefined;
    known.set(name, window);
    return window;
  };
}

/** The same as for prices: a package that cannot be loaded is logged there, once. */
function windowIn(
  { name, listedAs }: Extract<PriceOrigin, { readonly kind: 'list' }>,
  model: string,
): number | undefined {
  try {
    return list.window(name, model, listedAs);
  } catch {
    return undefined;
  }
}

interface PriceDeps {
  readonly registry: Registry;
  readonly prices: PriceTable;
  readonly clock: Clock;
}

/**
 * The current prices of models: of all that can be called, or of one by name. A `provider/model` that cannot be
 * called here may have a price all the same.
 */
export async function pricedTargets(
  { registry, prices, clock }: PriceDeps,
  model: string | undefined,
): Promise<readonly PricedTarget[]> {
  const at = clock.wall();
  const priced = (name: string, target: string): PricedTarget => {
    const slash = target.indexOf('/');
    const price = prices.find(target.slice(0, slash), target.slice(slash + 1), at);
    return { model: name, target, ...(price === undefined ? {} : { price }) };
  };
  if (model === undefined) {
    const listings = await registry.list();
    return listings.flatMap(({ id, targets }) => targets.map((target) => priced(id, target)));
  }
  const listed = registry.describe(model) ?? (await searched(registry, model));
  if (listed !== undefined) return listed.targets.map((target) => priced(model, target));
  const known = model.includes('/') ? priced(model, model) : undefined;
  return known?.price === undefined ? [] : [known];
}

/** A bare name is known once its provider's list is. */
async function searched(
  registry: Registry,
  model: string,
): Promise<ReturnType<Registry['describe']>> {
  return (await registry.search(model)) === undefined ? undefined : registry.describe(model);
}

/**
 * One number by which targets are compared, in picodollars: three tokens of prompt and one of answer, as
 * calls of agents are on average. Undefined where the price is not known.
 */
export function priceToCompare(
  prices: Pick<PriceTable, 'find'>,
  { provider, model }: Target,
  at: number,
): number | undefined {
  const rates = prices.find(provider.id, model, at)?.rates;
  return rates === undefined ? undefined : 3 * rates.input + rates.output;
}

/** The admin API's view of prices. @param deps the current ones at each request */
export function priceDeps(deps: () => PriceDeps): PriceRouteDeps {
  return {
    prices: (model) => pricedTargets(deps(), model),
    defaultPrice: () => deps().prices.otherwise,
  };
}
