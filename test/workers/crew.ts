/** A real gateway whose calls are served by worker processes. */
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestContext } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { Instance } from '../cluster/instance.ts';
import { stormPrices } from '../cluster/storm.ts';
import { until } from '../support/postgres-store.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

export interface Crewed {
  readonly gateway: Instance;
  readonly upstream: ScriptedUpstream;
  end(): Promise<void>;
}

/** Ended with the test. */
export async function crewed(
  t: TestContext,
  ...crew: Parameters<typeof startCrew>
): Promise<Crewed> {
  const started = await startCrew(...crew);
  t.after(() => started.end());
  return started;
}

/** @param node options of Node, for all of its processes */
export async function startCrew(
  workers: number,
  config: JsonObject = {},
  node?: readonly string[],
): Promise<Crewed> {
  const upstream = await ScriptedUpstream.start();
  const options = optionsOf(upstream, { workers, ...config });
  const gateway = await Instance.start(node === undefined ? options : { ...options, node });
  const end = async (): Promise<void> => {
    await gateway.kill();
    await upstream.close();
  };
  // The log comes on a way of its own.
  await until(
    () => workersOf(gateway).size === workers || gateway.log.includes('workers_unsupported'),
    'the log tells of all workers',
  ).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  return { gateway, upstream, end };
}

/** A price with a tier, which is more than rates on the way to a worker. */
const prices = {
  'up/*': { ...stormPrices['up/*'], service_tiers: { flex: { input: 0, output: 5 } } },
};

export function optionsOf(
  upstream: ScriptedUpstream,
  config: JsonObject,
): Parameters<typeof Instance.start>[0] {
  return { storage: 'sqlite', upstream: upstream.port, prices, config };
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

/**
 * An open connection that this worker has accepted. The kernel chooses the worker of a connection, so connections are
 * made until it chooses this one.
 */
export async function connectionTo(gateway: Instance, pid: number): Promise<Socket> {
  const { hostname, port } = new URL(gateway.url);
  for (;;) {
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    // An answer on a connection tells that a worker has it.
    await sleep(20);
    if (holds(pid, socket)) return socket;
    socket.destroy();
  }
}

/** Whether the process has accepted the connection. */
export function holds(pid: number, { localPort = 0, remotePort = 0 }: Socket): boolean {
  const [local, remote] = [remotePort, localPort].map(
    (port) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`,
  );
  const rows = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const inodes = rows
    .filter(
      (row) => row[1]?.endsWith(local ?? '') === true && row[2]?.endsWith(remote ?? '') === true,
    )
    .map((row) => `socket:[${row[9]}]`);
  const files = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  return files.some((name) => inodes.includes(name));
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
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
