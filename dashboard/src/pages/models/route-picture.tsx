/** A route as a picture: the model, its targets in the order in which they are asked, and how many calls each answered. */
import type { ReactElement } from 'react';
import type { Model, Target } from '../../api/models.ts';
import type { SeriesAnswer } from '../../api/series.ts';
import layout from '../../components/layout.module.css';
import { count, percent } from '../../format/number.ts';
import { HealthBadge } from './health.tsx';
import styles from './models.module.css';
import { weightShare, wholePercent } from './route.tsx';

/** Groups of the series that the picture is given. */
export const maxAnswered = 8;

interface RoutePictureProps {
  readonly model: Model;
  /** Calls of the last day by the model that answered or was the last one tried, at most `maxAnswered`; undefined: not known. */
  readonly day: SeriesAnswer | undefined;
}

export function RoutePicture({ model, day }: RoutePictureProps): ReactElement {
  const { id, targets } = model;
  const groups = day?.groups ?? [];
  const answered = new Map(groups.map(({ name, calls, failed }) => [name, calls - failed]));
  const all = groups.reduce((sum, { calls }) => sum + calls, 0);
  // A target that is not in a full list of groups may have answered calls.
  const without = all === 0 || groups.length === maxAnswered ? undefined : 0;
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
            calls={answered.get(target.target) ?? without}
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
  /** Those that it answered in the last day; undefined: not known, or the model was not called. */
  readonly calls: number | undefined;
  /** Failed ones too. */
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
