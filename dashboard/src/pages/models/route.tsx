/** The targets of a route as they are asked: one after the other, by weight, or by what is best now. */
import type { ReactElement } from 'react';
import type { Model } from '../../api/models.ts';
import { CutText } from '../../components/cut-text.tsx';
import styles from './models.module.css';

/** The weight of a target as a share of all weights, `67%`. It is configured, not measured. */
export function wholePercent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

const words = {
  listed: 'in this order, the next when one fails',
  weighted: 'by weight',
  'least-busy': 'the one with the fewest running calls first',
  fastest: 'the fastest first',
  cheapest: 'the cheapest first',
} as const;

export function orderText({ order = 'listed' }: Model): string {
  return words[order];
}

/** Of the calls that reach the route; undefined: it is not weighted. */
export function weightShare(model: Model, target: string): number | undefined {
  const weight = model.targets.find((each) => each.target === target)?.weight;
  if (weight === undefined) return undefined;
  const all = model.targets.reduce((sum, each) => sum + (each.weight ?? 0), 0);
  return all === 0 ? 0 : weight / all;
}

/** `A → B` where B follows A, `A 67% + B 33%` by weight, `A | B (fastest)` by choice. */
export function routeText(model: Model): string {
  const { targets, order = 'listed' } = model;
  if (order === 'weighted') {
    return targets
      .map(({ target }) => `${target} ${wholePercent(weightShare(model, target) ?? 0)}`)
      .join(' + ');
  }
  const names = targets.map(({ target }) => target);
  return order === 'listed' ? names.join(' → ') : `${names.join(' | ')} (${order})`;
}

/** In a cell; a weighted route is a bar of its parts, too. */
export function RouteCell({ model }: { readonly model: Model }): ReactElement {
  const text = routeText(model);
  if (model.order !== 'weighted') return <CutText text={text} />;
  return (
    <span className={styles.route}>
      <CutText text={text} />
      <WeightBar model={model} />
    </span>
  );
}

function WeightBar({ model }: { readonly model: Model }): ReactElement {
  return (
    <span className={styles.weights} aria-hidden="true">
      {model.targets.map(({ target }, i) => (
        <span
          key={target}
          style={{
            flexGrow: weightShare(model, target) ?? 0,
            background: `var(--series-${(i % 8) + 1})`,
          }}
        />
      ))}
    </span>
  );
}
