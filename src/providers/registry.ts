/**
 * Which models can be called and who answers them: providers from the config, from the environment
 * and from engines found on loopback ports, and the route behind each name.
 */
import type {
  HedgeRule,
  NetworkWay,
  Provider,
  RetryRules,
  Route,
  Target,
  Timeouts,
} from '../core/provider.ts';
import type { ModelNames } from '../core/model-names.ts';
import { Secret } from '../core/secret.ts';
import { providerRow, providerRows, type ProviderRow } from './compatible.ts';
import { createHttpProvider, withTraits, type HttpDialect } from './http-provider.ts';
import { contextOf, type LocalModelFile } from '../local-models/model-file.ts';
import type { LocalEngines } from './local.ts';
import type { ModelFacts } from './model-facts.ts';
import type { ModelLists } from './model-list.ts';
import { networkWay } from './network-way.ts';
import { RouteNames } from './route-names.ts';

/** A provider as the config declares it. */
export interface DeclaredProvider {
  readonly id: string;
  readonly dialect?: HttpDialect;
  readonly baseUrl?: string;
  readonly apiKey?: Secret;
  /** Instead of it, where there are several. */
  readonly credentials?: readonly { readonly name: string; readonly key: Secret }[];
  readonly headers: ReadonlyMap<string, string>;
  /** Id of the known vendor whose ways hold at this address. */
  readonly like?: string;
  /** The only values of `anthropic-beta` that go there; absent = all. */
  readonly betas?: readonly string[];
  /** It is told the trace that a call belongs to. */
  readonly traceContext?: boolean;
  /** Where its models run, as `inference_geo` spells it. */
  readonly region?: string;
  /** Clients of the other format may use what the provider runs itself. */
  readonly serverTools?: boolean;
  /** Streams whose client left are read to their end. */
  readonly onAbort?: 'drain';
  /** `none`, or the address of a proxy; absent = what the environment says. */
  readonly proxy?: Secret;
  /** PEM of authorities that are trusted besides the usual ones. */
  readonly ca?: string;
  readonly timeouts?: Partial<Timeouts>;
}

/** A name of the config's `models:`. */
export interface DeclaredRoute {
  readonly name: string;
  readonly targets: readonly {
    readonly provider: string;
    readonly model: string;
    readonly weight: number;
  }[];
  readonly order: Route['order'];
  readonly affinity?: boolean;
  readonly retry?: RetryRules;
  readonly hedge?: HedgeRule;
  readonly strict?: boolean;
  /** Before the provider's. */
  readonly serverTools?: boolean;
  readonly timeouts?: Partial<Timeouts>;
}

export interface RegistryOptions {
  readonly declared: readonly DeclaredProvider[];
  readonly routes: readonly DeclaredRoute[];
  readonly timeouts: Timeouts;
  readonly env: { readonly [name: string]: string | undefined };
  readonly lists: ModelLists;
  /** The embedded engine and the models it holds. */
  readonly local: Pick<LocalEngines, 'provider' | 'models'>;
}

export interface ModelListing {
  /** The identifier that both endpoints take. */
  readonly id: string;
  readonly ownedBy: string;
  readonly targets: readonly string[];
  /** Names of the credentials of those targets that have several, by target. */
  readonly credentials?: { readonly [target: string]: readonly string[] };
  /** What the provider's list says, where one model of one provider answers. */
  readonly facts?: ModelFacts;
  /** The file, where one model of the embedded engine answers. */
  readonly local?: LocalModelFile;
}

interface Known {
  readonly provider: Provider;
  /** The same with each of its credentials, where there are several; `provider` has the first. */
  readonly each?: readonly { readonly credential: string; readonly provider: Provider }[];
  readonly timeouts: Timeouts;
  /** Only real once its address answered. */
  readonly probed: boolean;
}

/** The name that stands for "whatever is there": the local model when nothing else is configured. */
const defaultName = 'default';

