/** Counters on a database of their own; `counter_now()` is what the test says. */
import { PostgresCounters } from '../../src/store/postgres-counters.ts';
import { openTestStore, type TestStore } from '../support/postgres-store.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { HeldClock, silentLog } from '../unit/access/parts.ts';
import type { Rig } from './rig.ts';

export interface PostgresRig extends Rig {
  readonly counters: PostgresCounters;
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
  const counters = new PostgresCounters({ server: store.store.server, clock, log: silentLog });
  await counters.sweep();
  return {
    counters,
    store,
    url,
    clock,
    pass: async (ms) => {
      clock.time += ms;
      await setTime();
    },
    settled: () => counters.settled(),
    close: async () => {
      await counters.close();
      await store.close();
    },
  };
}
