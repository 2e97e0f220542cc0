/** The leases of budgets in PostgreSQL (`budget_state` of counters/postgres-schema.ts). */
import type { Balance } from '../counters/counters.ts';
import type {
  BudgetHome,
  LeaseAnswer,
  LeaseState,
  LeaseStatement,
  SeenInstance,
} from '../leases/lease-home.ts';
import { parseOwn } from '../../json/parse.ts';
import { number, text } from '../columns.ts';
import type { Statement } from '../statements.ts';
import type { PostgresCalls } from './calls.ts';
import type { PostgresServer } from './server.ts';

/** The channel on which instances learn that others need the unused part of their leases. */
export const leaseChannel = 'model_gateway_leases';

const state: Statement = {
  name: 'budget_state',
  text: 'SELECT budget_state($1, $2, $3, $4, $5, $6)::text AS answer',
};
const readBalance: Statement = {
  name: 'budget_balance',
  text: `SELECT
    coalesce((SELECT nanodollars FROM spending WHERE counter = $1 AND period = $2), 0)::bigint AS settled,
    coalesce((SELECT sum(amount - least(free, amount)) FROM budget_leases
      WHERE counter = $1 AND period = $2 AND instance <> $3), 0)::bigint AS open`,
};
const seen: Statement = {
  name: 'budget_instances',
  text: 'SELECT instance, number FROM budget_instances',
};

type Asked = readonly (readonly [string, number])[];

interface Answer {
  readonly code: LeaseAnswer['code'];
  readonly now: number;
  readonly leases?: readonly (readonly [number, number, number, number, Asked])[];
  readonly asked?: readonly (readonly [string, string])[];
}

type Server = Pick<PostgresServer, 'use' | 'data'>;

export class PostgresBudgets implements BudgetHome {
  readonly #server: Server;
  readonly #ended: Pick<PostgresCalls, 'revive'>;

  /** @param ended turns the end of leases back */
  constructor(server: Server, ended: Pick<PostgresCalls, 'revive'>) {
    this.#server = server;
    this.#ended = ended;
  }

  async state(statement: LeaseStatement): Promise<LeaseAnswer> {
    const { instance, number: n, isKnown, leases } = statement;
    // Rows are locked in one order everywhere.
    const order = leases.map((lease, i) => ({ lease, i })).sort(byWindow);
    const rows = order.map(({ lease }) => [
      lease.counter,
      lease.window,
      lease.endsAt ?? null,
      lease.limit,
      lease.amount,
      lease.free,
      lease.booked,
      lease.wanted,
      lease.refill,
      lease.ask,
      lease.taken,
    ]);
    const deaf = JSON.stringify(statement.deaf.map((each) => [each.instance, each.number]));
    const values = [instance, n, isKnown, JSON.stringify(rows), deaf, leaseChannel];
    const { rows: found } = await this.#server.use(() => this.#server.data.run(state, values));
    const answer = parseOwn<Answer>(String(found[0]?.['answer']));
    const { code, now } = answer;
    if (code !== 'ok') return { code, now };
    const states = answer.leases ?? [];
    const inOrder = leases.map((): LeaseState => unknownState);
    for (const [at, { i }] of order.entries()) {
      const [settled = 0, others = 0, granted = 0, room = 0, list = []] = states[at] ?? [];
      const asked = list.map(([name, last]) => ({ instance: name, number: last }));
      inOrder[i] = { settled, others, granted, room, asked };
    }
    const asked = (answer.asked ?? []).map(([counter, window]) => ({ counter, window }));
    return { code, now, leases: inOrder, asked };
  }

  async balance(instance: string, counter: string, window: string): Promise<Balance> {
    const values = [counter, window, instance];
    const { rows } = await this.#server.use(() => this.#server.data.run(readBalance, values));
    const row = rows[0] ?? {};
    return { settled: number(row, 'settled'), open: number(row, 'open') };
  }

  revive(instance: string): Promise<void> {
    return this.#ended.revive(instance);
  }

  /** @throws StoreError */
  async instances(): Promise<readonly SeenInstance[]> {
    const { rows } = await this.#server.use(() => this.#server.data.run(seen));
    return rows.map((row) => ({ instance: text(row, 'instance'), number: number(row, 'number') }));
  }
}

const unknownState: LeaseState = { settled: 0, others: 0, granted: 0, room: 0, asked: [] };

interface Placed {
  readonly lease: LeaseStatement['leases'][number];
}

function byWindow({ lease: a }: Placed, { lease: b }: Placed): number {
  if (a.counter !== b.counter) return a.counter < b.counter ? -1 : 1;
  return a.window === b.window ? 0 : a.window < b.window ? -1 : 1;
}
