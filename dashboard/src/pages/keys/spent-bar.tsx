/** How full a budget is, as lists show it: a bar, and amounts beside it. */
import type { ReactElement } from 'react';
import { nearEnd, spentFrom } from '../../api/budgets.ts';
import { classNames } from '../../components/class-names.ts';
import { exactMoney, roughMoney } from '../../format/money.ts';
import { percent } from '../../format/number.ts';
import type { HolderUsage, Period } from './api.ts';
import styles from './spent-bar.module.css';

/** Dollars. */
export interface SpentBudget {
  readonly usd: number;
  /** Undefined: not known. */
  readonly spent: number | undefined;
  readonly per: Period;
}

const periodTexts = { day: 'a day', week: 'a week', month: 'a month', ever: 'in total' } as const;

/** The fullest of several; a dash of none. */
export function SpentBar({ budgets }: { readonly budgets: readonly SpentBudget[] }): ReactElement {
  const [fullest] = budgets.toSorted((a, b) => shareOf(b) - shareOf(a));
  if (fullest === undefined) return <>–</>;
  const { usd, spent, per } = fullest;
  const share = shareOf(fullest);
  return (
    <span className={styles.budget} title={budgets.map(exactText).join('\n')}>
      <span>
        {roughMoney(spent)} of {roughMoney(usd)} {periodTexts[per]}
      </span>
      <span className={styles.track} aria-hidden="true">
        <span
          className={classNames(
            styles.spent,
            share >= spentFrom ? styles.full : share >= nearEnd && styles.near,
          )}
          style={{ width: `${Math.min(1, share) * 100}%` }}
        />
      </span>
    </span>
  );
}

/** 1 = all of it; a budget of nothing is full, and an unknown one counts as empty. */
export function shareOf({ usd, spent }: Pick<SpentBudget, 'usd' | 'spent'>): number {
  if (spent === undefined) return 0;
  return usd === 0 ? 1 : spent / usd;
}

function exactText(budget: SpentBudget): string {
  const { usd, spent, per } = budget;
  if (spent === undefined) return `of ${exactMoney(usd)} ${periodTexts[per]}`;
  const part = percent(shareOf(budget), 1);
  return `${exactMoney(spent)} of ${exactMoney(usd)} ${periodTexts[per]} (${part})`;
}

/** The cost of the last 30 days, in a cell. */
export function Spent({ usd }: { readonly usd: number | null | undefined }): ReactElement {
  return <span title={exactMoney(usd)}>{roughMoney(usd)}</span>;
}

/** What a team or tag used in 30 days; null: nothing; undefined: not known. */
type Used = HolderUsage | null | undefined;

export function callsOf(usage: Used): number | undefined {
  return usage === null ? 0 : usage?.calls;
}

/** Its cost, in a cell. */
export function HolderCost({ usage }: { readonly usage: Used }): ReactElement {
  return <Spent usd={usage === null ? 0 : usage?.cost_usd} />;
}
