/**
 * Who counts budgets where there are Redis and PostgreSQL: one row that all gateways look at, so that
 * they never count in two places at once (Q1).
 *
 * Where the place changes, or Redis has to begin anew, PostgreSQL must know all money that is held or spent:
 * `asked` rises, every gateway tells what the book does not know and notes that it did, and only then
 * somebody grants again. A gateway that has not been seen for `deadAfterMs` is not waited for.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { parseOwn } from '../core/json.ts';
import type { Clock } from '../core/runtime.ts';
import type { BudgetDraw, Draw, DrawnCall } from './counters.ts';
import { readKeptCall } from './kept-call.ts';
import { readAbout } from './lost-calls.ts';
import type { Row, Rows, Sql, SqlValue, Statement } from './postgres-pool.ts';
import type { PostgresServer } from './postgres-server.ts';
import type { EpochContents } from './redis-fill.ts';
import { StoreError } from './store-error.ts';

export interface ModeRow {
  readonly mode: 'redis' | 'postgres';
  /** Rises with each change of place, and whenever Redis has to begin anew. */
  readonly epoch: number;
  /** Up to where the gateways have to tell: the epoch that is to follow, once somebody knows that this one is over. */
  readonly asked: number;
  /** Whether PostgreSQL grants, where it counts. */
  readonly usable: boolean;
}

/** The row, held for who fills an epoch. */
export interface LockedMode {
  readonly row: ModeRow;
  contents(): Promise<EpochContents>;
  /** Said every now and then: who is silent for four seconds loses the row. @throws StoreError when it is lost */
  goesOn(): Promise<void>;
}

export interface FilledEpoch {
  readonly epoch: number;
  /** It counts from now on. @throws StoreError when others fill one by now */
  begin(): Promise<void>;
}

export interface CounterModeOptions {
  readonly server: Pick<PostgresServer, 'use' | 'data'>;
  readonly tenant: string;
  readonly clock: Pick<Clock, 'now'>;
}

/** A gateway that was not seen for so long is dead, or stands still: it grants nothing until it has looked. */
const deadAfterMs = 5000;
/**
 * While PostgreSQL was away nobody could be seen: until it has answered for as long, without a longer gap than
 * this, whoever was seen within a day may live.
 */
const gapMs = 2000;
const dayMs = 86_400_000;
/** So often it is looked whether all have told. */
const pollMs = 20;

const make: Statement = {
  name: 'counter_mode_make',
  text: `INSERT INTO counter_mode (tenant, mode, epoch, usable_at) VALUES ($1, 'redis', 0, 0)
    ON CONFLICT DO NOTHING`,
};
const read: Statement = {
  name: 'counter_mode_read',
  text: `SELECT mode, epoch, greatest(asked, epoch) AS asked, (usable_at <= counter_now())::int AS usable FROM counter_mode
    WHERE tenant = $1`,
};
const lock: Statement = {
  name: 'counter_mode_lock',
  text: `SELECT mode, epoch, greatest(asked, epoch) AS asked, (usable_at <= counter_now())::int AS usable FROM counter_mode
    WHERE tenant = $1 FOR UPDATE`,
};
/** Not usable before `open`. */
const leave: Statement = {
  name: 'counter_mode_leave',
  text: `UPDATE counter_mode SET mode = 'postgres', epoch = epoch + 1, asked = epoch + 1,
      usable_at = 9007199254740991
    WHERE tenant = $1 AND epoch = $2 AND mode = 'redis'`,
};
/** Once an epoch: whoever finds it over later joins those who wait. */
const ask: Statement = {
  name: 'counter_mode_ask',
  text: `UPDATE counter_mode SET asked = epoch + 1
    WHERE tenant = $1 AND epoch = $2 AND asked <= epoch`,
};
const tell: Statement = {
  name: 'counter_mode_tell',
  text: `INSERT INTO counter_gateways AS g VALUES ($1, $2, $3, counter_now())
    ON CONFLICT (tenant, gateway) DO UPDATE SET told = greatest(g.told, excluded.told),
      seen_at = excluded.seen_at`,
};
const silent: Statement = {
  name: 'counter_mode_silent',
  text: `SELECT 1 FROM counter_gateways
    WHERE tenant = $1 AND told < $2 AND seen_at > counter_now() - $3 LIMIT 1`,
};
const open: Statement = {
  name: 'counter_mode_open',
  text: `UPDATE counter_mode m SET usable_at = 0
    WHERE m.tenant = $1 AND m.mode = 'postgres' AND m.usable_at > 0
      AND NOT EXISTS (SELECT FROM counter_gateways g
        WHERE g.tenant = m.tenant AND g.told < m.asked AND g.seen_at > counter_now() - $2)`,
};
/** Also those that died a day ago. */
const gone: Statement = {
  name: 'counter_mode_gone',
  text: `DELETE FROM counter_gateways
    WHERE tenant = $1 AND (gateway = $2 OR seen_at < counter_now() - 86400000)`,
};
/**
 * One that stands still between two statements holds the row no longer: PostgreSQL ends its transaction. Longer
 * than a large book is read for, and shorter than the statements of those who wait for the row.
 */