export class Registry {
  readonly #options: RegistryOptions;
  readonly #providers = new Map<string, Known>();
  readonly #routes = new Map<string, Route>();
  readonly #names: RouteNames;

  /** @throws Error with the provider's name when a declaration is incomplete. */
  constructor(options: RegistryOptions) {
    this.#options = options;
    const { local, timeouts } = options;
    this.#providers.set(local.provider.id, { provider: local.provider, timeouts, probed: false });
    for (const declared of options.declared) this.#declare(declared);
    for (const row of providerRows) this.#discover(row);
    for (const route of options.routes) this.#routes.set(route.name, this.#route(route));
    this.#names = new RouteNames([...this.#routes.values()]);
  }

  /** Ids of the providers that are configured or found, the embedded engine included. */
  providerIds(): readonly string[] {
    return [...this.#providers.values()]
      .filter(
        ({ provider, probed }) => !probed || this.#options.lists.known(provider) !== undefined,
      )
      .map(({ provider }) => provider.id);
  }

  /** Asks the engines on loopback ports whether they are there. */
  async probe(): Promise<void> {
    const probed = [...this.#providers.values()].filter((known) => known.probed);
    await Promise.all(probed.map(({ provider }) => this.#options.lists.get(provider)));
  }

  /** The route of a name, as far as it is known without asking anyone. */
  find(name: string): Route | undefined {
    const route = this.#routes.get(name);
    if (route !== undefined) return route;
    const slash = name.indexOf('/');
    if (slash > 0) {
      const known = this.#providers.get(name.slice(0, slash));
      const model = name.slice(slash + 1);
      if (known !== undefined && model !== '' && this.#mayHave(known.provider, model)) {
        return single(name, targetsOf(known, model));
      }
    }
    return name === defaultName ? this.#default() : this.#bare(name);
  }

  /** The route of a name, after asking the providers for their lists if need be. */
  async search(name: string): Promise<Route | undefined> {
    await this.#refresh();
    return this.find(name);
  }

  /** All names under which what answers this route can be called. */
  names(route: Route): ModelNames {
    const [target] = route.targets;
    const { local } = this.#options;
    if (target?.provider.id !== local.provider.id) return this.#names.of(route);
    const isDefault = this.#default()?.targets[0]?.model === target.model;
    return this.#names.of(route, isDefault ? defaultName : undefined);
  }

  /** Everything that can be called, asked for where the lists are old. */
  async list(): Promise<readonly ModelListing[]> {
    await this.#refresh();
    const listings = [...this.#routes.values()].map((route) => this.#listing(route, 'gateway'));
    for (const known of this.#providers.values()) {
      const { provider } = known;
      for (const model of this.#modelsOf(provider)) {
        const id = `${provider.id}/${model}`;
        if (this.#routes.has(id)) continue;
        const about = this.#about(provider, model);
        listings.push({ id, ownedBy: provider.id, targets: [id], ...about, ...named(id, known) });
      }
    }
    return listings;
  }

  /** Tokens of an answer at most, where the provider's list says so. */
  outputLimit({ provider, model }: Target): number | undefined {
    return this.#options.lists.known(provider)?.get(model)?.maxOutputTokens;
  }

  /** A name that is in no list and can be called all the same: a bare model name, `default`. */
  describe(name: string): ModelListing | undefined {
    const route = this.find(name);
    return route === undefined
      ? undefined
      : this.#listing(route, route.targets[0]?.provider.id ?? 'gateway');
  }

  #listing({ name, targets }: Route, ownedBy: string): ModelListing {
    const names = [...new Set(targets.map((each) => `${each.provider.id}/${each.model}`))];
    const only = names.length === 1 ? targets[0] : undefined;
    const credentials = credentialsOf(targets);
    return {
      id: name,
      ownedBy,
      targets: names,
      ...(Object.keys(credentials).length === 0 ? {} : { credentials }),
      ...(only === undefined ? {} : this.#about(only.provider, only.model)),
    };
  }

  #about(provider: Provider, model: string): Pick<ModelListing, 'facts' | 'local'> {
    const { local, lists } = this.#options;
    // Each local model has a provider of its own, with the id of them all.
    if (provider.id === local.provider.id) {
      const file = local.models().find(({ name }) => name === model);
      return file === undefined ? {} : { facts: localFacts(file), local: file };
    }
    const facts = lists.known(provider)?.get(model);
    return facts === undefined ? {} : { facts };
  }

  #declare(declared: DeclaredProvider): void {
    const row = providerRow(declared.id);
    const dialect = declared.dialect ?? row?.dialect;
    const baseUrl = declared.baseUrl ?? this.#baseUrl(row);
    if (dialect === undefined || baseUrl === undefined) {
      throw new Error(
        `providers.${declared.id}: "${declared.id}" is no known vendor: dialect and base_url are needed`,
      );
    }
    const apiKey = declared.apiKey ?? this.#key(row);
    const ways = providerRow(declared.like ?? declared.id);
    const withKey = (key: Secret | undefined): Provider =>
      createHttpProvider({
        id: declared.id,
        dialect,
        baseUrl,
        headers: declared.headers,
        ...(key === undefined ? {} : { apiKey: key }),
        ...(ways?.dialect === dialect ? { row: ways } : {}),
        ...declaredWays(declared),
        ...this.#way(baseUrl, declared),
      });
    const several = declared.credentials ?? [];
    const each = several.map(({ name, key }) => ({ credential: name, provider: withKey(key) }));
    const provider = each[0]?.provider ?? withKey(apiKey);
    const timeouts = { ...this.#options.timeouts, ...declared.timeouts };
    const known = { provider, timeouts, probed: false };
    this.#providers.set(declared.id, each.length === 0 ? known : { ...known, each });
  }

  /** A known vendor appears by itself when its key variable is set; an engine when it answers. */
  #discover(row: ProviderRow): void {
    if (this.#providers.has(row.id)) return;
    const apiKey = this.#key(row);
    const baseUrl = this.#baseUrl(row);
    if (baseUrl === undefined || (apiKey === undefined && row.probed === undefined)) return;
    const provider = createHttpProvider({
      id: row.id,
      dialect: row.dialect,
      baseUrl,
      row,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...this.#way(baseUrl),
    });
    const { timeouts } = this.#options;
    this.#providers.set(row.id, { provider, timeouts, probed: row.probed === true });
  }

  #way(
    baseUrl: string,
    { proxy, ca }: Pick<DeclaredProvider, 'proxy' | 'ca'> = {},
  ): { readonly way?: NetworkWay } {
    const { env } = this.#options;
    const way = networkWay({
      baseUrl,
      env,
      ...(proxy === undefined ? {} : { proxy: proxy.reveal() }),
      ...(ca === undefined ? {} : { ca }),
    });
    return way === undefined ? {} : { way };
  }

  #key(row: ProviderRow | undefined): Secret | undefined {
    const value = row?.keyVariable === undefined ? undefined : this.#options.env[row.keyVariable];
    return value === undefined || value === '' ? undefined : new Secret(value);
  }

  #baseUrl(row: ProviderRow | undefined): string | undefined {
    const value =
      row?.baseUrlVariable === undefined ? undefined : this.#options.env[row.baseUrlVariable];
    return value === undefined || value === '' ? row?.baseUrl : value;
  }

  #route(declared: DeclaredRoute): Route {
    const targets = declared.targets.flatMap(({ provider, model, weight }) => {
      const known = this.#providers.get(provider);
      if (known === undefined)
        throw new Error(`models.${declared.name}: there is no provider "${provider}"`);
      const timeouts = { ...known.timeouts, ...declared.timeouts };
      const { serverTools } = declared;
      return targetsOf({ ...known, timeouts }, model).map((each): Target => {
        if (serverTools === undefined) return { ...each, weight };
        return { ...each, weight, provider: withTraits(each.provider, { serverTools }) };
      });
    });
    const { name, order, strict, affinity, retry, hedge } = declared;
    return {
      name,
      targets,
      order,
      ...(strict === true ? { strict } : {}),
      ...(affinity === undefined ? {} : { affinity }),
      ...(retry === undefined ? {} : { retry }),
      ...(hedge === undefined ? {} : { hedge }),
    };
  }

  /** Only the embedded engine knows all of its models; others are asked by calling them. */
  #mayHave(provider: Provider, model: string): boolean {
    const { local } = this.#options;
    return provider !== local.provider || this.#localModels().includes(model);
  }

