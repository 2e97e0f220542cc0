import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { defaultWaitMs, Drain, type DrainTimes } from '../../../src/http/drain.ts';

interface Scene {
  readonly server: Server;
  readonly drain: Drain;
  /** Moves the clock. */
  pass(ms: number): void;
}

async function scene(t: TestContext, times: Partial<DrainTimes> = {}): Promise<Scene> {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  let now = 1000;
  const drain = new Drain({
    server,
    clock: { now: () => now, wall: () => now },
    times: () => ({ waitMs: undefined, limitMs: 120_000, ...times }),
    calls: { shutDown: () => undefined, readingOn: 0 },
  });
  return { server, drain, pass: (ms) => (now += ms) };
}

test('G14: nobody who asks for readiness, no wait', async (t) => {
  const { server, drain } = await scene(t);
  const ended = drain.run({ announced: true });
  assert.equal(drain.begun, true);
  await ended;
  assert.equal(server.listening, false);
});

test('G14: whoever asks for readiness gets five seconds to notice', async (t) => {
  const { server, drain, pass } = await scene(t);
  drain.probed();
  pass(60_000);
  const ended = drain.run({ announced: true });
  assert.equal(server.listening, true);
  t.mock.timers.tick(defaultWaitMs - 1);
  await Promise.resolve();
  assert.equal(server.listening, true);
  t.mock.timers.tick(1);
  await ended;
  assert.equal(server.listening, false);
});

test('G14: one look at /readyz long ago is no balancer', async (t) => {
  const { server, drain, pass } = await scene(t);
  drain.probed();
  pass(60_001);
  await drain.run({ announced: true });
  assert.equal(server.listening, false);
});

test('G14: drain.wait holds whoever asks; 0s never waits', async (t) => {
  const { server, drain } = await scene(t, { waitMs: 7000 });
  const ended = drain.run({ announced: true });
  t.mock.timers.tick(6999);
  await Promise.resolve();
  assert.equal(server.listening, true);
  t.mock.timers.tick(1);
  await ended;

  const none = await sceneWithoutTimers(t, { waitMs: 0 });
  none.drain.probed();
  await none.drain.run({ announced: true });
  assert.equal(none.server.listening, false);
});

test('G14: a stop that nobody announced does not wait', async (t) => {
  const { server, drain } = await scene(t, { waitMs: 7000 });
  drain.probed();
  await drain.run({ announced: false });
  assert.equal(server.listening, false);
});

test('G14: a cut ends the wait', async (t) => {
  const { server, drain } = await scene(t, { waitMs: 7000 });
  const ended = drain.run({ announced: true });
  assert.equal(server.listening, true);
  drain.cut();
  await ended;
  assert.equal(server.listening, false);
});

/** A client whose connection is in the accept queue. */
async function client({ server }: Scene, t: TestContext): Promise<Socket> {
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  const socket = connect(address.port, '127.0.0.1').on('error', () => undefined);
  t.after(() => socket.destroy());
  // Node calls the system in the next tick.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  return socket;
}

test(
  'G14: a cut ends the drain of an accept queue to which connections keep coming',
  { timeout: 60_000 },
  async (t) => {
    const stage = await scene(t);
    let accepted = 0;
    stage.server.on('connection', () => {
      accepted += 1;
      if (accepted === 1) stage.drain.cut();
      void client(stage, t);
    });
    for (let i = 0; i < 30; i += 1) await client(stage, t);
    await stage.drain.run({ announced: false });
    assert.ok(accepted >= 1 && accepted < 10, `${accepted} connections`);
  },
);

test(
  'G14: a cut before the gateway stops listening also ends the calls that come after it',
  { timeout: 60_000 },
  async (t) => {
    const stage = await scene(t);
    stage.drain.cut();
    // The connections of the cut are closed in this turn.
    await turn();
    const requested = once(stage.server, 'request');
    (await client(stage, t)).write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    await requested;
    await stage.drain.run({ announced: false });
    assert.equal(stage.server.listening, false);
  },
);

test('G14: a replaced process leaves the accept queue to its replacement', async (t) => {
  const stage = await scene(t);
  let accepted = 0;
  stage.server.on('connection', () => (accepted += 1));
  for (let i = 0; i < 5; i += 1) await client(stage, t);
  await stage.drain.run({ announced: false, alone: true, replaced: true });
  assert.equal(accepted, 0);
});

function sceneWithoutTimers(t: TestContext, times: Partial<DrainTimes>): Promise<Scene> {
  t.mock.timers.reset();
  return scene(t, times);
}