const notForLong: Statement = {
  name: 'counter_mode_not_for_long',
  text: "SELECT set_config('idle_in_transaction_session_timeout', '4000', true)",
};
const goesOn: Statement = { name: 'counter_mode_goes_on', text: 'SELECT 1' };
const enter: Statement = {
  name: 'counter_mode_enter',
  text: "UPDATE counter_mode SET mode = 'redis', epoch = $2, usable_at = 0 WHERE tenant = $1",
};

/**
 * One statement, so that no call is missed or counted twice between its hold and its booking: a hold that
 * was told while its call was being booked is in `spending` too.
 */
const book: Statement = {
  name: 'counter_book',
  text: `SELECT
    (SELECT coalesce(jsonb_agg(jsonb_build_array(counter, period, ends_at, nanodollars)), '[]')
      FROM spending WHERE ends_at IS NULL OR ends_at > counter_now() - 172800000)::text AS spent,
    (SELECT coalesce(jsonb_agg(jsonb_build_array(name, call_id, amount, done, about)), '[]')
      FROM counter_holds h WHERE name LIKE 'b:%'
        AND NOT EXISTS (SELECT FROM calls c WHERE c.id = split_part(h.call_id, '+', 1)))::text AS holds,
    (SELECT coalesce(jsonb_agg(call), '[]') FROM open_calls)::text AS open`,
};

type SpentRow = readonly [string, string, number | null, number];
type HoldRow = readonly [string, string, number, boolean, string | null];

export class CounterMode {
  readonly #options: CounterModeOptions;

  /** Since when PostgreSQL answers without a gap, and when it did last, monotonic ms. */
  #steadySince = Number.POSITIVE_INFINITY;
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** The epoch that the row named last. */
  #named: number | undefined;

  constructor(options: CounterModeOptions) {
    this.#options = options;
  }

  /** The epoch that the row named when it could be read last; undefined = never. */
  get named(): number | undefined {
    return this.#named;
  }

  /** @throws StoreError */
  async read(): Promise<ModeRow> {
    const { tenant } = this.#options;
    const found = await this.#run(read, [tenant]);
    if (found.rows[0] !== undefined) {
      const row = modeOf(found.rows[0]);
      this.#named = row.epoch;
      return row;
    }
    await this.#run(make, [tenant]);
    return { mode: 'redis', epoch: 0, asked: 0, usable: true };
  }

  /** PostgreSQL counts, once all have told. Nothing happens where another gateway was faster. @throws StoreError */
  async leaveRedis(epoch: number): Promise<void> {
    await this.#run(leave, [this.#options.tenant, epoch]);
  }

  /**
   * Asks all gateways to tell, since Redis forgot or is to count again.
   * @returns the number that they have to tell up to; undefined where the row has changed meanwhile
   * @throws StoreError
   */
  async askAll(row: ModeRow): Promise<number | undefined> {
    await this.#run(ask, [this.#options.tenant, row.epoch]);
    const now = await this.read();
    return now.epoch === row.epoch ? now.asked : undefined;
  }