  #modelsOf(provider: Provider): readonly string[] {
    const { local, lists } = this.#options;
    if (provider === local.provider) return this.#localModels();
    return [...(lists.known(provider)?.keys() ?? [])];
  }

  #localModels(): readonly string[] {
    return this.#options.local.models().map(({ name }) => name);
  }

  #lists(provider: Provider, model: string): boolean {
    const { local, lists } = this.#options;
    if (provider === local.provider) return this.#localModels().includes(model);
    return lists.known(provider)?.has(model) === true;
  }

  #bare(name: string): Route | undefined {
    const owners = [...this.#providers.values()].filter(({ provider }) =>
      this.#lists(provider, name),
    );
    const owner = owners[0];
    return owner === undefined || owners.length > 1
      ? undefined
      : single(name, targetsOf(owner, name));
  }

  #default(): Route | undefined {
    const { local, timeouts } = this.#options;
    const [model] = this.#localModels();
    if (this.providerIds().length > 1 || model === undefined) return undefined;
    return single(
      defaultName,
      targetsOf({ provider: local.provider, timeouts, probed: false }, model),
    );
  }

  async #refresh(): Promise<void> {
    const { local, lists } = this.#options;
    const remote = [...this.#providers.values()].filter(
      ({ provider }) => provider !== local.provider,
    );
    await Promise.all(remote.map(({ provider }) => lists.get(provider)));
  }
}

