/**
 * Under which names the targets of a route can be called: its own, theirs, and those of other routes that
 * lead to the same. A limit on one of them counts calls by all of them.
 */
import { modelNames, type ModelNames } from '../core/model-names.ts';
import type { Route } from '../core/provider.ts';

/** Clients can make up names without end: when so many were asked for, the found ones are forgotten. */
const mostKnown = 1000;

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
    for (const route of declared) this.#declared.set(route, this.#find(route, []));
  }

  /**
   * The same object for the same names.
   * @param besides another name of all its targets.
   */
  of(route: Route, besides?: string): ModelNames {
    const declared = this.#declared.get(route);
    if (declared !== undefined) return declared;
    // It has one model of one provider.
    const [target] = route.targets;
    const key = `${route.name}\n${target?.provider.id ?? ''}/${target?.model ?? ''}\n${besides ?? ''}`;
    let names = this.#others.get(key);
    if (names === undefined) {
      if (this.#others.size >= mostKnown) this.#others.clear();
      names = this.#find(route, besides === undefined ? [] : [besides]);
      this.#others.set(key, names);
    }
    return names;
  }

  #find(route: Route, besides: readonly string[]): ModelNames {
    const targets = route.targets.flatMap(({ provider, model }) => [
      `${provider.id}/${model}`,
      // Some vendors know a model with and without a path before it: `models/gemini-3-pro`.
      `${provider.id}/${bare(model)}`,
    ]);
    return modelNames([route.name, ...targets, ...this.#aliases(route), ...besides]);
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