  /** `gateway` lives, and has told all that was asked for up to `asked`. @throws StoreError */
  async tell(gateway: string, asked: number): Promise<void> {
    await this.#run(tell, [this.#options.tenant, gateway, asked]);
  }

  /** Waits until all who live have told. @throws StoreError */
  async allTold(asked: number): Promise<void> {
    const { tenant } = this.#options;
    const deadline = this.#options.clock.now() + 2 * deadAfterMs;
    while ((await this.#run(silent, [tenant, asked, this.#deadAfter()])).count > 0) {
      if (this.#options.clock.now() > deadline) {
        throw new StoreError('unavailable', 'A gateway does not tell what its calls hold.');
      }
      await pause(pollMs);
    }
  }

  /** PostgreSQL grants from now on, if all have told. @throws StoreError */
  async open(): Promise<void> {
    await this.#run(open, [this.#options.tenant, this.#deadAfter()]);
  }

  /** `gateway` ends, and is not waited for. @throws StoreError */
  async gone(gateway: string): Promise<void> {
    await this.#run(gone, [this.#options.tenant, gateway]);
  }

  /**
   * Lets Redis count in a new epoch; nobody draws in PostgreSQL meanwhile.
   * @param fill fills it, and tells how it is begun; undefined = another gateway did it already
   * @throws StoreError, or what `fill` throws: then the row is as it was.
   */
  async enterRedis(fill: (locked: LockedMode) => Promise<FilledEpoch | undefined>): Promise<void> {
    const { server, tenant } = this.#options;
    await this.read();
    await server.data.transaction(async (sql) => {
      await sql.run(notForLong);
      const row = modeOf((await sql.run(lock, [tenant])).rows[0]);
      const filled = await fill({
        row,
        contents: () => readBook(sql),
        goesOn: async () => void (await sql.run(goesOn)),
      });
      if (filled === undefined) return;
      // Before it begins: who lost the row meanwhile learns it here.
      await sql.run(enter, [tenant, filled.epoch]);
      await filled.begin();
    });
  }

  #deadAfter(): number {
    return this.#options.clock.now() - this.#steadySince >= deadAfterMs ? deadAfterMs : dayMs;
  }

  async #run(statement: Statement, values: readonly SqlValue[]): Promise<Rows> {
    const { server } = this.#options;
    const rows = await server.use(() => server.data.run(statement, values));
    const now = this.#options.clock.now();
    if (now - this.#answeredAt > gapMs) this.#steadySince = now;
    this.#answeredAt = now;
    return rows;
  }
}

function modeOf(row: Row | undefined): ModeRow {
  const count = (name: string): number => {
    const value = row?.[name];
    return typeof value === 'number' ? value : 0;
  };
  return {
    mode: row?.['mode'] === 'postgres' ? 'postgres' : 'redis',
    epoch: count('epoch'),
    asked: count('asked'),
    usable: count('usable') === 1,
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
  const known = new Set<string>();
  for (const [name, callId, amount, done, about] of holds) {
    known.add(callId);
    const budget = name.slice(2);
    if (done) {
      const before = settled.get(budget);
      const nanodollars = (before?.nanodollars ?? 0) + amount;
      settled.set(budget, { nanodollars, endsAt: before?.endsAt });
    } else {
      const at = budget.lastIndexOf('|');
      const [counter, window] = [budget.slice(0, at), budget.slice(at + 1)];
      hold(open, callId, { counter, window, amount, ...readAbout(about ?? undefined) });
    }
  }
  holdRunning(open, { running, known });
  return {
    settled: [...settled].map(([name, { nanodollars, endsAt }]) => ({ name, nanodollars, endsAt })),
    open: [...open.values()],
  };
}

/** Calls of which PostgreSQL knows only that they ran, not what they hold or spent: their gateway is dead. */
function holdRunning(
  open: Map<string, Draw>,
  { running, known }: { readonly running: readonly string[]; readonly known: ReadonlySet<string> },
): void {
  for (const kept of running) {
    const { id, budgets, reservedNanodollars: amount } = readKeptCall(kept);
    if (known.has(id) || amount === undefined) continue;
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
