/** Workers whose parent's disk is full, or that have no descriptors left (F85, F92). */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Instance } from '../cluster/instance.ts';
import { brokenness, scriptSlow, stream } from '../lifecycle/streams.ts';
import type { Reply } from '../support/http.ts';
import { until } from '../support/postgres-store.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import type { ScriptedUpstream } from '../upstream/scripted.ts';
import { connectionTo, crewed, noneLeft, rowsOf, workersOf } from './crew.ts';

const timeout = 500_000;

interface Stage {
  readonly gateway: Instance;
  readonly upstream: ScriptedUpstream;
  readonly key: string;
}

async function staged(t: TestContext): Promise<Stage> {
  const { gateway, upstream } = await crewed(t, 2);
  const { key } = await gateway.makeKey();
  scriptSlow(upstream, 'quick', () => Promise.resolve());
  await until(() => workersOf(gateway).size === 2, 'the log tells of both');
  return { gateway, upstream, key };
}

/** A stream of each dialect on each worker; they go on when the gate opens. */
async function begin(stage: Stage, gate: Promise<void>): Promise<() => Promise<void>> {
  const { gateway: instance, upstream, key } = stage;
  scriptSlow(upstream, 'gated', () => gate);
  const begun = new Set<number>();
  const workers = [...workersOf(instance).values()];
  const all = workers.flatMap((pid) => clientDialects.map((dialect) => ({ pid, dialect })));
  const sockets = await Promise.all(all.map(({ pid }) => connectionTo(instance, pid)));
  const replies = all.map(({ dialect }, i) => {
    const onData = (): void => void begun.add(i);
    const socket = sockets[i];
    return stream({
      instance,
      key,
      dialect,
      model: 'up/gated',
      onData,
      ...(socket === undefined ? {} : { socket }),
    });
  });
  await until(() => begun.size === all.length, 'the streams have begun');
  return async () => {
    for (const [i, reply] of replies.entries()) {
      assert.equal(brokenness(all[i]?.dialect ?? 'chat', await reply), undefined);
    }
  };
}

function quick({ gateway: instance, key }: Stage, dialect: ClientDialect): Promise<Reply> {
  return stream({ instance, key, dialect, model: 'up/quick' });
}

function assertRefused(
  dialect: ClientDialect,
  code: string,
  { status, text, headers }: Reply,
): void {
  assert.equal(status, dialect === 'messages' ? 529 : 503, text);
  assert.ok(text.includes(dialect === 'messages' ? '"overloaded_error"' : `"${code}"`), text);
  assert.ok(Number(headers['retry-after']) >= 1);
}

function limit(pid: number, what: string): void {
  execFileSync('prlimit', ['--pid', String(pid), `--${what}`]);
}

test(
  'F85 no file may grow: both workers refuse, running streams end well, all rows are written in the end',
  { timeout },
  async (t) => {
    const stage = await staged(t);
    const { gateway } = stage;
    const gate = Promise.withResolvers<void>();
    const ended = await begin(stage, gate.promise);
    limit(gateway.pid, 'fsize=4096:unlimited');
    // Its row cannot be written; calls are taken until that has lasted for five seconds.
    assert.equal((await quick(stage, 'chat')).status, 200);
    await until(async () => {
      const all = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(() => gateway.ready()));
      return all.every((status) => status === 503);
    }, 'both say that they are not ready');
    for (const dialect of [...clientDialects, ...clientDialects]) {
      assertRefused(dialect, 'store_unavailable', await quick(stage, dialect));
    }
    const status = await gateway.admin('GET', '/api/status');
    const { ready, store_up: up } = status.json;
    assert.deepEqual([status.status, ready, up], [200, false, false]);
    // Of the writes of the workers: the parent has no rows of its own.
    assert.match(String(status.json['store_reason']), /gateway\.db/);
    gate.resolve();
    await ended();
    limit(gateway.pid, 'fsize=unlimited');
    await until(async () => (await quick(stage, 'chat')).status === 200, 'it serves again');
    // The other worker finds it out by itself, with its next try.
    await until(async () => {
      const { json } = await gateway.admin('GET', '/api/status');
      const { ready: again, store_up: upAgain, store_reason: reason } = json;
      return again === true && upAgain === true && reason === null;
    }, 'both can write again, and the status says so');
    await noneLeft(gateway);
    const rows = await rowsOf(gateway);
    assert.equal(
      rows.filter((row) => row['model'] === 'up/gated' && row['outcome'] === 'ok').length,
      2 * clientDialects.length,
    );
    assert.equal(rows.filter((row) => row['outcome'] !== 'ok').length, 0);
    assert.equal(await gateway.stop(), 0);
  },
);

