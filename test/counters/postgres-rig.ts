/** Counters on a database of their own; `counter_now()` is what the test says. */
import { BudgetLeases } from '../../src/store/leases/budget-leases.ts';
import { PostgresCounters } from '../../src/store/counters/postgres-counters.ts';
import { SharedCounters } from '../../src/store/counters/shared-counters.ts';
import { openTestStore, type TestStore } from '../support/postgres-store.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { HeldClock, silentLog } from '../unit/access/fakes.ts';
import { fresh, type Rig } from './rig.ts';

export interface PostgresRig extends Rig {
  readonly counters: SharedCounters;
  readonly budgets: BudgetLeases;
  readonly store: TestStore;
  readonly url: string;
  readonly clock: HeldClock;
}

export async function openPostgresRig(server: TestPostgres): Promise<PostgresRig> {
  const url = await server.makeDatabase();
  const store = await openTestStore(url);
  const clock = new HeldClock();
  const setTime = (): Promise<unknown> =>
    server.query(
      `CREATE OR REPLACE FUNCTION counter_now() RETURNS bigint LANGUAGE sql VOLATILE AS
       $$ SELECT ${clock.wall()}::bigint $$`,
      url,
    );
  await setTime();
  const rates = new PostgresCounters({ server: store.store.server, clock, log: silentLog });
  await rates.sweep();
  const home = store.store.budgets;
  const budgets = new BudgetLeases({ home, instance: fresh('gw_'), clock, log: silentLog });
  const log = silentLog;
  const counters = new SharedCounters({ rates, budgets, clock, log, onStoreLoss: 'closed' });
  return {
    counters,
    budgets,
    store,
    url,
    clock,
    pass: async (ms) => {
      clock.time += ms;
      await setTime();
    },
    settled: () => rates.settled(),
    close: async () => {
      await counters.close();
      await store.close();
    },
  };
}
