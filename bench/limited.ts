/**
 * The gateway called with a key that has each kind of limit and a budget, in turns with one that has
 * none: on its own file, and on PostgreSQL and Redis.
 */
import { createHash } from 'node:crypto';
import { noPostgres, startPostgres, type TestPostgres } from '../test/support/postgres.ts';
import { noRedis, startRedis, type TestRedis } from '../test/support/redis.ts';
import { subjectCore } from './child.ts';
import { startGateway } from './gateway.ts';
import { measureRoundTrip, roundTripName } from './redis-round-trip.ts';
import type { Subject } from './subject.ts';

/** Ids of workloads. */
const ownWorkload = 'limits';
const keptWorkload = 'kept-responses';
const sharedLimits = 'limits-shared';
const sharedBudget = 'budget-shared';
export const sharedWorkloads: readonly string[] = [sharedLimits, sharedBudget];

const limitedKey = 'bench-limited-0123456789abcdefgh';
const budgetKey = 'bench-budget-0123456789abcdefghi';

function digestOf(key: string): string {
  return `sha256:${createHash('sha256').update(key).digest('hex')}`;
}

/** Limits, budget and price of a key that they never refuse. */
export const limitsConfig = `prices:
  mock/*: { input: 1, output: 10, cache_read: 0.1 }
keys:
  limited:
    digest: ${digestOf(limitedKey)}
    models: ['*']
    rpm: 1000000000
    tpm: 10000000000
    concurrent: 1000000
    budget: 1000000
    per: month
`;
/** A budget that is never used up, and no other limit. */
const budgetConfig = `prices:
  mock/*: { input: 1, output: 10, cache_read: 0.1 }
keys:
  limited:
    digest: ${digestOf(budgetKey)}
    models: ['*']
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
    beside: { name: `${gateway.name}, key without limits`, key: gateway.key },
    start: (mockPort) => startGateway({ mockPort, core: subjectCore, config: limitsConfig }),
  };
}

/** A key without limits whose answers are retained, beside calls of the same key that are not. */
export function keepingGateway(gateway: Subject): Subject {
  return {
    ...gateway,
    name: `${gateway.name}, responses kept`,
    only: keptWorkload,
    beside: { name: `${gateway.name}, responses not kept`, key: gateway.key },
  };
}

/** The same on a data directory that is there, and stays as it is but for the calls that it counts. */
export function limitedOn(gateway: Subject, dataDir: string): Subject {
  const config = `${limitsConfig}ledger: { keep: forever, keep_hours: forever }\n`;
  return {
    ...limitedGateway(gateway),
    name: `${gateway.name}, limited key, full book`,
    start: (mockPort) => startGateway({ mockPort, core: subjectCore, config, dataDir }),
  };
}

export interface SharedStores {
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
  const limited: Subject = {
    ...gateway,
    name: `${name}, limited key`,
    key: limitedKey,
    only: sharedLimits,
    beside: { name: `${name}, key without limits`, key: gateway.key },
    allowance: {
      name: roundTripName,
      measure: (options) => measureRoundTrip(redis.url, options),
    },
    start: (mockPort) => startOn({ postgres, redis }, mockPort, limitsConfig),
  };
  const alone = `${gateway.name}, PostgreSQL`;
  const budget: Subject = {
    ...gateway,
    name: `${alone}, key with a budget`,
    key: budgetKey,
    only: sharedBudget,
    beside: { name: `${alone}, key without a budget`, key: gateway.key },
    start: (mockPort) => startOn({ postgres }, mockPort, budgetConfig),
  };
  const close = async (): Promise<void> => {
    await redis.close();
    await postgres.close();
  };
  return { subjects: [limited, budget], close };
}

interface Servers {
  readonly postgres: TestPostgres;
  /** Absent = no server for rates. */
  readonly redis?: TestRedis;
}

async function startOn(
  { postgres, redis }: Servers,
  mockPort: number,
  config: string,
): ReturnType<typeof startGateway> {
  const database = await postgres.makeDatabase();
  const tenant = new URL(database).pathname.slice(1);
  const counters = redis === undefined ? '' : `  counters: ${redis.url}\n`;
  const storage = `storage:\n  database: ${database}\n${counters}  tenant: ${tenant}\n`;
  return startGateway({ mockPort, core: subjectCore, config: config + storage });
}
