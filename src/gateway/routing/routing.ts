/**
 * Step 4, first half: in which order the targets of a route are preferred, whatever their health
 * (docs/routing.md). The order of the route is among targets; of each target's credentials any will do.
 */
import type { Route, Target } from '../../core/provider.ts';
import { nameOf } from '../health.ts';
import { conversationKey, type RoutedCall } from './conversation-key.ts';
import { Load } from './load.ts';
import { drawn, weightedScore } from './rendezvous.ts';
import { Speed } from './speed.ts';
import { Sticky } from './sticky.ts';

/** So many calls under `fastest` go elsewhere, to learn how fast that is. */
const explored = 0.05;

export interface RoutingParts {
  readonly clock: { now(): number };
  /** A number in [0, 1). */
  readonly random: () => number;
  /** What a target costs, by whatever measure; undefined = nobody knows. */
  readonly priceOf: (target: Target) => number | undefined;
}

/** What of a call decides where it goes. */
export interface Choosing extends RoutedCall {
  readonly route: Route;
  readonly head: { readonly stream: boolean };
}

/** All the credentials of one target, side by side. */
type Group = readonly Target[];

export class Routing {
  readonly load = new Load();
  readonly speed = new Speed();
  readonly #sticky = new Sticky();
  readonly #parts: RoutingParts;

  constructor(parts: RoutingParts) {
    this.#parts = parts;
  }

  /** The targets of the call's route, the preferred one first. A route with one target costs nothing. */
  order(call: Choosing): readonly Target[] {
    const { route } = call;
    if (route.targets.length < 2) return route.targets;
    const groups = groupsOf(route.targets);
    const key = this.#needsKey(route, groups) ? conversationKey(call) : undefined;
    return this.#ranked(call, groups, key).flatMap((group) => this.#spread(group, key));
  }

  /** The call was answered there: where its conversation is to go next. */
  answered(call: Choosing, target: Target): void {
    if (!remembers(call.route) || call.route.targets.length < 2) return;
    const place = { target: nameOf(target), at: this.#parts.clock.now() };
    this.#sticky.keep(placeName(call.route, conversationKey(call)), place);
  }

  #needsKey({ order, affinity }: Route, groups: readonly Group[]): boolean {
    if (affinity === false) return false;
    const chooses = order === 'weighted' || order === 'least-busy' || order === 'fastest';
    return (chooses && groups.length > 1) || groups.some(({ length }) => length > 1);
  }

  #ranked(call: Choosing, groups: readonly Group[], key: string | undefined): readonly Group[] {
    if (groups.length === 1 || call.route.order === 'listed') return groups;
    const ranked = this.#byOrder(call, groups, key);
    if (key === undefined || !remembers(call.route)) return ranked;
    const last = this.#sticky.find(placeName(call.route, key), this.#parts.clock.now());
    const warm = ranked.find((group) => nameOfGroup(group) === last);
    return warm === undefined ? ranked : [warm, ...ranked.filter((group) => group !== warm)];
  }

  #byOrder(call: Choosing, groups: readonly Group[], key: string | undefined): readonly Group[] {
    const { random, priceOf } = this.#parts;
    const { order } = call.route;
    switch (order) {
      case 'listed':
        return groups;
      case 'weighted':
        return best(groups, ([target], name) =>
          weightedScore(key === undefined ? random() : drawn(key, name), target?.weight ?? 0),
        );
      case 'cheapest':
        return best(groups, ([target]) => -((target && priceOf(target)) ?? Infinity));
      case 'least-busy':
        // Of those that are equally busy any.
        return best(shuffled(groups, random), ([target], name) =>
          target === undefined ? 0 : -this.load.of(name) / target.weight,
        );
      case 'fastest':
        return this.#fastest(call, groups);
      default:
        return order satisfies never;
    }
  }

  /** One that nobody knows may be the fastest. */
  #fastest({ head }: Choosing, groups: readonly Group[]): readonly Group[] {
    const { clock, random } = this.#parts;
    const how = { streamed: head.stream, now: clock.now() };
    const ranked = best(groups, (_, name) => -(this.speed.of(name, how) ?? 0));
    if (random() >= explored) return ranked;
    const other = ranked[1 + Math.floor(random() * (ranked.length - 1))];
    return other === undefined ? ranked : [other, ...ranked.filter((group) => group !== other)];
  }

  /** A conversation has its credential, since caches are the account's; others take any. */
  #spread(group: Group, key: string | undefined): Group {
    if (group.length === 1) return group;
    const { random } = this.#parts;
    if (key === undefined) return shuffled(group, random);
    return best(group, ({ credential = '' }) => drawn(key, credential));
  }
}

/** Agents call a large and a small model by turns in one session: each has a place of its own. */
function placeName({ name }: Route, key: string): string {
  return `${key} ${name}`;
}

/** Orders that choose by what changes from call to call. */
function remembers({ order, affinity }: Route): boolean {
  return affinity !== false && (order === 'least-busy' || order === 'fastest');
}

function groupsOf(targets: readonly Target[]): readonly Group[] {
  const groups = new Map<string, Target[]>();
  for (const target of targets) {
    const name = nameOf(target);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [target]);
    else group.push(target);
  }
  return [...groups.values()];
}

function nameOfGroup([target]: Group): string {
  return target === undefined ? '' : nameOf(target);
}

/** The highest score first; equal ones stay as they are. */
function best<T extends Target | Group>(
  items: readonly T[],
  score: (item: T, name: string) => number,
): readonly T[] {
  const scored = items.map((item) => ({ item, score: score(item, nameIn(item)) }));
  return scored.toSorted((a, b) => compare(b.score, a.score)).map(({ item }) => item);
}

function nameIn(item: Target | Group): string {
  return 'provider' in item ? nameOf(item) : nameOfGroup(item);
}

/** Infinity minus itself is no number. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  const left = [...items];
  const mixed: T[] = [];
  while (left.length > 0) mixed.push(...left.splice(Math.floor(random() * left.length), 1));
  return mixed;
}
