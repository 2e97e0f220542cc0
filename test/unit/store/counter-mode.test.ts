/** Who is waited for before a place of counting begins anew (Q1, F89). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CounterMode } from '../../../src/store/counter-mode.ts';
import type { PostgresPool, Rows, SqlValue } from '../../../src/store/postgres-pool.ts';

test('F89: after a gap of the book a gateway that could not be seen may live', async () => {
  const clock = { at: 0, now: () => clock.at };
  const asked: SqlValue[][] = [];
  const run = (_: object, values: readonly SqlValue[] = []): Promise<Rows> => {
    asked.push([...values]);
    return Promise.resolve({ rows: [], count: 0 });
  };
  const data = { run } as unknown as PostgresPool;
  const server = { data, use: <T>(work: () => Promise<T>): Promise<T> => work() };
  const mode = new CounterMode({ server, tenant: 't', clock });
  const waitedFor = async (): Promise<unknown> => {
    await mode.allTold(7);
    return asked.at(-1)?.at(-1);
  };
  const day = 86_400_000;
  assert.equal(await waitedFor(), day, 'the first look knows nothing of the time before');
  for (let second = 1; second <= 6; second += 1) {
    clock.at = second * 1000;
    await mode.tell('g', 7);
  }
  assert.equal(await waitedFor(), 5000, 'it has looked for as long');
  clock.at += 2500;
  await mode.tell('g', 7);
  assert.equal(await waitedFor(), day, 'nobody could be seen for a while');
});
