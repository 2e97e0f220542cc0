/** Suites that need database servers: each starts its own, ends them behind it, or says in a line that there are none. */
import { after, test } from 'node:test';
import { noPostgres, startPostgres, type TestPostgres } from './postgres.ts';
import { noRedis, startRedis, type TestRedis } from './redis.ts';

export async function withPostgres(suite: (postgres: TestPostgres) => void): Promise<void> {
  const postgres = await startPostgres();
  if (postgres === undefined) {
    test(noPostgres, () => {});
    return;
  }
  after(() => postgres.close());
  suite(postgres);
}

export async function withPostgresAndRedis(
  suite: (postgres: TestPostgres, redis: TestRedis) => void,
): Promise<void> {
  const redis = await startRedis();
  if (redis === undefined) {
    test(noRedis, () => {});
    return;
  }
  after(() => redis.close());
  await withPostgres((postgres) => suite(postgres, redis));
}
