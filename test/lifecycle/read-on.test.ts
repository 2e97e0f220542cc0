/** F73: a stream whose client left is read on for a minute and no longer, by a process whose time the test moves on. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { Instance } from '../cluster/instance.ts';
import { begun, legalFrames } from '../faults/stream-pieces.ts';
import { until } from '../support/postgres-store.ts';
import { ScriptedUpstream, type Script } from '../upstream/scripted.ts';

/** Moves the monotonic clock of the process on, and nothing else, by message. */
const hurrying = `const real = performance.now.bind(performance); let ahead = 0;
  performance.now = () => real() + ahead;
  process.on('message', (text) => { ahead += Number(text) * 1000; process.send(text); });
  process.channel.unref();`;

let upstream: ScriptedUpstream;
let gateway: Instance;
before(async () => {
  upstream = await ScriptedUpstream.start();
  const base_url = `http://127.0.0.1:${upstream.port}/v1`;
  const up = { dialect: 'openai-chat', base_url, api_key: 'k', on_abort: 'drain' };
  gateway = await Instance.start({
    storage: 'sqlite',
    upstream: upstream.port,
    node: ['--import', `data:text/javascript,${encodeURIComponent(hurrying)}`],
    // Nothing else ends a stream that is silent for so long.
    config: { providers: { up: { ...up, timeouts: { idle: '1h', total: '1h' } } } },
  });
});
after(async () => {
  await gateway.kill();
  await upstream.close();
});

async function passSeconds(seconds: number): Promise<void> {
  assert.equal(await gateway.ask(String(seconds)), String(seconds));
}

/** Resolves when the gateway knows that the client of a stream that never ends has left. */
async function leave(key: string, model: string): Promise<Script> {
  const script = upstream.script(model, { body: [begun('chat')], ending: 'hang' });
  const ask = { stream: true, max_tokens: 100 };
  // A write that was under way when the time moved on seems to last that long: calls are refused until it has ended.
  await until(async () => {
    const left = new AbortController();
    const sending = { signal: left.signal, onData: (): void => left.abort() };
    await gateway.chat(key, { ...ask, model: `up/${model}` }, sending).catch(() => {});
    return script.requests.length > 0;
  }, 'its stream has begun');
  // The key has one place, which is free from then on.
  const next = { ...ask, model: 'up/short' };
  await until(async () => (await gateway.chat(key, next)).status === 200, 'its client has left');
  return script;
}

/** Waits until so many run; what has ended by then, the short ones left out. */
async function runs(count: number): Promise<readonly string[]> {
  await until(async () => {
    const status = await gateway.admin('GET', '/api/status');
    return status.json['live_calls'] === count;
  }, `${count} run`);
  const { calls } = (await gateway.admin('GET', '/api/calls?limit=500')).json;
  const rows: readonly JsonObject[] = Array.isArray(calls) ? calls.filter(isObject) : [];
  const long = rows.filter(({ model }) => model !== 'up/short');
  const ends = long.map(
    ({ model, outcome, usage_source: source }) =>
      `${String(model)} ${String(outcome)} ${String(source)}`,
  );
  return ends.toSorted();
}

const timeout = 500_000;

test(
  'F73 a stream that is read on without its client is closed after a minute',
  { timeout },
  async () => {
    upstream.script('short', { body: legalFrames('chat').join('') });
    const { key } = await gateway.makeKey({ concurrent: 1 });
    const first = await leave(key, 'first');
    await passSeconds(30);
    const second = await leave(key, 'second');
    assert.deepEqual(await runs(2), []);
    await passSeconds(31);
    assert.equal(await (await first.request(0)).closed, 'gateway');
    assert.deepEqual(await runs(1), ['up/first canceled estimated']);
    await passSeconds(31);
    assert.equal(await (await second.request(0)).closed, 'gateway');
    const both = ['up/first canceled estimated', 'up/second canceled estimated'];
    assert.deepEqual(await runs(0), both);
  },
);
