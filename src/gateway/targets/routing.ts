/**
 * Step 4: the targets of a route in the order in which they are tried (docs/user/routing.md). `Routing` orders
 * targets by the route's rule and spreads calls over the credentials of each; `plan` omits what is unhealthy.
 */
import { hash } from 'node:crypto';
import type { Call } from '../../core/call.ts';
import { CounterMap } from '../../core/counter-map.ts';
import type { DescribedSource, RequestDescription } from '../../core/description.ts';
import { unsupported } from '../../core/errors.ts';
import type { Route, Target } from '../../core/provider.ts';
import { type TargetHealth, nameOf } from './health.ts';
import { LongBody } from '../long-bodies/body-thread.ts';

/** Share of the calls under `fastest` that go to another target, to measure it. */
const explored = 0.05;

export interface RoutingDeps {
  readonly clock: { now(): number };
  /** A number in [0, 1). */
  readonly random: () => number;
  /** The cost of a target, in any unit; undefined = unknown. */
  readonly priceOf: (target: Target) => number | undefined;
}

/** The parts of a call that routing depends on. */
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
  readonly #deps: RoutingDeps;

  constructor(deps: RoutingDeps) {
    this.#deps = deps;
  }

  /** The targets of the call's route, the preferred one first. */
  order(call: Choosing): readonly Target[] {
    const { route } = call;
    if (route.targets.length < 2) return route.targets;
    const groups = groupsOf(route.targets);
    const key = this.#needsKey(route, groups) ? conversationKey(call) : undefined;
    return this.#ranked(call, groups, key).flatMap((group) => this.#spread(group, key));
  }

  /** Remembers the target for the next call of the conversation. */
  answered(call: Choosing, target: Target): void {
    if (!remembers(call.route) || call.route.targets.length < 2) return;
    const last = { target: nameOf(target), at: this.#deps.clock.now() };
    this.#sticky.keep(stickyKey(call.route, conversationKey(call)), last);
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
    const last = this.#sticky.find(stickyKey(call.route, key), this.#deps.clock.now());
    const warm = ranked.find((group) => nameOfGroup(group) === last);
    return warm === undefined ? ranked : [warm, ...ranked.filter((group) => group !== warm)];
  }

  #byOrder(call: Choosing, groups: readonly Group[], key: string | undefined): readonly Group[] {
    const { random, priceOf } = this.#deps;
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
        // Equally busy targets in random order.
        return best(shuffled(groups, random), ([target], name) =>
          target === undefined ? 0 : -this.load.of(name) / target.weight,
        );
      case 'fastest':
        return this.#fastest(call, groups);
      default:
        return order satisfies never;
    }
  }

  /** An unknown target ranks first: it may be the fastest. */
  #fastest({ head }: Choosing, groups: readonly Group[]): readonly Group[] {
    const { clock, random } = this.#deps;
    const how = { streamed: head.stream, now: clock.now() };
    const ranked = best(groups, (_, name) => -(this.speed.of(name, how) ?? 0));
    if (random() >= explored) return ranked;
    const other = ranked[1 + Math.floor(random() * (ranked.length - 1))];
    return other === undefined ? ranked : [other, ...ranked.filter((group) => group !== other)];
  }

  /** A conversation keeps its credential, since provider caches belong to an account. */
  #spread(group: Group, key: string | undefined): Group {
    if (group.length === 1) return group;
    const { random } = this.#deps;
    if (key === undefined) return shuffled(group, random);
    return best(group, ({ credential = '' }) => drawn(key, credential));
  }
}

/** Agents call a large and a small model in one session: each has a target of its own. */
function stickyKey({ name }: Route, key: string): string {
  return `${key} ${name}`;
}

/** Orders that depend on changing measurements. */
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
  const scored = items.map((item) => ({
    item,
    score: score(item, 'provider' in item ? nameOf(item) : nameOfGroup(item)),
  }));
  return scored
    .toSorted((a, b) => (b.score === a.score ? 0 : b.score < a.score ? -1 : 1))
    .map(({ item }) => item);
}

function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  const left = [...items];
  const mixed: T[] = [];
  while (left.length > 0) mixed.push(...left.splice(Math.floor(random() * left.length), 1));
  return mixed;
}

/**
 * Rendezvous hashing: a number in (0, 1) that is the same for the same two texts. A conversation ranks targets
 * by it, so it comes to the same target on every gateway and after every restart without any stored state. A
 * target that goes away moves only its own conversations, and gets the same ones back.
 */
