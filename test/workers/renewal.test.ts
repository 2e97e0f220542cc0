/** All workers are replaced one after another, and no client notices (G14). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Instance } from '../cluster/instance.ts';
import { brokenness, scriptSlow, stream } from '../lifecycle/streams.ts';
import { send } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { until } from '../support/postgres-store.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { connectionTo, crewed, isAlive, noneLeft, optionsOf, rowsOf, workersOf } from './crew.ts';

test('G14 SIGUSR2 replaces the workers one after another: no call is refused or cut, none is lost', async (t) => {
  const { gateway, upstream } = await crewed(t, 2);
  const { key } = await gateway.makeKey({ budget: 1, per: 'ever' });
  await until(() => workersOf(gateway).size === 2, 'the log tells of both');
  const [first = 0, second = 0] = [1, 2].map((number) => workersOf(gateway).get(number));
  const gate = Promise.withResolvers<void>();
  scriptSlow(upstream, 'gated', () => gate.promise);
  scriptSlow(upstream, 'quick', () => Promise.resolve());
  let begun = 0;
  const onData = (): void => void (begun += 1);
  const sockets = await Promise.all([first, second].map((pid) => connectionTo(gateway, pid)));
  const long = sockets.map((socket) =>
    stream({ instance: gateway, key, dialect: 'chat', model: 'up/gated', onData, socket }),
  );
  await until(() => begun >= 2, 'both streams have begun');
  const renewed = { over: false };
  const troubles: string[] = [];
  const callers = [1, 2, 3, 4].map(async () => {
    let calls = 0;
    for (; !renewed.over; calls += 1) {
      const reply = await stream({ instance: gateway, key, dialect: 'chat', model: 'up/quick' });
      const trouble = brokenness('chat', reply);
      if (trouble !== undefined) troubles.push(trouble);
      if ((await gateway.ready()) !== 200) troubles.push('not ready');
    }
    return calls;
  });
  gateway.signal('SIGUSR2');
  await until(() => workersOf(gateway).get(1) !== first, 'another one has the place of the first');
  await sleep(500);
  assert.deepEqual([isAlive(first), workersOf(gateway).get(2)], [true, second], 'one by one');
  gate.resolve();
  await until(() => !isAlive(first) && !isAlive(second), 'both are gone');
  renewed.over = true;
  const calls = (await Promise.all(callers)).reduce((sum, count) => sum + count, 0);
  assert.deepEqual(troubles, []);
  for (const reply of long) assert.equal(brokenness('chat', await reply), undefined);
  await noneLeft(gateway);
  const outcomes = (await rowsOf(gateway)).map((row) => row['outcome']);
  assert.deepEqual(new Set(outcomes), new Set(['ok']));
  const metrics = await send(`${gateway.adminUrl}/metrics`, undefined, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  assert.match(metrics.text, /^model_gateway_worker_deaths_total 0$/m);
  assert.match(metrics.text, /^model_gateway_workers 2$/m);
  // Also what those that are gone had counted.
  const counts = metrics.text.matchAll(/^model_gateway_attempts_total\{[^}]*\} (\d+)$/gm);
  const counted = [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  assert.equal(counted, calls + long.length);
  assert.doesNotMatch(gateway.log, /worker_died|worker_stuck/);
  assert.equal(await gateway.stop(), 0);
});

test('G14 a stop while workers are replaced waits for the calls of all of them', async (t) => {
  const { gateway, upstream } = await crewed(t, 2);
  const { key } = await gateway.makeKey();
  await until(() => workersOf(gateway).size === 2, 'the log tells of both');
  const before = workersOf(gateway).get(1);
  const gate = Promise.withResolvers<void>();
  scriptSlow(upstream, 'gated', () => gate.promise);
  let begun = 0;
  const onData = (): void => void (begun += 1);
  const pids = [...workersOf(gateway).values()];
  const sockets = await Promise.all(pids.map((pid) => connectionTo(gateway, pid)));
  const long = sockets.map((socket) =>
    stream({ instance: gateway, key, dialect: 'chat', model: 'up/gated', onData, socket }),
  );
  await until(() => begun >= 2, 'both streams have begun');
  gateway.signal('SIGUSR2');
  await until(() => workersOf(gateway).get(1) !== before, 'another one has the place of the first');
  const stopped = gateway.stop();
  await sleep(500);
  gate.resolve();
  for (const reply of long) assert.equal(brokenness('chat', await reply), undefined);
  assert.equal(await stopped, 0);
});

test('SIGUSR2 ends no gateway without workers, and no worker that gets it', async (t) => {
  const upstream = await ScriptedUpstream.start();
  const alone = await Instance.start(optionsOf(upstream, { workers: 1 }));
  t.after(async () => {
    await alone.kill();
    await upstream.close();
  });
  alone.signal('SIGUSR2');
  await until(() => alone.log.includes('no_workers_to_replace'), 'it says why nothing follows');
  assert.equal(await alone.ready(), 200);
  const { gateway } = await crewed(t, 2);
  await until(() => workersOf(gateway).size === 2, 'the log tells of both');
  for (const pid of workersOf(gateway).values()) process.kill(pid, 'SIGUSR2');
  await sleep(500);
  assert.deepEqual([...workersOf(gateway).values()].map(isAlive), [true, true]);
});
