/** Workers that end by themselves while calls run on them, since something broke in them (F94). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Instance } from '../cluster/instance.ts';
import { brokenness, scriptSlow, stream } from '../lifecycle/streams.ts';
import { testsOf } from '../support/depth.ts';
import type { Reply } from '../support/http.ts';
import { until } from '../support/postgres-store.ts';
import { accepts, connectionTo, crewed, isAlive, noneLeft, rowsOf, workersOf } from './crew.ts';

/** In each process: an exception that nobody catches, whenever it is told to. */
const breaking = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`process.on('SIGUSR2', () => { throw new Error('a bug'); });`)}`,
];

interface Stage {
  readonly gateway: Instance;
  readonly pids: readonly [number, number];
  readonly replies: readonly Promise<Reply>[];
  open(): void;
}

/** Two workers, a stream on each. */
async function staged(t: Parameters<typeof crewed>[0]): Promise<Stage> {
  const { gateway, upstream } = await crewed(t, 2, {}, breaking);
  const { key } = await gateway.makeKey();
  const gate = Promise.withResolvers<void>();
  scriptSlow(upstream, 'gated', () => gate.promise);
  await until(() => workersOf(gateway).size === 2, 'the log tells of both');
  const pids = workersOf(gateway);
  const sockets = await Promise.all([...pids.values()].map((pid) => connectionTo(gateway, pid)));
  let begun = 0;
  const replies = sockets.map((socket) => {
    const onData = (): void => void (begun += 1);
    return stream({ instance: gateway, key, dialect: 'chat', model: 'up/gated', onData, socket });
  });
  await until(() => begun >= 2, 'both streams have begun');
  return {
    gateway,
    pids: [pids.get(1) ?? 0, pids.get(2) ?? 0],
    replies,
    open: () => gate.resolve(),
  };
}

/** Processes that the gateway started and that run. */
function childrenOf({ pid }: Instance): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text
    .split(' ')
    .filter((word) => word !== '')
    .map(Number)
    .filter(isAlive);
}

testsOf(true)(
  'F94 a bug in a worker: its stream ends whole, then another worker has its place alone',
  async (t) => {
    const { gateway, pids, replies, open } = await staged(t);
    const [broken] = pids;
    process.kill(broken, 'SIGUSR2');
    await until(() => workersOf(gateway).get(1) !== broken, 'another worker serves');
    assert.equal(isAlive(broken), true);
    open();
    for (const reply of replies) assert.equal(brokenness('chat', await reply), undefined);
    await until(() => !isAlive(broken), 'it is gone');
    assert.equal(childrenOf(gateway).length, 2);
    await noneLeft(gateway);
    assert.deepEqual(outcomesOf(await rowsOf(gateway)), ['ok', 'ok']);
    assert.equal(await gateway.stop(), 0);
  },
);

testsOf(false)(
  'F94 a worker that breaks again while it leaves is replaced once, and ends its stream with an error',
  async (t) => {
    const { gateway, pids, replies, open } = await staged(t);
    const [broken, other] = pids;
    process.kill(broken, 'SIGUSR2');
    await until(() => workersOf(gateway).get(1) !== broken, 'another worker serves');
    process.kill(broken, 'SIGUSR2');
    await until(() => !isAlive(broken), 'it is gone');
    // A second one in its place would be here within this time.
    await sleep(1000);
    const now = [other, workersOf(gateway).get(1) ?? 0].toSorted((a, b) => a - b);
    assert.deepEqual(
      childrenOf(gateway).toSorted((a, b) => a - b),
      now,
    );
    open();
    const ended = await Promise.all(replies);
    assert.equal(ended.filter((reply) => brokenness('chat', reply) === undefined).length, 1);
    const cut = ended.find((reply) => brokenness('chat', reply) !== undefined);
    assert.match(cut?.text ?? '', /"code":"shutting_down"/);
    await noneLeft(gateway);
    assert.equal(await gateway.stop(), 0);
  },
);

testsOf(false)(
  'G14 F94 a stop while a worker leaves waits for the calls of that one, too',
  async (t) => {
    const { gateway, pids, replies, open } = await staged(t);
    const [broken] = pids;
    process.kill(broken, 'SIGUSR2');
    await until(() => workersOf(gateway).get(1) !== broken, 'another worker serves');
    const stopped = gateway.stop();
    await until(async () => !(await accepts(gateway.url)), 'no more connections are taken');
    await sleep(500);
    open();
    for (const reply of replies) assert.equal(brokenness('chat', await reply), undefined);
    assert.equal(await stopped, 0);
  },
);

function outcomesOf(rows: Awaited<ReturnType<typeof rowsOf>>): readonly string[] {
  return rows.map((row) => String(row['outcome'])).toSorted();
}
