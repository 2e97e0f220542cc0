/**
 * Which models can be called and who answers them: providers from the config, from the environment
 * and from engines found on loopback ports, and the route behind each name.
 */
import type { ModelNames } from '../core/model-names.ts';
import type { CloudSettings } from '../core/cloud.ts';
import { dialectOfApi } from '../core/conversation.ts';
import type {
  NetworkWay,
  Provider,
  ProviderOptions,
  RetryRules,
  Route,
  Target,
  Timeouts,
} from '../core/provider.ts';
import { Secret } from '../core/secret.ts';
import { contextOf, type LocalModelFile } from '../local-models/model-file.ts';
import { type Ability, abilitiesOf } from './abilities.ts';
import {
  messagesRowAt,
  providerRow,
  type ProviderRow,
  providerRows,
  responsesRowAt,
  rowIn,
} from './compatible.ts';
import { createHttpProvider, type HttpDialect } from './http-provider.ts';
import { type Cloud, createCloudProvider } from './clouds/cloud.ts';
import { cloudInput } from './clouds/declaration.ts';
import type { Credentials } from './credentials/credentials.ts';
import type { LocalEngines } from './local.ts';
import type { ModelFacts, ModelLists } from './model-list.ts';
import { networkWay } from './network-way.ts';
import {
  type DeclaredRoute,
  type Known,
  type ModelTargets,
  modelTargets,
  ownOf,
  RouteNames,
  routeOf,
  routeTarget,
  single,
} from './routes.ts';

/** A provider as the config declares it. */
export interface DeclaredProvider {
  readonly id: string;
  readonly dialect?: HttpDialect;
  readonly baseUrl?: string;
  readonly apiKey?: Secret;
  /** Instead of it, where there are several. */
  readonly credentials?: readonly { readonly name: string; readonly key: Secret }[];
  readonly headers: ReadonlyMap<string, string>;
  /** Id of the known vendor whose traits hold at this address. */
  readonly like?: string;
  /** What only clouds have. */
  readonly cloud?: CloudSettings;
  readonly options?: ProviderOptions;
  /** `none`, or the address of a proxy; absent = what the environment says. */
  readonly proxy?: Secret;
  /** PEM of authorities that are trusted in addition to the usual ones. */
  readonly ca?: string;
  readonly timeouts?: Partial<Timeouts>;
}

export interface RegistryOptions {
  readonly declared: readonly DeclaredProvider[];
  readonly routes: readonly DeclaredRoute[];
  readonly timeouts: Timeouts;
  /** For names that `routes` does not declare; declared routes have their own. */
  readonly retry: RetryRules;
  readonly env: { readonly [name: string]: string | undefined };
  readonly lists: ModelLists;
  /** They outlive this registry. */
  readonly credentials: Credentials;
  /** The embedded engine and the models it holds. */
  readonly local: Pick<LocalEngines, 'provider' | 'models'>;
  /** The context window of a model whose provider's list does not say it. */
  listedWindow?(provider: string, model: string): number | undefined;
}

export interface ModelListing {
  /** The identifier that all endpoints take. */
  readonly id: string;
  readonly ownedBy: string;
  readonly targets: readonly string[];
  /** Names of the credentials of those targets that have several, by target. */
  readonly credentials?: { readonly [target: string]: readonly string[] };
  /** What is known of the one model that answers; of several, the limits that hold for each of them. */
  readonly facts?: ModelFacts;
  /** The file, where one model of the embedded engine answers. */
  readonly local?: LocalModelFile;
  /** Of a route with several targets. */
  readonly order?: Route['order'];
  /** By target; of weighted routes. */
  readonly weights?: { readonly [target: string]: number };
  /** What the APIs of all targets take; absent = not known. */
  readonly abilities?: readonly Ability[];
}

/** Clients choose the names. At this number all routes that were kept by name are dropped. */
const maxFound = 1000;

/** The name that stands for "whatever is there": the local model when nothing else is configured. */
const defaultName = 'default';

export class Registry {
  readonly #options: RegistryOptions;
  readonly #providers = new Map<string, Known>();
  readonly #routes = new Map<string, Route>();
  readonly #names: RouteNames;
  /** Routes of `provider/model`, one for all calls by that name. */
  readonly #found = new Map<string, Route>();
  #hasEngine: boolean | undefined;

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

  /** Whether this build can run models itself: the single-file program and the small image have no engine. */
  get hasEngine(): boolean {
    // Called for each unknown model: the file system is examined once.
    this.#hasEngine ??= isInstalled('node-llama-cpp');
    return this.#hasEngine;
  }

