/** A part of a call's details, with its heading. */
import type { ReactElement, ReactNode } from 'react';
import styles from './page.module.css';

export function Section({ title, children }: { title: string; children: ReactNode }): ReactElement {
  return (
    <section className={styles.section}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}
