/** Worker processes of one gateway: one address, one set of keys, one config, and what becomes of the dead. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { Instance } from '../cluster/instance.ts';
import { send, type Reply, type Sending } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { whenLoaded } from '../support/loaded.ts';
import { until } from '../support/postgres-store.ts';
import { Scrape } from '../support/scrape.ts';
import { chatChunk, chatFrame, chatFrames } from '../upstream/chat.ts';
import {
  accepts,
  connectionTo,
  crewed,
  type Crewed,
  holds,
  isAlive,
  killWorker,
  noneLeft,
  optionsOf,
  rowsOf,
  startCrew,
  workersOf,
} from './crew.ts';

const usage = { prompt_tokens: 10, completion_tokens: 5 };
const text = chatFrames({ text: 'Good day.', usage }).join('');
const begun = chatFrame(chatChunk({ role: 'assistant', content: 'Good' }));

/** Two calls on each worker. */
async function several(
  gateway: Instance,
  call: (sending: Sending) => Promise<Reply>,
): Promise<readonly Reply[]> {
  const pids = [...workersOf(gateway).values()];
  const sockets = await Promise.all([...pids, ...pids].map((pid) => connectionTo(gateway, pid)));
  return Promise.all(sockets.map((socket) => call({ socket })));
}

function statuses(replies: readonly Reply[]): readonly number[] {
  return [...new Set(replies.map(({ status }) => status))];
}

