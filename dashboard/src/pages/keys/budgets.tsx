/** What budgets have left, now and how it went. */
import { useMemo, type ReactElement } from 'react';
import { spentFrom } from '../../api/budgets.ts';
import { Chart } from '../../components/chart.tsx';
import layout from '../../components/layout.module.css';
import { Failures } from '../../components/state.tsx';
import { exactMoney, money, roughMoney, tickMoney } from '../../format/money.ts';
import { moment } from '../../format/time.ts';
import { classNames } from '../../components/class-names.ts';
import { useSpending, type Budget } from './api.ts';
import { burnDown } from './burn-down.ts';
import styles from './keys.module.css';
import { shareOf } from './spent-bar.tsx';

interface BudgetsProps {
  readonly budgets: readonly Budget[];
  /** Whose calls count: `{ key: id }`, `{ team: name }`. */
  readonly holder: { readonly [name: string]: string };
}

export function Budgets({ budgets, holder }: BudgetsProps): ReactElement {
  if (budgets.length === 0) return <p className={layout.muted}>No budget.</p>;
  return (
    <div className={layout.sections}>
      {budgets.map((budget) => (
        <BudgetState key={`${budget.per} ${budget.time_zone}`} budget={budget} holder={holder} />
      ))}
    </div>
  );
}

const periodTexts = {
  day: 'today',
  week: 'this week',
  month: 'this month',
  ever: 'in total',
} as const;

function BudgetState({
  budget,
  holder,
}: {
  readonly budget: Budget;
  readonly holder: BudgetsProps['holder'];
}): ReactElement {
  const all = Number(budget.usd);
  const spent = Number(budget.spent_usd ?? 0);
  const period = periodTexts[budget.per];
  return (
    <div className={styles.budget}>
      <div className={layout.row}>
        <strong>
          {money(spent)} of {money(all)} {period}
        </strong>
        <span className={layout.muted} title={exactMoney(Math.max(0, all - spent))}>
          {roughMoney(Math.max(0, all - spent))} left
          {budget.ends_at === null || budget.ends_at === undefined
            ? ''
            : `, resets ${moment(budget.ends_at)}`}
        </span>
      </div>
      <progress
        className={classNames(shareOf({ usd: all, spent }) >= spentFrom && styles.spent)}
        aria-label={`Spent of the budget ${period}`}
        max={all === 0 ? 1 : all}
        value={Math.min(spent, all)}
      />
      <BurnDown budget={budget} holder={holder} />
    </div>
  );
}

interface BurnDownProps {
  readonly budget: Budget;
  readonly holder: BudgetsProps['holder'];
}

/** Nothing for a budget without an end: there is no pace that it should be spent at. */
function BurnDown({ budget, holder }: BurnDownProps): ReactElement | null {
  const start = Date.parse(budget.starts_at ?? '');
  const end = Date.parse(budget.ends_at ?? '');
  if (Number.isNaN(start) || Number.isNaN(end) || Number(budget.usd) === 0) return null;
  return <BurnChart budget={budget} holder={holder} start={start} end={end} />;
}

/** What was left over the period, beside spending the same in each step. */
function BurnChart({
  budget,
  holder,
  start,
  end,
}: BurnDownProps & { readonly start: number; readonly end: number }): ReactElement | null {
  const spending = useSpending(holder, new Date(start).toISOString());
  const { data, dataUpdatedAt: now } = spending;
  const all = Number(budget.usd);
  const chart = useMemo(() => {
    const spent = data?.groups.flatMap((group) => group.points) ?? [];
    const { stepMs, times, left, even } = burnDown(all, spent, { start, end, now });
    const series = [
      { name: 'Left', values: left },
      { name: 'Even pace', values: even, colour: '--series-8' },
    ];
    return { stepMs, times, series };
  }, [data, now, all, start, end]);
  if (data === undefined) return <Failures of={[spending]} />;
  const left = Math.max(0, all - Number(budget.spent_usd ?? 0));
  return (
    <Chart
      label={`Burn-down: ${money(left)} of ${money(all)} are left`}
      {...chart}
      format={money}
      shortFormat={tickMoney}
    />
  );
}
