/** Whether all is well, in one line: green, amber or red, and where to look. */
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { nearEnd, spentFrom, useBudgets, type BudgetState } from '../../api/budgets.ts';
import { failedStatus } from '../../api/api-error.ts';
import { useModels, type Model } from '../../api/models.ts';
import { useStatus, type Status } from '../../api/status.ts';
import { classNames } from '../../components/class-names.ts';
import { type HealthItem, storeItem } from './store-item.ts';
import styles from './health-strip.module.css';

export function HealthStrip(): ReactElement {
  const models = useModels();
  const budgets = useBudgets();
  const status = useStatus();
  const items = [
    storeItem(status.data, status.isError ? failedStatus(status.error) : undefined),
    models.isError ? failed('Providers', '/models') : targetItem(models.data?.models),
    budgets.isError ? failed('Budgets', '/keys') : budgetItem(budgets.data),
    status.isError ? failed('Webhooks', '/events') : webhookItem(status.data),
  ];
  return (
    <ul className={styles.strip} aria-label="Health">
      {items.map(({ name, state, text, href }) => (
        <li key={name}>
          <Link href={href} className={classNames(styles.item, styles[state])}>
            <span className={styles.dot} aria-hidden="true" />
            <span className={styles.name}>{name}</span>
            <span className={styles.text} title={text}>
              {text}
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

/** The item of a request that failed. */
function failed(name: string, href: string): HealthItem {
  return { name, href, state: 'unknown', text: 'unknown: the request failed' };
}

export function targetItem(models: readonly Model[] | undefined): HealthItem {
  const item = { name: 'Providers', href: '/models' };
  if (models === undefined) return { ...item, state: 'unknown', text: '…' };
  const health = new Map(
    models.flatMap(({ targets }) => targets.map((each) => [each.target, each.health])),
  );
  const of = (state: string): readonly string[] =>
    [...health].filter(([, text]) => text.startsWith(state)).map(([target]) => target);
  const [down, degraded] = [of('down'), of('degraded')];
  if (down.length > 0) return { ...item, state: 'bad', text: listed(down, 'down') };
  if (degraded.length > 0) return { ...item, state: 'warn', text: listed(degraded, 'degraded') };
  const known = of('healthy').length;
  return known === 0
    ? { ...item, state: 'unknown', text: 'not called yet' }
    : { ...item, state: 'good', text: `${known} ${known === 1 ? 'target' : 'targets'} healthy` };
}

export function budgetItem(budgets: readonly BudgetState[] | undefined): HealthItem {
  const item = { name: 'Budgets', href: '/keys' };
  if (budgets === undefined) return { ...item, state: 'unknown', text: '…' };
  const spent = budgets.filter(({ share }) => share >= spentFrom);
  const near = budgets.filter(({ share }) => share >= nearEnd && share < spentFrom);
  const [first] = [...spent, ...near];
  if (first === undefined) return { ...item, state: 'good', text: 'none above 80%' };
  const key = first.holder === 'key' ? 'key' : 'team';
  const href = first.holder === 'tag' ? '/keys' : `/keys?${key}=${encodeURIComponent(first.name)}`;
  const names = [...spent, ...near].map((each) => each.key_name ?? each.name);
  const word = spent.length > 0 ? 'spent' : 'almost spent';
  return {
    name: 'Budgets',
    href,
    state: spent.length > 0 ? 'bad' : 'warn',
    text: listed(names.slice(0, spent.length > 0 ? spent.length : names.length), word),
  };
}

export function webhookItem(status: Status | undefined): HealthItem {
  const item = { name: 'Webhooks', href: '/events' };
  const dropped = status?.['webhooks_dropped'];
  if (typeof dropped !== 'number') return { ...item, state: 'unknown', text: '…' };
  return dropped === 0
    ? { ...item, state: 'good', text: 'none dropped' }
    : { ...item, state: 'warn', text: `${dropped} dropped since the start` };
}

/** `a down`, `a and 2 more down`. */
function listed([first = '', ...others]: readonly string[], word: string): string {
  return others.length === 0 ? `${first} ${word}` : `${first} and ${others.length} more ${word}`;
}
