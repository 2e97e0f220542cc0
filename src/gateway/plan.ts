/** Step 4: the route's targets in the order in which they are tried. */
import type { Route, Target } from '../core/provider.ts';
import type { TargetHealth } from './health.ts';

/** At most so many tries a call, all targets together; what strictness refuses is none (G12). */
export const maxAttempts = 3;

export interface PlanMeans {
  readonly random: () => number;
  readonly health: TargetHealth;
}

/**
 * The targets that a call may try, at least one. Those that are out are left out; when all are, the one
 * that was to be tried again first is tried all the same (R6).
 * @throws GatewayError `rate_limited` while the providers of all want no calls.
 */
export function plan(route: Route, { random, health }: PlanMeans): readonly Target[] {
  const targets = ordered(route, random);
  if (health.calm) return targets;
  const ready = targets.filter((target) => health.isReady(target));
  if (ready.length > 0 || targets.length === 0) return ready;
  const leastBad = health.leastBad(targets);
  if (leastBad === undefined) throw health.allCooling(targets, random);
  return [leastBad];
}

/** `listed` keeps the order; `weighted` draws it, each target as likely first as its weight says. */
function ordered(route: Route, random: () => number): readonly Target[] {
  if (route.order === 'listed') return route.targets;
  const rest = [...route.targets];
  const order: Target[] = [];
  while (rest.length > 0) {
    const total = rest.reduce((sum, target) => sum + target.weight, 0);
    let point = random() * total;
    let chosen = rest.findIndex((target) => (point -= target.weight) < 0);
    if (chosen === -1) chosen = rest.length - 1;
    order.push(...rest.splice(chosen, 1));
  }
  return order;
}
