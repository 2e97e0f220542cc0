/** F81: a gateway that is killed in the middle of calls; the next one settles them, once and within bounds. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { readCallText } from '../../src/store/call-rows.ts';
import { Instance } from '../cluster/instance.ts';
import { until } from '../support/postgres-store.ts';
import { chatChunk, chatFrame, chatFrames } from '../upstream/chat.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

const upstream = await ScriptedUpstream.start();
after(() => upstream.close());

const options = {
  storage: 'sqlite',
  upstream: upstream.port,
  prices: { 'up/*': { input: 1, output: 10 } },
} as const;
const cap = 500;
const words = 300;
/** The number of tokens after which a running call is noted again. */
const notedAgain = 256;

/** Tokens of the calls that are noted as running. */
function openCalls(
  directory: string,
  kind: 'freshInputTokens' | 'outputTokens' = 'outputTokens',
): readonly number[] {
  const db = new DatabaseSync(join(directory, 'data', 'gateway.db'), {
    readOnly: true,
    // Its writer may be at work in just this moment.
    timeout: 60_000,
  });
  try {
    const rows = db.prepare('SELECT call FROM open_calls').all();
    return rows.map(({ call }) => readCallText(String(call)).charged[kind] ?? 0);
  } finally {
    db.close();
  }
}

async function rowsOf(gateway: Instance): Promise<readonly JsonObject[]> {
  const calls = (await gateway.admin('GET', '/api/calls')).json['calls'];
  return Array.isArray(calls) ? calls.filter(isObject) : [];
}

async function spentOf(gateway: Instance, id: string): Promise<number> {
  const budgets = (await gateway.admin('GET', `/api/keys/${id}`)).json['budgets'];
  const [first] = Array.isArray(budgets) ? budgets.filter(isObject) : [];
  return Math.round(Number(first?.['spent_usd']) * 1e9);
}

test('F81 F8 kill -9 in mid-stream: the calls are settled once at the next start, and the budget has them', async (t) => {
  const deltas = Array.from({ length: words }, () => chatFrame(chatChunk({ content: ' morning' })));
  upstream.script('long', { body: deltas, ending: 'hang' });
  upstream.script('short', {
    body: chatFrames({ text: 'Good day.', usage: { prompt_tokens: 10, completion_tokens: 5 } }),
  });
  let gateway = await Instance.start(options);
  const { directory } = gateway;
  t.after(() => gateway.kill());
  const { id, key } = await gateway.makeKey({ budget: 1, per: 'ever', rpm: 100 });
  const ask = { stream: true, max_tokens: cap };
  assert.equal((await gateway.chat(key, { ...ask, model: 'up/short' })).status, 200);
  const cut = Array.from({ length: 3 }, () => gateway.chat(key, { ...ask, model: 'up/long' }));
  await until(() => {
    const noted = openCalls(directory);
    return noted.length === 3 && noted.every((output) => output >= notedAgain);
  }, 'three calls are noted as running, with what they said');
  await gateway.kill();
  for (const reply of await Promise.all(cut)) {
    assert.equal(reply.complete, false, 'an interrupted answer must not look like a whole one');
  }

  gateway = await Instance.start({ ...options, directory });
  await until(() => gateway.log.includes('calls_recovered'), 'the log tells');
  const rows = await rowsOf(gateway);
  const interrupted = rows.filter((row) => row['error'] === 'interrupted');
  assert.equal(rows.length, 4);
  assert.equal(interrupted.length, 3);
  for (const row of interrupted) {
    assert.equal(row['outcome'], 'failed');
    assert.equal(row['usage_source'], 'estimated');
    const charged = isObject(row['charged']) ? row['charged'] : {};
    const [input, output] = [charged['fresh_input_tokens'], charged['output_tokens']].map(Number);
    assert.ok(input !== undefined && input > 0);
    assert.ok(output !== undefined && output >= notedAgain && output <= cap, String(output));
  }
  const spent = await spentOf(gateway, id);
  const least = 10 * 1000 + 5 * 10_000;
  assert.ok(spent > least && spent <= least + 3 * (cap * 10_000 + 100 * 1000), String(spent));
  assert.deepEqual(openCalls(directory), []);

  await gateway.kill();
  gateway = await Instance.start({ ...options, directory });
  assert.equal((await rowsOf(gateway)).length, 4);
  assert.equal(await spentOf(gateway, id), spent);
  // What is held by nobody can be spent.
  const rest = Math.floor((1e9 - spent) / 10_000) - 1000;
  const all = await gateway.chat(key, { ...ask, max_tokens: rest, model: 'up/short' });
  assert.equal(all.headers['x-gateway-notes'], undefined);
  assert.equal(all.status, 200);
});

test('F81 kill -9 before an upstream answers: a long prompt of a key without limits is charged by a rough estimate', async (t) => {
  upstream.script('silent', { body: [], ending: 'hang' });
  let gateway = await Instance.start(options);
  const { directory } = gateway;
  t.after(() => gateway.kill());
  const { key } = await gateway.makeKey({});
  const content = 'The harbour lights came on one after another. '.repeat(1000);
  const messages = [{ role: 'user', content }];
  const asked = gateway.chat(key, { stream: true, model: 'up/silent', messages });
  const cut = assert.rejects(asked, /socket hang up/);
  await until(() => {
    const [tokens = 0] = openCalls(directory, 'freshInputTokens');
    return tokens > 0;
  }, 'the call is noted as running, with its prompt');
  await gateway.kill();
  await cut;
  gateway = await Instance.start({ ...options, directory });
  await until(() => gateway.log.includes('calls_recovered'), 'the log tells');
  const [row] = await rowsOf(gateway);
  const charged = isObject(row?.['charged']) ? row['charged'] : {};
  const tokens = Number(charged['fresh_input_tokens']);
  // By o200k the sentence has 9 tokens.
  assert.ok(tokens > 7000 && tokens < 13_000, String(tokens));
});