// A start of several processes takes seconds of CPU: tests share one gateway, and the last of them ends it.
describe('two workers', () => {
  let crew: Crewed;
  before(async () => {
    crew = await startCrew(2);
  });
  after(() => crew.end());

  test('new connections are spread over the workers', async (t) => {
    const { gateway } = crew;
    await until(() => workersOf(gateway).size === 2, 'the log tells of both');
    const { hostname, port } = new URL(gateway.url);
    const pids = [...workersOf(gateway).values()];
    const sockets = await Promise.all(
      Array.from({ length: 64 }, async () => {
        const socket = connect(Number(port), hostname);
        t.after(() => socket.destroy());
        socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
        await once(socket, 'data');
        return socket;
      }),
    );
    const taken = pids.map((pid) => sockets.filter((socket) => holds(pid, socket)).length);
    assert.equal(
      taken.reduce((sum, count) => sum + count, 0),
      64,
    );
    // Each connection goes to either by a hash: fewer than eight of 64 for one come once in 10^10 runs.
    assert.ok(Math.min(...taken) >= 8, `${taken.join(' and ')} connections`);
  });

  test('a port on which workers listen is refused to a second gateway of the same user', async () => {
    const { gateway, upstream } = crew;
    for (const workers of [1, 2]) {
      const port = Number(new URL(gateway.url).port);
      await assert.rejects(
        Instance.start({ ...optionsOf(upstream, { workers }), listen: `127.0.0.1:${port}` }),
        /EADDRINUSE|in use/,
      );
    }
    assert.equal(await gateway.ready(), 200);
  });

  test('the embedded engine runs once, and answers on all workers', async () => {
    const { gateway } = crew;
    const { key } = await gateway.makeKey();
    const ask = { model: 'local/tiny', max_tokens: 4 };
    const replies = await several(gateway, (sending) =>
      whenLoaded(() => gateway.chat(key, ask, sending)),
    );
    assert.deepEqual(statuses(replies), [200]);
    const engines = (): number => gateway.log.split('"event":"engine_ready"').length - 1;
    await until(() => engines() > 0, 'the log tells of it');
    assert.equal(engines(), 1);
  });

  test('F81 a worker that is killed: its call is recorded, those of the others continue, another one serves', async () => {
    const { gateway, upstream } = crew;
    const { key } = await gateway.makeKey({ budget: 1, per: 'ever', concurrent: 2 });
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    upstream.script('long', { body: [begun, gate, text], framing: 'chunked' });
    upstream.script('short', { body: text });
    await until(() => workersOf(gateway).size === 2, 'both workers are known');
    const streams = await Promise.all(
      [...workersOf(gateway).values()].map(async (pid) => {
        const socket = await connectionTo(gateway, pid);
        return {
          reply: gateway.chat(key, { model: 'up/long', stream: true, max_tokens: 9 }, { socket }),
        };
      }),
    );
    await until(
      async () => (await gateway.admin('GET', '/api/status')).json['live_calls'] === 2,
      'both run',
    );
    // Both of its places are taken.
    assert.equal((await gateway.chat(key, { model: 'up/short', stream: true })).status, 429);
    await killWorker(gateway, 1);
    assert.match(gateway.log, /"event":"worker_died","worker":1/);
    // The dead one's place is free, while the other call goes on.
    await until(
      async () => (await gateway.chat(key, { model: 'up/short', stream: true })).status === 200,
      'its place is free',
    );
    open();
    const ended = await Promise.allSettled(streams.map(({ reply }) => reply));
    const whole = ended.filter(
      (each) => each.status === 'fulfilled' && each.value.complete && each.value.status === 200,
    );
    assert.equal(whole.length, 1);
    await noneLeft(gateway);
    const rows = (await rowsOf(gateway)).filter((row) => row['model'] === 'up/long');
    const outcomes = rows.map(
      (row) => `${String(row['outcome'])} ${String(row['error'])} ${String(row['usage_source'])}`,
    );
    assert.deepEqual(outcomes.sort(), ['failed interrupted estimated', 'ok null reported']);
    const metrics = await send(`${gateway.adminUrl}/metrics`, undefined, {
      headers: { authorization: `Bearer ${adminToken}` },
    });
    assert.match(metrics.text, /^model_gateway_worker_deaths_total 1$/m);
    assert.match(metrics.text, /^model_gateway_workers 2$/m);
  });

  test('no counter falls when a worker dies, also not one that dies during a scrape', async () => {
    const { gateway, upstream } = crew;
    const { id, key } = await gateway.makeKey();
    upstream.script('counted', { body: text });
    const counted = await several(gateway, (sending) =>
      gateway.chat(key, { model: 'up/counted', stream: true }, sending),
    );
    assert.deepEqual(statuses(counted), [200]);
    await noneLeft(gateway);
    const scrape = async (): Promise<Scrape> =>
      new Scrape((await gateway.admin('GET', '/metrics')).text);
    const before = await scrape();
    const workers = workersOf(gateway);
    const [first = 0, second = 0] = [1, 2].map((number) => workers.get(number));
    for (const pid of [first, second]) process.kill(pid, 'SIGSTOP');
    const during = scrape();
    // The scrape came first, and waits for both now.
    await gateway.admin('GET', '/api/keys');
    process.kill(second, 'SIGKILL');
    await until(() => workersOf(gateway).get(2) !== second, 'the parent knows of its death');
    process.kill(first, 'SIGCONT');
    const scrapes = [before, await during, await scrape()];
    for (const [i, later] of scrapes.entries()) {
      const falling = scrapes[i - 1]?.samples.filter(
        ({ name, labels, value }) =>
          /_(?:total|count|sum|bucket)$/.test(name) && later.sum(name, labels) < value,
      );
      assert.deepEqual(falling ?? [], []);
    }
    assert.equal(scrapes[2]?.sum('model_gateway_key_calls_total', { key: id }), 4);
    await until(() => workersOf(gateway).size === 2, 'another worker has its place');
  });

  test('G14 SIGTERM: running calls end whole, the exit code is 0, and no worker is left', async () => {
    const { gateway, upstream } = crew;
    const { key } = await gateway.makeKey({ budget: 1, per: 'ever' });
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    upstream.script('long', { body: [begun, gate, text], framing: 'chunked' });
    const streams = [1, 2, 3, 4].map(() =>
      gateway.chat(key, { model: 'up/long', stream: true, max_tokens: 9 }),
    );
    await until(
      async () => (await gateway.admin('GET', '/api/status')).json['live_calls'] === 4,
      'all run',
    );
    await until(() => workersOf(gateway).size === 2, 'the log tells of both');
    const pids = [...workersOf(gateway).values()];
    const stopped = gateway.stop();
    await until(async () => !(await accepts(gateway.url)), 'no more connections are taken');
    open();
    for (const reply of await Promise.all(streams)) {
      assert.deepEqual([reply.status, reply.complete], [200, true]);
      assert.match(reply.text, /\[DONE\]/);
    }
    assert.equal(await stopped, 0);
    assert.deepEqual(pids.map(isAlive), [false, false]);
  });
});