/** The lowest number of a descriptor that the process does not use: with a limit of one more, it gets only that. */
function firstFreeDescriptor(pid: number): number {
  const used = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let free = 0;
  while (used.has(free)) free += 1;
  return free;
}

/** Leaves each process so many descriptors while `during` runs. */
async function short<T>(
  pids: readonly number[],
  left: number,
  during: () => Promise<T>,
): Promise<T> {
  const [first = 0] = pids;
  const before = /^Max open files\s+(\d+)/m.exec(
    readFileSync(`/proc/${first}/limits`, 'utf8'),
  )?.[1];
  for (const pid of pids) limit(pid, `nofile=${firstFreeDescriptor(pid) + left}:`);
  try {
    return await during();
  } finally {
    for (const pid of pids) limit(pid, `nofile=${before}:`);
  }
}

test(
  'F92 workers without file descriptors refuse as overload, running streams continue, and they recover',
  { timeout },
  async (t) => {
    const stage = await staged(t);
    const { gateway } = stage;
    const gate = Promise.withResolvers<void>();
    const ended = await begin(stage, gate.promise);
    const pids = [...workersOf(gateway).values()];
    for (const dialect of clientDialects) {
      // One for the client's connection, none for the upstream's, which keeps none.
      await until(async () => {
        const reply = await short(pids, 1, () =>
          Promise.race([
            quick(stage, dialect).catch(() => undefined),
            // Who got the last one before the call waits for more, and so would the test.
            sleep(10_000, undefined, { ref: false }),
          ]),
        );
        if (reply === undefined || reply.status === 200) return false;
        assertRefused(dialect, 'server_is_overloaded', reply);
        return true;
      }, 'they have no descriptor left');
    }
    for (let i = 0; i < 8; i += 1) {
      assert.equal(brokenness('chat', await quick(stage, 'chat')), undefined);
    }
    gate.resolve();
    await ended();
    assert.deepEqual([...workersOf(gateway).values()], pids, gateway.log);
    assert.equal(await gateway.stop(), 0);
  },
);

for (const who of ['the workers', 'the parent', 'any of them'] as const) {
  test(
    `F92 ${who} without a single descriptor: no process dies, and calls are served when there are some`,
    { timeout },
    async (t) => {
      const stage = await staged(t);
      const { gateway } = stage;
      const gate = Promise.withResolvers<void>();
      const ended = await begin(stage, gate.promise);
      const workers = [...workersOf(gateway).values()];
      const parent = who === 'the workers' ? [] : [gateway.pid];
      const pids = who === 'the parent' ? parent : [...workers, ...parent];
      const waiting = await short(pids, 0, async () => {
        const callers = clientDialects.map((dialect) =>
          quick(stage, dialect).catch(() => undefined),
        );
        // Each process looks at its load meanwhile, which opens a file.
        await sleep(1000);
        return { callers };
      });
      for (const [i, caller] of waiting.callers.entries()) {
        const reply = await caller;
        // A process without a descriptor left for a connection closes it (libuv).
        if (who === 'the parent') assert.ok(reply !== undefined);
        if (reply !== undefined)
          assert.equal(brokenness(clientDialects[i] ?? 'chat', reply), undefined);
      }
      for (let i = 0; i < 8; i += 1) {
        assert.equal(brokenness('chat', await quick(stage, 'chat')), undefined);
      }
      gate.resolve();
      await ended();
      assert.deepEqual([...workersOf(gateway).values()], workers, gateway.log);
      assert.equal(await gateway.stop(), 0);
    },
  );
}
