/** A route as a picture: the model, its targets in the order in which they are asked, and how many calls each answered. */
import type { ReactElement } from 'react';
import type { Model, Target } from '../../api/models.ts';
import type { SeriesAnswer } from '../../api/series.ts';
import layout from '../../components/layout.module.css';
import { count, percent } from '../../format/number.ts';
import { HealthBadge } from './health.tsx';
import styles from './models.module.css';
import { weightShare, wholePercent } from './route.tsx';

interface RoutePictureProps {
  readonly model: Model;
  /** Calls of the last day by the model that answered; undefined: not known. */
  readonly day: SeriesAnswer | undefined;
}

export function RoutePicture({ model, day }: RoutePictureProps): ReactElement {
  const { id, targets } = model;
  const answered = new Map(day?.groups.map(({ name, calls }) => [name, calls]));
  const all = [...answered.values()].reduce((sum, calls) => sum + calls, 0);
  const shares = targets.map(({ target }) =>
    all === 0 ? 0 : (answered.get(target) ?? 0) / all,
  );
  return (
    <div className={styles.picture}>
      <span className={styles.source} title={id}>
        {id}
      </span>
      <Lines shares={shares} />
      <ol className={styles.targets}>
        {targets.map((target) => (
          <TargetItem
            key={target.target}
            target={target}
            weight={weightShare(model, target.target)}
            calls={all === 0 ? undefined : (answered.get(target.target) ?? 0)}
            all={all}
          />
        ))}
      </ol>
    </div>
  );
}

/** Of the picture: its own units, in which a target is one high. */
const width = 1;

/** One from the model to each target: as thick as its share of the calls, broken where there were none. */
function Lines({ shares }: { readonly shares: readonly number[] }): ReactElement {
  const middle = shares.length / 2;
  return (
    <svg
      className={styles.lines}
      viewBox={`0 0 ${width} ${shares.length}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {shares.map((share, i) => {
        const end = i + 0.5;
        return (
          <path
            key={end}
            d={`M0 ${middle}C${width / 2} ${middle} ${width / 2} ${end} ${width} ${end}`}
            className={share === 0 ? styles.unused : styles.used}
            strokeWidth={1.5 + 8 * share}
          />
        );
      })}
    </svg>
  );
}

interface TargetItemProps {
  readonly target: Target;
  /** Of the calls, where the route is weighted. */
  readonly weight: number | undefined;
  /** Those that it answered in the last day; undefined: the model was not called. */
  readonly calls: number | undefined;
  readonly all: number;
}

function TargetItem({ target, weight, calls, all }: TargetItemProps): ReactElement {
  return (
    <li className={styles.target}>
      <span className={layout.row}>
        <code>{target.target}</code>
        <HealthBadge health={target.health} />
      </span>
      {weight === undefined && calls === undefined ? null : (
        <span className={layout.muted}>
          {[
            ...(weight === undefined ? [] : [`weight: ${wholePercent(weight)} of calls`]),
            ...(calls === undefined ? [] : [`answered ${count(calls)} (${percent(calls, all)})`]),
          ].join(' · ')}
        </span>
      )}
      {target.credentials?.map(({ name, health }) => (
        <span key={name} className={layout.row}>
          <span className={layout.muted}>key {name}</span>
          <HealthBadge health={health} />
        </span>
      ))}
    </li>
  );
}
