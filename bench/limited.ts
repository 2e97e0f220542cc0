/**
 * The same gateway called with a key that has each kind of limit and a budget, beside one called with a
 * key that has none: on its own file, and on PostgreSQL and Redis.
 */
import { createHash } from 'node:crypto';
import { noPostgres, startPostgres, type TestPostgres } from '../test/support/postgres.ts';
import { noRedis, startRedis, type TestRedis } from '../test/support/redis.ts';
import { subjectCore } from './child.ts';
import { startGateway } from './gateway.ts';
import type { Subject } from './subject.ts';

/** Ids of workloads. */
const ownWorkload = 'limits';
export const sharedWorkload = 'limits-shared';

const limitedKey = 'bench-limited-0123456789abcdefgh';

/** Limits, budget and price of a key that they never refuse. */
const limits = `prices:
  mock/*: { input: 1, output: 10, cache_read: 0.1 }
keys:
  limited:
    digest: sha256:${createHash('sha256').update(limitedKey).digest('hex')}
    models: ['*']
    rpm: 1000000000
    tpm: 10000000000
    concurrent: 1000000
    budget: 1000000
    per: month
`;

/** On its own file. */
export function limitedGateway(gateway: Subject): Subject {
  return {
    ...gateway,
    name: `${gateway.name}, limited key`,
    key: limitedKey,
    only: ownWorkload,
    beside: gateway.name,
    start: (mockPort) => startGateway({ mockPort, core: subjectCore, config: limits }),
  };
}

export interface SharedStores {
  /** Without and with limits, each with a book and counters of its own. */
  readonly subjects: readonly Subject[];
  close(): Promise<void>;
}

/** Starts both servers where this process runs, which is on the core of the load; or says which is not there. */
export async function openSharedStores(
  gateway: Subject,
): Promise<SharedStores | { readonly missing: string }> {
  const postgres = await startPostgres();
  if (postgres === undefined) return { missing: noPostgres };
  const redis = await startRedis();
  if (redis === undefined) {
    await postgres.close();
    return { missing: noRedis };
  }
  const name = `${gateway.name}, PostgreSQL and Redis`;
  const plain: Subject = {
    ...gateway,
    name,
    only: sharedWorkload,
    start: (mockPort) => startOn({ postgres, redis }, mockPort, ''),
  };
  const limited: Subject = {
    ...plain,
    name: `${name}, limited key`,
    key: limitedKey,
    beside: name,
    start: (mockPort) => startOn({ postgres, redis }, mockPort, limits),
  };
  const close = async (): Promise<void> => {
    await redis.close();
    await postgres.close();
  };
  return { subjects: [plain, limited], close };
}

interface Servers {
  readonly postgres: TestPostgres;
  readonly redis: TestRedis;
}

async function startOn(
  { postgres, redis }: Servers,
  mockPort: number,
  config: string,
): ReturnType<typeof startGateway> {
  const book = await postgres.makeDatabase();
  const tenant = new URL(book).pathname.slice(1);
  const storage = `storage:\n  book: ${book}\n  counters: ${redis.url}\n  tenant: ${tenant}\n`;
  return startGateway({ mockPort, core: subjectCore, config: config + storage });
}
