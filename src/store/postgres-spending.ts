/** What budgets have spent, as the book has it. */
import type { Spent, SpentPage } from './calls.ts';
import type { Row, Statement } from './postgres-pool.ts';
import type { PostgresServer } from './postgres-server.ts';
import { number, text } from './sqlite-columns.ts';

const spent: Statement = {
  name: 'spent',
  text: `SELECT counter, period, nanodollars FROM spending
    WHERE ends_at IS NULL OR ends_at > $1`,
};
const spentOf: Statement = {
  name: 'spent_of',
  text: `SELECT counter, period, nanodollars FROM spending
    WHERE counter = ANY ($2) AND (ends_at IS NULL OR ends_at > $1)`,
};

const spentPage: Statement = {
  name: 'spent_page',
  text: `SELECT counter, period, nanodollars FROM spending
    WHERE (counter, period) > ($2, $3) AND (ends_at IS NULL OR ends_at > $1)
    ORDER BY counter, period LIMIT $4`,
};

type Server = Pick<PostgresServer, 'use' | 'data'>;

/** In windows that end after this time or never. @throws StoreError */
export async function readSpending(
  server: Server,
  endingAfter: number,
  counters?: readonly string[],
): Promise<readonly Spent[]> {
  const { rows } = await server.use(() =>
    counters === undefined
      ? server.data.run(spent, [endingAfter])
      : server.data.run(spentOf, [endingAfter, counters]),
  );
  return rows.map(readSpent);
}

/** The same in portions. @throws StoreError */
export async function readSpendingPage(
  server: Server,
  endingAfter: number,
  { limit, after }: SpentPage,
): Promise<readonly Spent[]> {
  const { counter, window } = after ?? { counter: '', window: '' };
  const values = [endingAfter, counter, window, limit];
  const { rows } = await server.use(() => server.data.run(spentPage, values));
  return rows.map(readSpent);
}

function readSpent(row: Row): Spent {
  return {
    counter: text(row, 'counter'),
    window: text(row, 'period'),
    nanodollars: number(row, 'nanodollars'),
  };
}