describe('three workers', () => {
  let crew: Crewed;
  before(async () => {
    crew = await startCrew(3);
  });
  after(() => crew.end());

  test('S6 a key works and stops to work on all workers when the admin API says so', async () => {
    const { gateway, upstream } = crew;
    upstream.script('short', { body: text });
    upstream.script('endless', { body: [begun], ending: 'hang' });
    const { id, key } = await gateway.makeKey();
    const call = (sending: Sending): Promise<Reply> =>
      gateway.chat(key, { model: 'up/short', stream: true }, sending);
    assert.deepEqual(statuses(await several(gateway, call)), [200]);
    const running = gateway.chat(key, { model: 'up/endless', stream: true });
    await until(
      async () => (await gateway.admin('GET', '/api/status')).json['live_calls'] === 1,
      'it runs',
    );
    const limited = await gateway.admin('PATCH', `/api/keys/${id}`, { endpoints: ['messages'] });
    assert.equal(limited.status, 200, limited.text);
    assert.deepEqual(statuses(await several(gateway, call)), [403]);
    assert.equal((await gateway.admin('POST', `/api/keys/${id}/revoke`)).status, 200);
    assert.deepEqual(statuses(await several(gateway, call)), [401]);
    assert.match((await running).text, /"error"/);
    const shown = await gateway.admin('GET', `/api/keys/${id}`);
    assert.equal(shown.json['state'], 'revoked');
  });

  test('E17 an Idempotency-Key holds on all workers', async () => {
    const { gateway, upstream } = crew;
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const asked = upstream.script('once', { body: [begun, gate, text], framing: 'chunked' });
    const { key } = await gateway.makeKey({ budget: 1, per: 'ever' });
    const body = {
      model: 'up/once',
      stream: true,
      max_tokens: 9,
      messages: [{ role: 'user', content: 'hi' }],
    };
    const headers = { authorization: `Bearer ${key}`, 'idempotency-key': 'order-1' };
    const call = (sending: Sending): Promise<Reply> =>
      send(`${gateway.url}/v1/chat/completions`, body, { headers, ...sending });
    const first = call({});
    await until(() => asked.requests.length === 1, 'the first one is asked for');
    assert.deepEqual(statuses(await several(gateway, call)), [409]);
    open();
    assert.equal((await first).status, 200);
    const again = await several(gateway, call);
    assert.deepEqual(statuses(again), [200]);
    for (const reply of again) assert.equal(reply.headers['idempotent-replayed'], 'true');
    assert.equal(asked.requests.length, 1);
  });

  test('L4 an edit of the config is applied by all workers, or by none', async () => {
    const { gateway, upstream } = crew;
    upstream.script('short', { body: text });
    const { key } = await gateway.makeKey();
    const call = (sending: Sending): Promise<Reply> =>
      gateway.chat(key, { model: 'fast', stream: true }, sending);
    assert.deepEqual(statuses(await several(gateway, call)), [404]);
    const file = join(gateway.directory, 'gateway.yaml');
    const base_url = `http://127.0.0.1:${upstream.port}/v1`;
    const config = {
      workers: 3,
      storage: 'sqlite',
      providers: { up: { dialect: 'openai-chat', base_url, api_key: 'another-key' } },
    };
    // As a whole: what was emptied to be written is a config as well.
    writeFileSync(`${file}.new`, JSON.stringify({ ...config, models: { fast: 'up/short' } }));
    renameSync(`${file}.new`, file);
    await until(() => gateway.log.includes('config_applied'), 'the edit was seen');
    assert.deepEqual(statuses(await several(gateway, call)), [200]);
    writeFileSync(file, JSON.stringify({ ...config, models: { fast: 'nobody/short' } }));
    const refused = await gateway.admin('POST', '/api/reload');
    assert.equal(refused.status, 422, refused.text);
    assert.deepEqual(statuses(await several(gateway, call)), [200]);
    // Who takes the place of a dead one has what holds, and not what stands in the file.
    await killWorker(gateway, 2);
    assert.deepEqual(statuses(await several(gateway, call)), [200]);
  });
});

