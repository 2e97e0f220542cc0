/** Step 4: the route's targets in the order in which they are tried. */
import type { Target } from '../core/provider.ts';
import { nameOf, type TargetHealth } from './health.ts';
import type { Choosing, Routing } from './routing/routing.ts';

/** At most so many tries a call, all targets together; what strictness refuses is none (G12). */
export const maxAttempts = 3;

export interface PlanMeans {
  readonly random: () => number;
  readonly health: TargetHealth;
  readonly routing: Pick<Routing, 'order'>;
}

/**
 * The targets that a call may try, at least one. Those that are out are left out; when all are, the one
 * that was to be tried again first is tried all the same (R6).
 * @throws GatewayError `rate_limited` while the providers of all want no calls.
 */
export function plan(call: Choosing, { random, health, routing }: PlanMeans): readonly Target[] {
  const targets = routing.order(call);
  if (health.calm) return targets;
  const ready = targets.filter((target) => health.isReady(target));
  if (ready.length > 0 || targets.length === 0) return avoidedLast(ready, health);
  const leastBad = health.leastBad(targets);
  if (leastBad === undefined) throw health.allCooling(targets, random);
  return [leastBad];
}

/**
 * Whom to ask for something that is no call, such as a count of tokens; undefined when nobody takes
 * calls now, who would only be one more to be refused.
 */
export function firstAble(targets: readonly Target[], health: TargetHealth): Target | undefined {
  if (health.calm) return targets[0];
  const able = targets.filter((target) => health.isReady(target) && !health.isOut(target));
  return able.find((target) => !health.isAvoided(target)) ?? able[0];
}

/** Among the credentials of a target only: the order of targets is the operator's. */
function avoidedLast(targets: readonly Target[], health: TargetHealth): readonly Target[] {
  if (!targets.some((target) => health.isAvoided(target))) return targets;
  const places = new Map<string, number>();
  for (const target of targets) {
    if (!places.has(nameOf(target))) places.set(nameOf(target), places.size);
  }
  const rank = (target: Target): number =>
    2 * (places.get(nameOf(target)) ?? 0) + (health.isAvoided(target) ? 1 : 0);
  return targets.toSorted((a, b) => rank(a) - rank(b));
}
