/** The blocks that pages are made of. */
import { Fragment, useId, useLayoutEffect, type ReactElement, type ReactNode } from 'react';
import styles from './panel.module.css';

interface PageHeadProps {
  readonly title: string;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
}

/** Heading of a page; names the browser's tab, too. */
export function PageHead({ title, about, actions }: PageHeadProps): ReactElement {
  useLayoutEffect(() => {
    document.title = `${title} · Model Gateway`;
  }, [title]);
  return (
    <header className={styles.page}>
      <div>
        <h1>{title}</h1>
        {about === undefined ? null : <p className={styles.about}>{about}</p>}
      </div>
      {actions === undefined ? null : <div className={styles.actions}>{actions}</div>}
    </header>
  );
}

interface PanelProps {
  readonly title?: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Without space around its content: for tables. */
  readonly flush?: boolean;
}

export function Panel({ title, actions, children, flush = false }: PanelProps): ReactElement {
  const id = useId();
  return (
    <section className={styles.panel} aria-labelledby={title === undefined ? undefined : id}>
      {title === undefined ? null : (
        <div className={styles.head}>
          <h2 id={id}>{title}</h2>
          {actions === undefined ? null : <div className={styles.actions}>{actions}</div>}
        </div>
      )}
      <div className={flush ? styles.flush : styles.body}>{children}</div>
    </section>
  );
}

export type Fact = readonly [name: string, value: ReactNode];

/** Names and values, two columns. */
export function Facts({ facts }: { facts: readonly Fact[] }): ReactElement {
  return (
    <dl className={styles.facts}>
      {facts.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