function drawn(conversation: string, name: string): number {
  let hash = 0x811c9dc5;
  hash = fnv(hash, conversation);
  hash = fnv(hash, '\n');
  hash = fnv(hash, name);
  // FNV leaves the high bits of short texts alike; these are murmur3's last steps.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash ^= hash >>> 16;
  return ((hash >>> 0) + 0.5) / 2 ** 32;
}

function fnv(from: number, text: string): number {
  let hash = from;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return hash;
}

/**
 * The score of a draw for a weight: the highest of several wins, each in proportion to its weight. @param draw in [0,
 * 1).
 */
function weightedScore(draw: number, weight: number): number {
  return weight / -Math.log(draw);
}

const maxConversations = 20_000;
const warmMs = 3_600_000;

interface LastTarget {
  readonly target: string;
  /** Monotonic ms. */
  readonly at: number;
}

/**
 * The last target of each conversation, for orders that depend on changing measurements. Bounded: the least
 * recently used conversation is evicted first, and each after an hour, when no provider's cache is warm any more.
 */
export class Sticky {
  readonly #targets = new Map<string, LastTarget>();

  find(conversation: string, now: number): string | undefined {
    const last = this.#targets.get(conversation);
    return last === undefined || now - last.at > warmMs ? undefined : last.target;
  }

  /** The conversation was answered there. */
  keep(conversation: string, last: LastTarget): void {
    this.#targets.delete(conversation);
    this.#targets.set(conversation, last);
    if (this.#targets.size <= maxConversations) return;
    const [oldest] = this.#targets.keys();
    if (oldest !== undefined) this.#targets.delete(oldest);
  }

  get size(): number {
    return this.#targets.size;
  }
}

/** The route with the targets that this call goes to, where a provider has two APIs (docs/user/routing.md). */
export function routeByApi(
  route: Route,
  { dialect, source }: Pick<Call, 'source'> & { readonly dialect: Pick<Call['dialect'], 'id'> },
  asks: Pick<RequestDescription, 'reasonsWithTools'>,
): Route {
  const { byApi } = route;
  if (byApi === undefined) return route;
  const own = byApi.ofClient?.[dialect.id];
  if (own !== undefined) return own;
  const { reasoningWithTools: other } = byApi;
  if (other === undefined) return route;
  const needs = source instanceof LongBody ? source.reasonsWithTools : asks.reasonsWithTools();
  return needs ? other : route;
}

/**
 * The route with the targets that can compact a conversation.
 * @throws GatewayError `invalid_request` where there is none.
 */
export function compactingRoute(route: Route): Route {
  const targets = route.targets.filter(
    ({ provider, model }) =>
      provider.compact !== undefined && provider.traits(model).compaction === true,
  );
  if (targets.length > 0) return { ...route, targets };
  throw unsupported(
    ['model'],
    'The provider of this model does not compact conversations. Ask for a summary in an ordinary request, and begin a new conversation with it.',
  );
}

export interface PlanDeps {
  readonly random: () => number;
  readonly health: TargetHealth;
  readonly routing: Pick<Routing, 'order'>;
}

/**
 * The targets that a call may try, at least one. Unhealthy targets are omitted; when all are unhealthy, the one
 * whose probe is due first is tried (R6).
 * @throws GatewayError `rate_limited` while all targets are cooling down.
 */
export function plan(call: Choosing, { random, health, routing }: PlanDeps): readonly Target[] {
  const targets = routing.order(call);
  if (health.calm) return targets;
  const ready = targets.filter((target) => health.isReady(target));
  if (ready.length > 0 || targets.length === 0) return avoidedLast(ready, health);
  const soonestBack = health.soonestBack(targets);
  if (soonestBack === undefined) throw health.allCooling(targets, random);
  return [soonestBack];
}

/** The target for a request that is not a generation, such as a token count; undefined when none is healthy. */
export function firstAble(targets: readonly Target[], health: TargetHealth): Target | undefined {
  if (health.calm) return targets[0];
  const able = targets.filter((target) => health.isReady(target) && !health.isOut(target));
  return able.find((target) => !health.isAvoided(target)) ?? able[0];
}

/** Among the credentials of a target only: the order of targets is the operator's. */
function avoidedLast(targets: readonly Target[], health: TargetHealth): readonly Target[] {
  if (!targets.some((target) => health.isAvoided(target))) return targets;
  const ranks = new Map<string, number>();
  for (const target of targets) {
    if (!ranks.has(nameOf(target))) ranks.set(nameOf(target), ranks.size);
  }
  const rank = (target: Target): number =>
    2 * (ranks.get(nameOf(target)) ?? 0) + (health.isAvoided(target) ? 1 : 0);
  return targets.toSorted((a, b) => rank(a) - rank(b));
}

/** Headers in which agents name their session. A child agent has the session of its parent on purpose. */
const sessionHeaders = [
  'x-claude-code-session-id',
  'x-session-id',
  'x-session-affinity',
  'session-id',
] as const;

const maxName = 512;

export type RoutedCall = Pick<Call, 'header'> & {
  readonly caller: Pick<Call['caller'], 'keyId'>;
  readonly dialect: Pick<Call['dialect'], 'describe'>;
  readonly source: DescribedSource;
};

/**
 * A short text that all calls of a conversation share: the client's name of its session, else a hash of how the
 * conversation begins. Equal sessions of two API keys are two conversations, so that no tenant learns about another's
 * by where its calls go. Needed only where there is a choice of targets.
 */
export function conversationKey(call: RoutedCall): string {
  const request = call.dialect.describe(call.source);
  const name = sessionName(call, request);
  const text =
    name === undefined
      ? `o${call.source instanceof LongBody ? call.source.opening : request.opening()}`
      : `s${name}`;
  return hash('sha1', `${call.caller.keyId}\n${text}`, 'base64');
}

function sessionName({ header }: RoutedCall, request: RequestDescription): string | undefined {
  for (const name of sessionHeaders) {
    const value = header(name);
    if (value !== undefined && value !== '') return value.slice(0, maxName);
  }
  return request.cacheKey()?.slice(0, maxName);
}

// Measurements of targets that routing orders by. Nothing is measured before the first question.

/** Running calls of each target, of this process. */
class Load {
  readonly #running = new CounterMap();
  #asked = false;

