/** Step 4: the route's targets in the order in which they are tried. */
import type { Route, Target } from '../core/provider.ts';

/** At most so many tries a call, all targets together; what strictness refuses is none (G12). */
export const maxAttempts = 3;

/** `listed` keeps the order; `weighted` draws it, each target as likely first as its weight says. */
export function plan(route: Route, random: () => number): readonly Target[] {
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
