/** How much of each budget is spent: `/api/budgets`. */
import { useQuery } from '@tanstack/react-query';
import { get } from './client.ts';
import { useMay, viewers } from './session.ts';

export interface BudgetState {
  /** `key:ID:month` */
  readonly id: string;
  readonly holder: 'key' | 'team' | 'tag';
  readonly name: string;
  readonly key_name?: string | null;
  readonly per: 'day' | 'week' | 'month' | 'ever';
  readonly usd: number;
  readonly spent_usd: number;
  /** 1 = all of it. */
  readonly share: number;
  readonly ends_at: string | null;
}

/** From this part on a budget is near its end. */
export const nearEnd = 0.8;

/** From this part on a budget is spent. Below it calls that could exceed the rest are refused, smaller ones are not. */
export const spentFrom = 1;

/** The API returns no more. */
export const maxBudgets = 1000;

const everyMs = 30_000;

/** The fullest ones; nothing for members of teams. */
export function useBudgets() {
  const enabled = useMay(viewers);
  return useQuery({
    enabled,
    queryKey: ['budgets'],
    queryFn: async ({ signal }) => {
      const query = { limit: maxBudgets };
      const found = get<{ readonly budgets: readonly BudgetState[] }>('/api/budgets', {
        query,
        signal,
      });
      return (await found).budgets;
    },
    refetchInterval: everyMs,
  });
}