  /** Ids of the providers that are configured or found, the embedded engine included. */
  providerIds(): readonly string[] {
    return [...this.#providers.values()]
      .filter(
        ({ provider, probed }) => !probed || this.#options.lists.known(provider) !== undefined,
      )
      .map(({ provider }) => provider.id);
  }

  /** The configured providers, without the embedded engine and without engines that are searched for. */
  get configured(): readonly Provider[] {
    return [...this.#providers.values()]
      .filter(({ provider, probed }) => !probed && provider.id !== this.#options.local.provider.id)
      .map(({ provider }) => provider);
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
        return this.#single(name, known, model);
      }
    }
    return name === defaultName ? this.#default() : this.#bare(name);
  }

  #single(name: string, known: Known, model: string): Route {
    // Local models can be added and removed while the gateway runs.
    if (known.provider === this.#options.local.provider)
      return this.#undeclared(name, known, model);
    let route = this.#found.get(name);
    if (route === undefined) {
      route = this.#undeclared(name, known, model);
      if (this.#found.size >= maxFound) this.#found.clear();
      this.#found.set(name, route);
    }
    return route;
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

  /** Names that can be called, as far as they are known without asking a provider. */
  *knownNames(): Generator<string> {
    yield* this.#routes.keys();
    for (const { provider } of this.#providers.values()) {
      for (const model of this.#modelsOf(provider)) yield `${provider.id}/${model}`;
    }
  }

  /** Everything that can be called, requested where the lists are old. */
  async list(): Promise<readonly ModelListing[]> {
    await this.#refresh();
    const listings = [...this.#routes.values()].map((route) => this.#listing(route, 'gateway'));
    for (const known of this.#providers.values()) {
      const { provider } = known;
      for (const model of this.#modelsOf(provider)) {
        const id = `${provider.id}/${model}`;
        if (this.#routes.has(id)) continue;
        const about = this.#about(provider, model);
        const takes = takenBy([{ provider, model }]);
        listings.push({
          id,
          ownedBy: provider.id,
          targets: [id],
          ...about,
          ...takes,
          ...named(id, known),
        });
      }
    }
    return listings;
  }

  /** Tokens of an answer at most, where the provider's list says so. */
  outputLimit({ provider, model }: Target): number | undefined {
    return this.#options.lists.known(provider)?.get(model)?.maxOutputTokens;
  }

  /** The same, else its window: more than a whole context nothing can answer. */
  maxAnswer(target: Target): number | undefined {
    const { provider, model } = target;
    return this.outputLimit(target) ?? this.#about(provider, model).facts?.maxInputTokens;
  }

  /** A name that is in no list and can be called all the same: a bare model name, `default`. */
  describe(name: string): ModelListing | undefined {
    const route = this.find(name);
    return route === undefined
      ? undefined
      : this.#listing(route, route.targets[0]?.provider.id ?? 'gateway');
  }

  #listing({ name, targets, order }: Route, ownedBy: string): ModelListing {
    const names = [...new Set(targets.map((each) => `${each.provider.id}/${each.model}`))];
    const abouts = targets.map((each) => this.#about(each.provider, each.model));
    const credentials = credentialsOf(targets);
    return {
      id: name,
      ownedBy,
      targets: names,
      ...(Object.keys(credentials).length === 0 ? {} : { credentials }),
      ...(names.length === 1 ? abouts[0] : { ...commonLimits(abouts), order }),
      ...(order === 'weighted' ? { weights: weightsOf(targets) } : {}),
      ...takenBy(targets),
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
    if (facts?.maxInputTokens !== undefined) return { facts };
    const window = this.#options.listedWindow?.(provider.id, model);
    if (window !== undefined) return { facts: { ...facts, maxInputTokens: window } };
    return facts === undefined ? {} : { facts };
  }

  #declare(declared: DeclaredProvider): void {
    const cloud = providerRow(declared.like ?? declared.id)?.cloud;
    if (cloud !== undefined) {
      this.#providers.set(declared.id, this.#ofCloud(declared, cloud));
      return;
    }
    const known = providerRow(declared.id);
    const dialect = declared.dialect ?? known?.dialect;
    const row = rowIn(known, dialect) ?? known;
    const baseUrl = declared.baseUrl ?? this.#baseUrl(row);
    if (dialect === undefined || baseUrl === undefined) {
      throw new Error(
        `providers.${declared.id}: "${declared.id}" is not a known vendor: dialect and base_url are needed`,
      );
    }
    this.#providers.set(declared.id, this.#declared(declared, dialect, baseUrl));
  }

  #declared(declared: DeclaredProvider, dialect: HttpDialect, baseUrl: string): Known {
    const known = providerRow(declared.id);
    const apiKey = declared.apiKey ?? this.#key(known);
    const ways = waysOf(declared, dialect);
    const withKey = (key: Secret | undefined): Provider =>
      createHttpProvider({
        id: declared.id,
        dialect,
        baseUrl,
        headers: declared.headers,
        ...(key === undefined ? {} : { apiKey: key }),
        ...(ways === undefined ? {} : { row: ways }),
        ...(declared.options === undefined ? {} : { options: declared.options }),
        ...this.#way(baseUrl, declared),
      });
    const again = (other: HttpDialect): Known => this.#declared(declared, other, baseUrl);
    return {
      ...this.#withKeys(declared, withKey, apiKey),
      ...speakingOf(dialect, again),
      ...(declared.dialect === undefined ? preferredOf(known, baseUrl) : {}),
    };
  }

  #ofCloud(declared: DeclaredProvider, cloud: Cloud): Known {
    const { credentials, env } = this.#options;
    const { id, headers, options } = declared;
    const input = cloudInput(declared, env);
    const withKey = (key: Secret | undefined): Provider =>
      createCloudProvider({
        id,
        cloud,
        input,
        headers,
        credentials,
        ...(key === undefined ? {} : { apiKey: key }),
        ...(options === undefined ? {} : { options }),
        ...this.#way(cloud.address(input) ?? '', declared),
      });
    const again = (dialect: HttpDialect): Known => this.#ofCloud({ ...declared, dialect }, cloud);
    return {
      ...this.#withKeys(declared, withKey, declared.apiKey),
      ...(cloud.responses === true ? speakingOf(declared.dialect ?? 'openai-chat', again) : {}),
    };
  }

  #withKeys(
    { credentials = [], timeouts }: DeclaredProvider,
    withKey: (key: Secret | undefined) => Provider,
    only: Secret | undefined,
  ): Known {
    const each = credentials.map(({ name, key }) => ({ credential: name, provider: withKey(key) }));
    return {
      provider: each[0]?.provider ?? withKey(only),
      timeouts: { ...this.#options.timeouts, ...timeouts },
      probed: false,
      ...(each.length === 0 ? {} : { each }),
    };
  }

  /** A known vendor appears by itself when its key variable is set; an engine when it answers. */
  #discover(row: ProviderRow): void {
    if (this.#providers.has(row.id)) return;
    if (row.cloud !== undefined) {
      if (!row.cloud.appears(this.#options.env)) return;
      this.#providers.set(row.id, this.#ofCloud({ id: row.id, headers: new Map() }, row.cloud));
      return;
    }
    const apiKey = this.#key(row);
    const baseUrl = this.#baseUrl(row);
    if (baseUrl === undefined || (apiKey === undefined && row.probed === undefined)) return;
    this.#providers.set(row.id, this.#discovered(row, baseUrl));
  }

  #discovered(row: ProviderRow, baseUrl: string): Known {
    const apiKey = this.#key(row);
    const provider = createHttpProvider({
      id: row.id,
      dialect: row.dialect,
      baseUrl,
      row,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...this.#way(baseUrl),
    });
    const { timeouts } = this.#options;
    return {
      provider,
      timeouts,
      probed: row.probed === true,
      ...speakingOf(row.dialect, (other) =>
        this.#discovered(rowIn(providerRow(row.id), other) ?? row, baseUrl),
      ),
      ...preferredOf(row, baseUrl),
    };
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
    const models = declared.targets.map(({ provider, model, weight }): ModelTargets => {
      const known = this.#spoken(provider, model, declared);
      if (known.provider.mayHave?.(model) === false) {
        throw new Error(`models.${declared.name}: "${provider}" cannot have a model "${model}"`);
      }
      const ofRoute = (target: Target): Target => routeTarget(target, weight, declared);
      const { own, preferred, ...rest } = modelTargets(known, model);
      if (declared.api !== undefined || preferred === undefined) return { own: own.map(ofRoute) };
      return { ...rest, own: own.map(ofRoute), preferred: preferred.map(ofRoute) };
    });
    const { name, order, strict, cache, affinity, retry, hedge } = declared;
    const rules = {
      name,
      order,
      ...(strict === true ? { strict } : {}),
      ...(cache === undefined ? {} : { cache }),
      ...(affinity === undefined ? {} : { affinity }),
      ...(retry === undefined ? {} : { retry }),
      ...(hedge === undefined ? {} : { hedge }),
    };
    return routeOf(rules, models);
  }

  /** @throws Error where there is no such provider, or its model does not have the API that the route wants. */
  #spoken(provider: string, model: string, { name, api }: DeclaredRoute): Known {
    const known = this.#providers.get(provider);
    if (known === undefined) throw new Error(`models.${name}: there is no provider "${provider}"`);
    if (api === undefined) return known;
    const dialect = dialectOfApi[api];
    const found = [known, known.speaking?.(dialect)].find(
      (each) => each !== undefined && ownOf(each.provider, model).dialect.id === dialect,
    );
    if (found !== undefined) return found;
    throw new Error(`models.${name}.api: "${provider}/${model}" has no ${api} API`);
  }

  /** Only the embedded engine knows all of its models. For others a call shows whether the model exists. */
  #mayHave(provider: Provider, model: string): boolean {
    const { local } = this.#options;
    if (provider.mayHave?.(model) === false) return false;
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
      : this.#undeclared(name, owner, name);
  }

  #default(): Route | undefined {
    const { local, timeouts } = this.#options;
    const [model] = this.#localModels();
    if (this.providerIds().length > 1 || model === undefined) return undefined;
    const known = { provider: local.provider, timeouts, probed: false };
    return this.#undeclared(defaultName, known, model);
  }

  #undeclared(name: string, known: Known, model: string): Route {
    return single(name, modelTargets(known, model), this.#options.retry);
  }

  async #refresh(): Promise<void> {
    const { local, lists } = this.#options;
    const remote = [...this.#providers.values()].filter(
      ({ provider }) => provider !== local.provider,
    );
    await Promise.all(remote.map(({ provider }) => lists.get(provider)));
  }
}

/** Servers of one of OpenAI's APIs mostly have the other at the same address; those of the messages API have neither there. */
function speakingOf(
  dialect: HttpDialect,
  speaking: (dialect: HttpDialect) => Known,
): Pick<Known, 'speaking'> {
  if (dialect === 'anthropic-messages') return {};
  const known = new Map<HttpDialect, Known>();
  return {
    speaking: (other) => {
      const found = known.get(other) ?? speaking(other);
      known.set(other, found);
      return found;
    },
  };
}

function preferredOf(
  row: ProviderRow | undefined,
  baseUrl: string,
): Pick<Known, 'preferred' | 'foreign'> {
  if (row?.responses?.preferred !== true) return {};
  const foreign = baseUrl !== row.baseUrl;
  return { preferred: 'openai-responses', ...(foreign ? { foreign } : {}) };
}

/** The vendor whose ways it has, by its `like`, its id, or the host of its address. */
function waysOf(
  { id, like, baseUrl }: DeclaredProvider,
  dialect: HttpDialect,
): ProviderRow | undefined {
  const named = rowIn(providerRow(like ?? id), dialect);
  if (named !== undefined || dialect === 'openai-chat') return named;
  return dialect === 'anthropic-messages' ? messagesRowAt(baseUrl) : responsesRowAt(baseUrl);
}

/** The least of each limit, where it is known of all: what fits into that fits everywhere. */
function commonLimits(abouts: readonly Pick<ModelListing, 'facts'>[]): Pick<ModelListing, 'facts'> {
  const least = (limit: 'maxInputTokens' | 'maxOutputTokens'): ModelFacts => {
    const all = abouts.map(({ facts }) => facts?.[limit]).filter((each) => each !== undefined);
    return all.length === 0 || all.length < abouts.length ? {} : { [limit]: Math.min(...all) };
  };
  const facts = { ...least('maxInputTokens'), ...least('maxOutputTokens') };
  return Object.keys(facts).length === 0 ? {} : { facts };
}

function localFacts(file: LocalModelFile): ModelFacts {
  const context = contextOf(file);
  return {
    ...(file.demo === true ? { displayName: `${file.name} (demonstration model)` } : {}),
    ...(file.writtenAt === undefined ? {} : { createdAt: file.writtenAt }),
    ...(context === undefined ? {} : { maxInputTokens: context }),
  };
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

function weightsOf(targets: readonly Target[]): { readonly [target: string]: number } {
  return Object.fromEntries(
    targets.map(({ provider, model, weight }) => [`${provider.id}/${model}`, weight]),
  );
}

function takenBy(
  targets: readonly Pick<Target, 'provider' | 'model'>[],
): Pick<ModelListing, 'abilities'> {
  const abilities = abilitiesOf(targets.map(({ provider, model }) => provider.traits(model)));
  return abilities === undefined ? {} : { abilities };
}

function named(id: string, { each }: Known): Pick<ModelListing, 'credentials'> {
  if (each === undefined) return {};
  return { credentials: { [id]: each.map(({ credential }) => credential) } };
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}
