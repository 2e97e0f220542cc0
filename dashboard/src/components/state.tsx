/** What a page shows while it has nothing else to show: loading, nothing there, or what went wrong. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';
import { asApiError } from '../api/api-error.ts';
import { Button } from './button.tsx';
import { classNames } from './class-names.ts';
import { Icon } from './icon.tsx';
import styles from './state.module.css';

/** Lines where the content will be; or words, where there is something to say of the wait. */
export function Loading({ what }: { readonly what?: string }): ReactElement {
  if (what !== undefined) {
    return (
      <div className={classNames(styles.state, styles.loading)} role="status">
        {what}
      </div>
    );
  }
  return (
    <div className={styles.skeleton} role="status">
      <span className="visually-hidden">Loading…</span>
      {skeletonLines.map((line) => (
        <span key={line} aria-hidden="true" />
      ))}
    </div>
  );
}

const skeletonLines = [1, 2, 3, 4, 5] as const;

interface EmptyProps {
  readonly title: string;
  /** Why there is nothing and what would change that. */
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}

export function Empty({ title, children, action }: EmptyProps): ReactElement {
  return (
    <div className={styles.state}>
      <h2>{title}</h2>
      {children === undefined ? null : <p>{children}</p>}
      {action}
    </div>
  );
}

interface ErrorPanelProps {
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
}

/** What happened, where, and what to do next. */
export function ErrorPanel({ error, onRetry }: ErrorPanelProps): ReactElement {
  const apiError = asApiError(error);
  return (
    <div className={styles.error} role="alert">
      <Icon name="warning" />
      <div className={styles.words}>
        <p className={styles.what}>{apiError.message}</p>
        {apiError.problems.length === 0 ? null : (
          <ul className={styles.problems}>
            {apiError.problems.map((problem) => (
              <li key={problem}>{problem}</li>
            ))}
          </ul>
        )}
        <p>{apiError.next}</p>
        <p className={styles.where}>
          {apiError.where}
          {apiError.status === undefined ? '' : ` · status ${apiError.status}`}
        </p>
      </div>
      {onRetry === undefined ? null : (
        <Button small icon="refresh" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

interface FailuresProps {
  /** Answers that the content is not complete without. */
  readonly of: readonly UseQueryResult<unknown>[];
}

/** The first error of requests whose answers are parts of what is shown; nothing where all succeed. */
export function Failures({ of: queries }: FailuresProps): ReactElement | null {
  const failed = queries.filter(({ isError }) => isError);
  const [first] = failed;
  if (first === undefined) return null;
  const retry = (): void => failed.forEach((query) => void query.refetch());
  return <ErrorPanel error={first.error} onRetry={retry} />;
}

interface QueryStateProps<Data> {
  readonly query: UseQueryResult<Data>;
  readonly loading?: string;
  /** Its error is shown elsewhere on the page. */
  readonly withoutError?: boolean;
  readonly children: (data: Data) => ReactNode;
}

/** The answer of a query, or what stands in for it. An old answer stays while a new one is fetched or fails. */
export function QueryState<Data>({
  query,
  loading,
  withoutError = false,
  children,
}: QueryStateProps<Data>): ReactElement {
  const retry = (): void => void query.refetch();
  return (
    <>
      {query.isError && !withoutError ? <ErrorPanel error={query.error} onRetry={retry} /> : null}
      {query.data === undefined ? null : children(query.data)}
      {query.isPending && !query.isError ? (
        <Loading {...(loading === undefined ? {} : { what: loading })} />
      ) : null}
    </>
  );
}
