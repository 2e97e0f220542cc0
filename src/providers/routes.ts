/**
 * Routes: the targets behind a name, by each API that they can be called by, and all names under which they can be
 * called.
 */
import { type ModelNames, modelNames } from '../core/model-names.ts';
import type { HedgeRule, Provider, RetryRules, Route, Target, Timeouts } from '../core/provider.ts';
import { type HttpDialect, withTraits } from './http-provider.ts';

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
  readonly cache?: 'auto';
  /** Before the provider's. */
  readonly serverTools?: boolean;
  /** Which clients see reasoning, if their dialect shows it on request only; absent = those that request it. */
  readonly reasoning?: 'asked' | 'shown';
  /** Which of OpenAI's APIs its targets are called by; absent = the one of the provider. */
  readonly api?: 'chat' | 'responses';
  readonly timeouts?: Partial<Timeouts>;
}

/** A provider that can be called, with each of its credentials and by other APIs. */
export interface Known {
  readonly provider: Provider;
  /** The same with each of its credentials, where there are several; `provider` has the first. */
  readonly each?: readonly { readonly credential: string; readonly provider: Provider }[];
  readonly timeouts: Timeouts;
  /** Only real once its address answered. */
  readonly probed: boolean;
  /** The same by another API of its address; absent where it has none. */
  speaking?(dialect: HttpDialect): Known;
  /** The API that is better than its own for some calls, where the config leaves the choice to the gateway. */
  readonly preferred?: HttpDialect;
  /** Another server than the vendor's: it may lack the preferred API. */
  readonly foreign?: true;
}

/** The targets of one model of a provider, by its own API and by the preferred one. */
export interface ModelTargets {
  readonly own: readonly Target[];
  /** As many as `own`, in the same order. */
  readonly preferred?: readonly Target[];
  /** The preferred API may be missing. */
  readonly foreign?: true;
}

/** A model of a provider, once for each of its credentials. */
function targetsOf({ provider, each, timeouts }: Known, model: string): readonly Target[] {
  if (each !== undefined) {
    return each.map((one) => {
      const own = ownOf(one.provider, model);
      return { credential: one.credential, provider: own, model, weight: 1, timeouts };
    });
  }
  return [{ provider: ownOf(provider, model), model, weight: 1, timeouts }];
}

export function modelTargets(known: Known, model: string): ModelTargets {
  const own = targetsOf(known, model);
  const { preferred, foreign } = known;
  const other = preferred === undefined ? undefined : known.speaking?.(preferred);
  if (other === undefined) return { own };
  return { own, preferred: targetsOf(other, model), ...(foreign === true ? { foreign } : {}) };
}

export function routeTarget(
  target: Target,
  weight: number,
  { serverTools, reasoning, timeouts }: DeclaredRoute,
): Target {
  const own = { ...target, weight, timeouts: { ...target.timeouts, ...timeouts } };
  const traits = {
    ...(serverTools === undefined ? {} : { serverTools }),
    ...(reasoning === 'shown' ? { showsReasoning: true } : {}),
  };
  if (Object.keys(traits).length === 0) return own;
  return { ...own, provider: withTraits(target.provider, traits) };
}

/** Texts for the notes of a call. */
const whyOtherApi = 'asked by the Responses API, where it reasons with tools';
const whyOwnApi = 'asked by chat completions, since its provider has no Responses API';

/** The targets by the preferred API; each also names its own one where the server may have only that. */
function withOwnApi({ own, preferred, foreign }: ModelTargets): ModelTargets {
  if (preferred === undefined || foreign !== true) return { own, ...(preferred && { preferred }) };
  const withOwn = preferred.map((target, i): Target => {
    const byOwnApi = own[i];
    if (byOwnApi === undefined) return target;
    return { ...target, byOwnApi: { ...byOwnApi, otherApi: whyOwnApi } };
  });
  return { own, preferred: withOwn };
}

/** A route with its forms by other APIs, built once for all calls. */
export function routeOf(rules: Omit<Route, 'targets'>, declared: readonly ModelTargets[]): Route {
  const models = declared.map(withOwnApi);
  const targets = models.flatMap(({ own }) => own);
  const preferring = models.flatMap(({ preferred = [] }) => preferred);
  const [first] = preferring;
  if (first === undefined) return { ...rules, targets };
  const ofClient = { ...rules, targets: models.flatMap(({ own, preferred = own }) => preferred) };
  const reasoning = models.flatMap(({ own, preferred }) => {
    if (preferred === undefined || !own.some(excludesReasoning)) return own;
    return preferred.map((target) => ({ ...target, otherApi: whyOtherApi }));
  });
  const differs = reasoning.some(({ otherApi }) => otherApi !== undefined);
  return {
    ...rules,
    targets,
    byApi: {
      ofClient: { [first.provider.dialect.id]: ofClient },
      ...(differs ? { reasoningWithTools: { ...rules, targets: reasoning } } : {}),
    },
  };
}

