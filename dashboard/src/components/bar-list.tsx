/** Names with a number and a bar each: the largest first, none of them cut to a needle. */
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import styles from './bar-list.module.css';

export interface BarItem {
  readonly id: string;
  readonly name: string;
  /** Length of the bar, in the unit of all. */
  readonly value: number;
  readonly text: string;
  readonly title?: string;
  /** A custom property; default: that of the list. */
  readonly colour?: string;
  /** Where its calls are. */
  readonly href?: string;
}

interface BarListProps {
  /** Read aloud. */
  readonly label: string;
  readonly items: readonly BarItem[];
  /** A custom property. */
  readonly colour?: string;
}

export function BarList({ label, items, colour = '--series-1' }: BarListProps): ReactElement {
  const most = Math.max(...items.map(({ value }) => value), 0);
  return (
    <ul className={styles.list} aria-label={label}>
      {items.map(({ id, name, value, text, title, href, colour: own = colour }) => (
        <li key={id} className={styles.item}>
          <span className={styles.name} title={name}>
            {href === undefined ? name : <Link href={href}>{name}</Link>}
          </span>
          <span className={styles.value} title={title}>
            {text}
          </span>
          <span className={styles.track} aria-hidden="true">
            <span
              className={styles.bar}
              style={{
                width: most === 0 ? 0 : `${(value / most) * 100}%`,
                minWidth: value === 0 ? 0 : undefined,
                background: `var(${own})`,
              }}
            />
          </span>
        </li>
      ))}
    </ul>
  );
}
