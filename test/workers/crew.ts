/** A real gateway whose calls are served by worker processes. */
import { readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import type { JsonObject } from '../../src/core/conversation.ts';
import { isObject, tryParseObject } from '../../src/core/json.ts';
import { Instance } from '../cluster/instance.ts';
import { stormPrices } from '../cluster/storm.ts';
import { until } from '../support/postgres-store.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

export interface Crewed {
  readonly gateway: Instance;
  readonly upstream: ScriptedUpstream;
}

/** Ended with the test. @param node options of Node, for all of its processes */
export async function crewed(
  t: TestContext,
  workers: number,
  config: JsonObject = {},
  node?: readonly string[],
): Promise<Crewed> {
  const upstream = await ScriptedUpstream.start();
  const options = optionsOf(upstream, { workers, ...config });
  const gateway = await Instance.start(node === undefined ? options : { ...options, node });
  t.after(async () => {
    await gateway.kill();
    await upstream.close();
    gateway.remove();
  });
  return { gateway, upstream };
}

export function optionsOf(
  upstream: ScriptedUpstream,
  config: JsonObject,
): Parameters<typeof Instance.start>[0] {
  return { storage: 'sqlite', upstream: upstream.port, prices: stormPrices, config };
}

/** Process ids of the workers that live, by their numbers, as the log tells. */
export function workersOf(gateway: Instance): ReadonlyMap<number, number> {
  const workers = new Map<number, number>();
  for (const line of gateway.log.split('\n')) {
    const { event, worker, pid } = tryParseObject(line) ?? {};
    if (event === 'worker_started') workers.set(Number(worker), Number(pid));
    // One that leaves dies behind the start of the next one in its place.
    const died = event === 'worker_died' && workers.get(Number(worker)) === Number(pid);
    if (died) workers.delete(Number(worker));
  }
  return workers;
}

/** kill -9; resolves when another one takes calls in its place. */
export async function killWorker(gateway: Instance, number: number): Promise<void> {
  // The log comes on its own way.
  await until(() => workersOf(gateway).has(number), `worker ${number} runs`);
  const pid = workersOf(gateway).get(number) ?? 0;
  process.kill(pid, 'SIGKILL');
  await until(() => {
    const now = workersOf(gateway).get(number);
    return now !== undefined && now !== pid;
  }, 'another worker has its place');
}

export function isAlive(pid: number): boolean {
  try {
    // A dead one that nobody has asked for yet is a zombie.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Nanodollars that the key's first budget has spent. */
export async function spentOf(gateway: Instance, id: string): Promise<number> {
  const budgets = (await gateway.admin('GET', `/api/keys/${id}`)).json['budgets'];
  const [first] = Array.isArray(budgets) ? budgets.filter(isObject) : [];
  return Math.round(Number(first?.['spent_usd']) * 1e9);
}

export async function rowsOf(gateway: Instance): Promise<readonly JsonObject[]> {
  const calls = (await gateway.admin('GET', '/api/calls?limit=500')).json['calls'];
  return Array.isArray(calls) ? calls.filter(isObject) : [];
}

/** Until nothing runs in any of its processes. */
export async function noneLeft(gateway: Instance): Promise<void> {
  await until(
    async () => (await gateway.admin('GET', '/api/status')).json['live_calls'] === 0,
    'no call is left',
  );
}

/** Whether somebody takes a new connection there. */
export async function accepts(url: string): Promise<boolean> {
  try {
    await fetch(`${url}/healthz`, { headers: { connection: 'close' } });
    return true;
  } catch {
    return false;
  }
}