function excludesReasoning({ provider, model }: Target): boolean {
  return provider.traits(model).toolsExcludeReasoning === true;
}

/** The provider for one of its models, where models have their own API. */
export function ownOf(provider: Provider, model: string): Provider {
  return provider.forModel?.(model) ?? provider;
}

/** The route of a name that the config does not declare. @param retry the rules of the whole file */
export function single(name: string, targets: ModelTargets, retry: RetryRules): Route {
  return routeOf({ name, order: 'listed', retry }, [targets]);
}

/** A route and its forms by other APIs. */
function formsOf(route: Route): readonly Route[] {
  const { reasoningWithTools, ofClient = {} } = route.byApi ?? {};
  return [route, reasoningWithTools, ...Object.values(ofClient)].filter(
    (form) => form !== undefined,
  );
}

// The names under which the targets of a route can be called: its own, theirs, and those of other routes that lead to
// the same. A limit on one of them counts calls by all of them.

/** Clients can make up names without end: beyond this number the found ones are forgotten. */
const maxKnown = 1000;

export class RouteNames {
  /** Names of the config's routes by each spelling of a target that they lead to first. */
  readonly #byOwn = new Map<string, string[]>();
  /** The same by spellings without date and tag. */
  readonly #byFamily = new Map<string, string[]>();
  readonly #declared = new WeakMap<Route, ModelNames>();
  readonly #others = new Map<string, ModelNames>();

  /** @param declared the routes of the config. */
  constructor(declared: readonly Route[]) {
    for (const route of declared) {
      for (const { own, families } of leading(route)) {
        for (const name of own) add(this.#byOwn, name, route.name);
        for (const name of families) add(this.#byFamily, name, route.name);
      }
    }
    for (const route of declared) {
      const names = this.#find(route, []);
      for (const form of formsOf(route)) this.#declared.set(form, names);
    }
  }

  /**
   * The same object for the same names.
   * @param extra another name of all its targets
   */
  of(route: Route, extra?: string): ModelNames {
    const declared = this.#declared.get(route);
    if (declared !== undefined) return declared;
    // It has one model of one provider.
    const [target] = route.targets;
    const key = `${route.name}\n${target?.provider.id ?? ''}/${target?.model ?? ''}\n${extra ?? ''}`;
    let names = this.#others.get(key);
    if (names === undefined) {
      if (this.#others.size >= maxKnown) this.#others.clear();
      names = this.#find(route, extra === undefined ? [] : [extra]);
      this.#others.set(key, names);
    }
    return names;
  }

  #find(route: Route, extra: readonly string[]): ModelNames {
    const targets = route.targets.flatMap(({ provider, model }) => [
      `${provider.id}/${model}`,
      // Some vendors know a model with and without a path before it: `models/gemini-3-pro`.
      `${provider.id}/${bare(model)}`,
    ]);
    return modelNames([route.name, ...targets, ...this.#aliases(route), ...extra]);
  }

  /** An undated name may lead to what a dated one is; two dates, or two tags, are two models. */
  #aliases(route: Route): readonly string[] {
    return leading(route).flatMap(({ own, families }) => [
      ...[...own, ...families].flatMap((name) => this.#byOwn.get(name) ?? []),
      ...own.flatMap((name) => this.#byFamily.get(name) ?? []),
    ]);
  }
}

/** Those that a call goes to as long as nothing fails, in their spellings with the provider. */
function leading({ order, targets }: Route): readonly ModelNames[] {
  return (order === 'listed' ? targets.slice(0, 1) : targets).map(({ provider, model }) => {
    const { own, families } = modelNames([`${provider.id}/${bare(model)}`]);
    const whole = (name: string): boolean => name.includes('/');
    return { own: own.filter(whole), families: families.filter(whole) };
  });
}

function bare(model: string): string {
  return model.slice(model.lastIndexOf('/') + 1);
}

function add(index: Map<string, string[]>, name: string, route: string): void {
  const known = index.get(name);
  if (known === undefined) index.set(name, [route]);
  else known.push(route);
}