  /** Running calls; calls that began before the first question are not counted. */
  of(target: string): number {
    this.#asked = true;
    return this.#running.of(target);
  }

  /** A call begins. @returns whether `end` must be called. */
  begin(target: string): boolean {
    if (!this.#asked) return false;
    this.#running.add(target, 1);
    return true;
  }

  end(target: string): void {
    this.#running.add(target, -1);
  }
}

/** Time constant of the mean. */
const memoryMs = 30_000;
/** Lowest weight of a sample. */
const minShare = 0.2;
/** A mean without a sample for this long is unknown. */
const forgottenMs = 300_000;
const maxTargets = 1000;
const neverAnswered = Number.POSITIVE_INFINITY;

interface Mean {
  ms: number;
  /** Monotonic ms. */
  at: number;
}

/**
 * Time to the first event of each target: an exponentially weighted mean. Streams and documents have means
 * of their own, since a document's first event is its last.
 */
class Speed {
  readonly #means = new Map<string, Mean>();
  #asked = false;

  /** The mean, ms; undefined = no recent sample; Infinity = it failed without any answer. */
  of(target: string, { streamed, now }: { readonly streamed: boolean; readonly now: number }) {
    this.#asked = true;
    const mean = this.#means.get(meanName(target, streamed));
    return mean === undefined || now - mean.at > forgottenMs ? undefined : mean.ms;
  }

  /** A sample: an answer began after `ms`, or was given up then. */
  saw(target: string, sample: { streamed: boolean; now: number; ms: number }): void {
    if (!this.#asked) return;
    const { streamed, now, ms } = sample;
    const name = meanName(target, streamed);
    const mean = this.#means.get(name);
    if (mean === undefined || mean.ms === neverAnswered) {
      this.#keep(name, { ms, at: now });
      return;
    }
    const share = Math.max(minShare, 1 - Math.exp((mean.at - now) / memoryMs));
    mean.ms += (ms - mean.ms) * share;
    mean.at = now;
  }

  /** It failed without an answer: an unknown target must not rank first because it is unknown. */
  failed(target: string, { streamed, now }: { readonly streamed: boolean; readonly now: number }) {
    const name = meanName(target, streamed);
    const mean = this.#means.get(name);
    const known = mean !== undefined && now - mean.at <= forgottenMs && mean.ms !== neverAnswered;
    if (this.#asked && !known) this.#keep(name, { ms: neverAnswered, at: now });
  }

  #keep(name: string, mean: Mean): void {
    this.#means.delete(name);
    const [oldest] = this.#means.keys();
    if (this.#means.size >= maxTargets && oldest !== undefined) this.#means.delete(oldest);
    this.#means.set(name, mean);
  }
}

function meanName(target: string, streamed: boolean): string {
  return streamed ? target : `${target} document`;
}
