/** G17: a gateway process whose wall clock jumps by an hour and by a day, there and back, under calls. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isObject } from '../../src/json/value.ts';
import { Instance } from '../cluster/instance.ts';
import { until } from '../support/postgres-store.ts';
import { chatFrames } from '../upstream/chat.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { brokenness, scriptSlow, stream } from './streams.ts';

const hour = 3_600_000;
const day = 24 * hour;

/** Sets the wall clock of the process, and of nothing else, by message. */
const jumping = `const real = Date.now; let ahead = 0; Date.now = () => real() + ahead;
  process.on('message', (text) => { ahead = Number(text); process.send(ahead); });
  process.channel.unref();`;

let upstream: ScriptedUpstream;
let gateway: Instance;
before(async () => {
  upstream = await ScriptedUpstream.start();
  gateway = await Instance.start({
    storage: 'sqlite',
    upstream: upstream.port,
    node: ['--import', `data:text/javascript,${encodeURIComponent(jumping)}`],
    prices: { 'up/*': { input: 0, output: 1000 } },
    config: {
      models: { impatient: { targets: ['up/mute'], timeouts: { first_event: '400ms' } } },
    },
  });
});
after(async () => {
  await gateway.kill();
  await upstream.close();
});

async function jumpTo(ahead: number): Promise<void> {
  assert.equal(await gateway.ask(String(ahead)), ahead);
}

const jumps = [hour, -hour, day, -day, 30 * day, -30 * day, 0];

test('G17 F90 running streams, timeouts and durations do not notice', async () => {
  const { key } = await gateway.makeKey();
  const gate = Promise.withResolvers<void>();
  scriptSlow(upstream, 'slow', () => gate.promise);
  upstream.script('mute', { body: [], mute: true, ending: 'hang' });
  let begun = false;
  const onData = (): void => void (begun = true);
  const call = { instance: gateway, key, dialect: 'chat', model: 'up/slow', onData } as const;
  const running = stream(call);
  await until(() => begun, 'the stream has begun');
  for (const ahead of jumps) {
    await jumpTo(ahead);
    const late = await gateway.chat(key, { model: 'impatient', stream: true });
    assert.equal(late.status, 504, late.text);
  }
  gate.resolve();
  assert.equal(brokenness('chat', await running), undefined);
  const rows = (await gateway.admin('GET', '/api/calls?limit=100')).json['calls'];
  assert.ok(Array.isArray(rows) && rows.length === jumps.length + 1);
  for (const row of rows.filter(isObject)) {
    const ms = Number(row['total_ms']);
    assert.ok(ms >= 0 && ms < 120_000, String(ms));
  }
});

test('G17 F90 a limit a minute is neither filled up nor lost', async () => {
  upstream.script('quick', { body: chatFrames({ text: 'Good day.' }) });
  const { key } = await gateway.makeKey({ rpm: 2 });
  const ask = { model: 'up/quick', stream: true };
  for (let i = 0; i < 2; i += 1) assert.equal((await gateway.chat(key, ask)).status, 200);
  for (const ahead of jumps) {
    await jumpTo(ahead);
    const { status, headers } = await gateway.chat(key, ask);
    assert.equal(status, 429);
    // Thirty seconds a request and some jitter; a jump must not become a wait.
    const wait = Number(headers['retry-after']);
    assert.ok(wait >= 1 && wait <= 45, String(wait));
  }
});

test('G17 F90 a budget that was spent today is spent, whatever the clock says in between', async () => {
  const usage = { prompt_tokens: 10, completion_tokens: 1000 };
  upstream.script('dear', { body: chatFrames({ text: 'Good day.', usage }) });
  const { key } = await gateway.makeKey({ budget: 1, per: 'day' });
  const ask = { model: 'up/dear', stream: true, max_tokens: 1000 };
  const status = async (): Promise<number> => (await gateway.chat(key, ask)).status;
  await jumpTo(0);
  assert.equal(await status(), 200);
  assert.equal(await status(), 429, 'a thousand dollars a million tokens: one call spends it');
  for (const ahead of jumps.slice(0, -1)) {
    await jumpTo(ahead);
    await status();
    await jumpTo(0);
    assert.equal(await status(), 429, `after a jump by ${ahead / hour} h`);
  }
  // Tomorrow was spent while the clock was wrong: it is no new day when it comes.
  await jumpTo(day);
  assert.equal(await status(), 429);
});
