/** A word of state. Its tone says nothing that the word does not. */
import type { ReactElement } from 'react';
import styles from './badge.module.css';
import { classNames } from './class-names.ts';

export type Tone = 'neutral' | 'good' | 'warn' | 'bad' | 'accent';

export function Badge({ tone = 'neutral', text }: { tone?: Tone; text: string }): ReactElement {
  return (
    <span className={classNames(styles.badge, tone !== 'neutral' && styles[tone])}>
      <span className={styles.text} title={text.length > 16 ? text : undefined}>
        {text}
      </span>
    </span>
  );
}
