/** Suites that need database servers: each starts its own, ends them behind it, or says in a line that there are none. */
import { after, test } from 'node:test';
import { noPostgres, startPostgres, type TestPostgres } from './postgres.ts';
import { noRedis, startRedis, type TestRedis } from './redis.ts';

export async function withPostgres(suite: (postgres: TestPostgres) => void): Promise<void> {
  const postgres = await startPostgres();
  if (postgres === undefined) test(noPostgres, () => {});
  else await endingThem([postgres], () => suite(postgres));
}

export async function withPostgresAndRedis(
  suite: (postgres: TestPostgres, redis: TestRedis) => void,
): Promise<void> {
  const redis = await startRedis();
  if (redis === undefined) {
    test(noRedis, () => {});
    return;
  }
  const postgres = await startPostgres().catch(async (error: unknown) => {
    await redis.close();
    throw error;
  });
  if (postgres === undefined) {
    await redis.close();
    test(noPostgres, () => {});
  } else await endingThem([postgres, redis], () => suite(postgres, redis));
}

/** A file that fails while it is read runs no `after`. */
async function endingThem(
  servers: readonly { close(): Promise<void> }[],
  suite: () => void,
): Promise<void> {
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()));
  };
  try {
    suite();
  } catch (error) {
    await close();
    throw error;
  }
  after(close);
}
