/**
 * Who counts budgets where there are Redis and PostgreSQL: one row that all gateways look at, so that
 * they never count in two places at once (Q1).
 */
import { parseOwn } from '../core/json.ts';
import type { BudgetDraw, Draw, DrawnCall } from './counters.ts';
import { readKeptCall } from './kept-call.ts';
import { readAbout } from './lost-calls.ts';
import type { Row, Sql, Statement } from './postgres-pool.ts';
import type { PostgresServer } from './postgres-server.ts';
import type { EpochContents } from './redis-counters.ts';

export interface ModeRow {
  readonly mode: 'redis' | 'postgres';
  /** Rises with each change of place, and whenever Redis has to begin anew. */
  readonly epoch: number;
}

export interface CounterModeOptions {
  readonly server: Pick<PostgresServer, 'use' | 'data'>;
  readonly tenant: string;
}

const make: Statement = {
  name: 'counter_mode_make',
  text: "INSERT INTO counter_mode VALUES ($1, 'redis', 0, 0) ON CONFLICT DO NOTHING",
};
const read: Statement = {
  name: 'counter_mode_read',
  text: 'SELECT mode, epoch FROM counter_mode WHERE tenant = $1',
};
const lock: Statement = {
  name: 'counter_mode_lock',
  text: 'SELECT mode, epoch FROM counter_mode WHERE tenant = $1 FOR UPDATE',
};
const leave: Statement = {
  name: 'counter_mode_leave',
  text: `UPDATE counter_mode SET mode = 'postgres', epoch = epoch + 1, usable_at = counter_now() + $3
    WHERE tenant = $1 AND epoch = $2 AND mode = 'redis'`,
};
const enter: Statement = {
  name: 'counter_mode_enter',
  text: "UPDATE counter_mode SET mode = 'redis', epoch = $2, usable_at = 0 WHERE tenant = $1",
};

/** One statement, so that no call is missed or counted twice between its hold and its booking. */
const book: Statement = {
  name: 'counter_book',
  text: `SELECT
    (SELECT coalesce(jsonb_agg(jsonb_build_array(counter, period, ends_at, nanodollars)), '[]')
      FROM spending WHERE ends_at IS NULL OR ends_at > counter_now() - 172800000)::text AS spent,
    (SELECT coalesce(jsonb_agg(jsonb_build_array(name, call_id, amount, done, about)), '[]')
      FROM counter_holds WHERE name LIKE 'b:%')::text AS holds,
    (SELECT coalesce(jsonb_agg(call), '[]') FROM open_calls)::text AS open`,
};

type SpentRow = readonly [string, string, number | null, number];
type HoldRow = readonly [string, string, number, boolean, string | null];

export class CounterMode {
  readonly #options: CounterModeOptions;

  constructor(options: CounterModeOptions) {
    this.#options = options;
  }

  /** @throws StoreError */
  async read(): Promise<ModeRow> {
    const { server, tenant } = this.#options;
    const found = await server.use(() => server.data.run(read, [tenant]));
    if (found.rows[0] !== undefined) return modeOf(found.rows[0]);
    await server.use(() => server.data.run(make, [tenant]));
    return { mode: 'redis', epoch: 0 };
  }

  /**
   * PostgreSQL counts from `handoverMs` on: until then all gateways have looked, stopped asking Redis and
   * told what their running calls hold. Nothing happens where another gateway was faster. @throws StoreError
   */
  async leaveRedis(epoch: number, handoverMs: number): Promise<void> {
    const { server, tenant } = this.#options;
    await server.use(() => server.data.run(leave, [tenant, epoch, handoverMs]));
  }

  /**
   * Lets Redis count in a new epoch, once `build` has filled it; nobody draws in PostgreSQL meanwhile.
   * @param isBuilt whether another gateway did it already
   * @throws StoreError, or what `build` throws: then nothing is changed.
   */
  async enterRedis(
    isBuilt: (row: ModeRow) => Promise<boolean>,
    build: (epoch: number, contents: () => Promise<EpochContents>) => Promise<void>,
  ): Promise<number> {
    const { server, tenant } = this.#options;
    await this.read();
    return server.data.transaction(async (sql) => {
      const row = modeOf((await sql.run(lock, [tenant])).rows[0]);
      if (await isBuilt(row)) return row.epoch;
      const epoch = row.epoch + 1;
      await build(epoch, () => readBook(sql));
      await sql.run(enter, [tenant, epoch]);
      return epoch;
    });
  }
}

function modeOf(row: Row | undefined): ModeRow {
  const epoch = row?.['epoch'];
  return {
    mode: row?.['mode'] === 'postgres' ? 'postgres' : 'redis',
    epoch: typeof epoch === 'number' ? epoch : 0,
  };
}

async function readBook(sql: Sql): Promise<EpochContents> {
  const row = (await sql.run(book)).rows[0];
  const spent = parseOwn<readonly SpentRow[]>(String(row?.['spent']));
  const holds = parseOwn<readonly HoldRow[]>(String(row?.['holds']));
  const running = parseOwn<readonly string[]>(String(row?.['open']));
  const settled = new Map(
    spent.map(([counter, period, endsAt, nanodollars]) => [
      `${counter}|${period}`,
      { nanodollars, endsAt: endsAt ?? undefined },
    ]),
  );
  const open = new Map<string, Draw>();
  for (const [name, callId, amount, done, about] of holds) {
    const budget = name.slice(2);
    if (done) {
      const known = settled.get(budget);
      const nanodollars = (known?.nanodollars ?? 0) + amount;
      settled.set(budget, { nanodollars, endsAt: known?.endsAt });
    } else {
      const at = budget.lastIndexOf('|');
      const [counter, window] = [budget.slice(0, at), budget.slice(at + 1)];
      hold(open, callId, { counter, window, amount, ...readAbout(about ?? undefined) });
    }
  }
  holdRunning(open, running);
  return {
    settled: [...settled].map(([name, { nanodollars, endsAt }]) => ({ name, nanodollars, endsAt })),
    open: [...open.values()],
    before: undefined,
  };
}

/** Calls that Redis admitted: PostgreSQL holds nothing for them. */
function holdRunning(open: Map<string, Draw>, running: readonly string[]): void {
  const held = new Set(open.keys());
  for (const kept of running) {
    const { id, budgets, reservedNanodollars: amount } = readKeptCall(kept);
    if (held.has(id) || amount === undefined) continue;
    for (const { counter, window, endsAt } of budgets) {
      hold(open, id, { counter, window, amount, ...(endsAt === undefined ? {} : { endsAt }) });
    }
  }
}

type Held = Pick<BudgetDraw, 'counter' | 'window' | 'amount'> & {
  readonly endsAt?: number;
  readonly about?: DrawnCall;
};

function hold(open: Map<string, Draw>, callId: string, { about, ...held }: Held): void {
  const budget: BudgetDraw = { endsAt: undefined, nanodollars: 0, ...held };
  const budgets = [...(open.get(callId)?.budgets ?? []), budget];
  const parts = { callId, concurrent: [], requests: [], tokens: [], budgets };
  open.set(callId, { ...parts, ...(about === undefined ? {} : { about }) });
}