test('B73 refused keys of an address are counted on all workers together', async (t) => {
  const { gateway } = await crewed(t, 3, { limits: { bad_keys: 20 } });
  const startedAt = performance.now();
  const seen: number[] = [];
  for (let i = 0; i < 60; i++) {
    seen.push((await gateway.chat('gw_00000000_no-such-key', { model: 'up/x' })).status);
  }
  // One comes back every three seconds. A worker hears of the refusals of the others a moment later; each counting for itself
  // would let all 60 through.
  const most = 30 + Math.ceil((performance.now() - startedAt) / 3000);
  const looked = seen.filter((status) => status === 401).length;
  assert.ok(looked >= 20 && looked <= most, String(looked));
  assert.equal(seen.filter((status) => status === 429).length, 60 - looked);
});

test('G14 a second SIGTERM ends what runs on all workers at once', async (t) => {
  const { gateway, upstream } = await crewed(t, 2);
  const { key } = await gateway.makeKey();
  upstream.script('endless', { body: [begun], ending: 'hang' });
  const streams = [1, 2].map(() => gateway.chat(key, { model: 'up/endless', stream: true }));
  await until(
    async () => (await gateway.admin('GET', '/api/status')).json['live_calls'] === 2,
    'both run',
  );
  const stopped = gateway.stop();
  await until(async () => !(await accepts(gateway.url)), 'no more connections are taken');
  gateway.signal('SIGTERM');
  for (const reply of await Promise.all(streams)) assert.match(reply.text, /shutting_down/);
  assert.equal(await stopped, 0);
});

test('F81 a parent that is killed takes its workers with it; the next start settles their calls', async (t) => {
  const { gateway, upstream } = await crewed(t, 2);
  const { key } = await gateway.makeKey({ budget: 1, per: 'ever' });
  upstream.script('endless', { body: [begun], ending: 'hang' });
  const cut = [1, 2].map(() =>
    gateway.chat(key, { model: 'up/endless', stream: true, max_tokens: 9 }).catch(() => undefined),
  );
  await until(
    async () => (await gateway.admin('GET', '/api/status')).json['live_calls'] === 2,
    'both run',
  );
  await until(() => noted(gateway) === 2, 'both are noted');
  await until(() => workersOf(gateway).size === 2, 'the log tells of both');
  const pids = [...workersOf(gateway).values()];
  await gateway.kill();
  await until(() => pids.every((pid) => !isAlive(pid)), 'the workers are gone');
  for (const reply of await Promise.all(cut)) assert.notEqual(reply?.complete, true);
  const next = await Instance.start({
    ...optionsOf(upstream, { workers: 2 }),
    directory: gateway.directory,
  });
  t.after(() => next.kill());
  const rows = await rowsOf(next);
  assert.deepEqual(
    rows.map((row) => `${String(row['outcome'])} ${String(row['error'])}`),
    ['failed interrupted', 'failed interrupted'],
  );
});

/** Running calls that are on the disk. */
function noted({ directory }: Instance): number {
  const db = new DatabaseSync(join(directory, 'data', 'gateway.db'), {
    readOnly: true,
    // Its writer may be at work in just this moment.
    timeout: 60_000,
  });
  try {
    return Number(db.prepare('SELECT count(*) AS n FROM open_calls').get()?.['n']);
  } finally {
    db.close();
  }
}