/** What the config says of how an address may be used. */
function declaredWays({
  betas,
  region,
  serverTools,
  onAbort,
  traceContext,
}: DeclaredProvider): Pick<
  DeclaredProvider,
  'betas' | 'region' | 'serverTools' | 'onAbort' | 'traceContext'
> {
  return {
    ...(betas === undefined ? {} : { betas }),
    ...(region === undefined ? {} : { region }),
    ...(serverTools === undefined ? {} : { serverTools }),
    ...(onAbort === undefined ? {} : { onAbort }),
    ...(traceContext === undefined ? {} : { traceContext }),
  };
}

function localFacts(file: LocalModelFile): ModelFacts {
  const context = contextOf(file);
  return {
    ...(file.demo === true ? { displayName: `${file.name} (demonstration model)` } : {}),
    ...(file.writtenAt === undefined ? {} : { createdAt: file.writtenAt }),
    ...(context === undefined ? {} : { maxInputTokens: context }),
  };
}

/** A model of a provider, once for each of its credentials. */
function targetsOf({ provider, each, timeouts }: Known, model: string): readonly Target[] {
  if (each !== undefined) {
    return each.map((one) => ({ ...one, model, weight: 1, timeouts }));
  }
  return [{ provider: ownOf(provider, model), model, weight: 1, timeouts }];
}

function credentialsOf(targets: readonly Target[]): { [target: string]: readonly string[] } {
  const names: { [target: string]: readonly string[] } = {};
  for (const { provider, model, credential } of targets) {
    if (credential === undefined) continue;
    const target = `${provider.id}/${model}`;
    names[target] = [...(names[target] ?? []), credential];
  }
  return names;
}

function named(id: string, { each }: Known): Pick<ModelListing, 'credentials'> {
  if (each === undefined) return {};
  return { credentials: { [id]: each.map(({ credential }) => credential) } };
}

function ownOf(provider: Provider, model: string): Provider {
  return provider.forModel?.(model) ?? provider;
}

function single(name: string, targets: readonly Target[]): Route {
  return { name, targets, order: 'listed' };
}
