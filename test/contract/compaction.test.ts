/** `POST /v1/responses/compact`: relayed where the upstream has it, a call like any other; refused elsewhere (wire/responses.md §2.1). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI, { APIError } from 'openai';
import type { JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { allDialects, listAt, objectAt } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { replying } from '../upstream/reply.ts';
import { responsesAnswer, responsesUsage, textItem } from '../upstream/responses.ts';
import { ScriptedUpstream, type Answer, type Received, type Script } from '../upstream/scripted.ts';

const compaction = { id: 'cmp_1', type: 'compaction', encrypted_content: 'blob' };
const compacted = {
  id: 'resp_compacted',
  object: 'response.compaction',
  created_at: 1_700_000_000,
  output: [
    {
      id: 'msg_1',
      type: 'message',
      status: 'completed',
      role: 'user',
      content: [{ type: 'input_text', text: 'Hi' }],
    },
    compaction,
  ],
  usage: responsesUsage,
};

let rig: Rig;
let openai: ScriptedUpstream;
let client: OpenAI;
let played = 0;
before(async () => {
  openai = await ScriptedUpstream.start();
  rig = await startRig({
    providers: { openai: { base_url: `http://127.0.0.1:${openai.port}/v1`, api_key: 'k' } },
    models: { mixed: { targets: ['up-chat/mixed', 'openai/gpt-mixed'] } },
    prices: { 'openai/*': { input: 1000, output: 2000 } },
  });
  client = new OpenAI({ apiKey: clientKey, baseURL: `${rig.gateway.url}/v1`, maxRetries: 0 });
});
after(async () => {
  await rig.stop();
  await openai.close();
});

/** Compacts by one path and answers by the other. */
function answering({ path }: Received): Answer {
  if (path === '/v1/responses/compact') return { body: JSON.stringify(compacted) };
  return responsesAnswer([textItem('One.')], { stream: false });
}

function play(): { readonly model: string; readonly script: Script } {
  played += 1;
  const name = `gpt-5.5-compact-${played}`;
  return { model: `openai/${name}`, script: openai.script(name, answering) };
}

function compact(
  body: JsonObject,
  headers: { readonly [name: string]: string } = {},
): Promise<Reply> {
  const authorization = `Bearer ${clientKey}`;
  const url = `${rig.gateway.url}/v1/responses/compact`;
  return send(url, body, { headers: { authorization, ...headers } });
}

async function keyWith(more: JsonObject): Promise<string> {
  const body = { name: `key-${(played += 1)}`, models: ['*'], ...more };
  const made = await send(`${rig.gateway.adminUrl}/api/keys`, body, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  assert.equal(made.status, 201, made.text);
  return `Bearer ${String(made.json['key'])}`;
}

describe('where the upstream has it', () => {
  test('the request and its answer are relayed as they are', async () => {
    const { model, script } = play();
    const input = [{ role: 'user' as const, content: 'Hi' }];
    const body = { input, instructions: 'Be brief.', prompt_cache_key: 'k' };
    const answer = await client.responses.compact({ model, ...body });
    assert.deepEqual(answer, compacted);
    const [asked] = script.requests;
    assert.equal(asked?.path, '/v1/responses/compact');
    assert.deepEqual(asked.json, { model: model.slice('openai/'.length), ...body });
  });

  test('it continues from a kept response, and is not kept itself', async () => {
    const { model, script } = play();
    const one = await client.responses.create({ model, input: 'First?' });
    const reply = await compact({ model, previous_response_id: one.id });
    assert.equal(reply.status, 200, reply.text);
    const sent = script.requests[1]?.json ?? {};
    assert.equal(sent['previous_response_id'], undefined);
    assert.match(JSON.stringify(listAt(sent, 'input')), /First\?[^]*One\./);
    const kept = await client.responses.retrieve(compacted.id).catch((error: unknown) => error);
    assert.ok(kept instanceof APIError && kept.status === 404);
  });

  test('a compaction goes back to the upstream in the next request', async () => {
    const { model, script } = play();
    const input = [compaction, { role: 'user', content: 'And?' }];
    const reply = await send(
      `${rig.gateway.url}/v1/responses`,
      { model, input },
      { headers: { authorization: `Bearer ${clientKey}` } },
    );
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(listAt(script.requests[0]?.json ?? {}, 'input')[0], compaction);
  });

  test('it is in the ledger, with its usage and price', async () => {
    const { model } = play();
    const reply = await compact({ model, input: 'Hi' });
    const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
    assert.equal(row['endpoint'], 'openai-responses');
    assert.equal(row['outcome'], 'ok');
    assert.equal(row['usage_source'], 'reported');
    const { input_tokens: prompt, output_tokens: output } = responsesUsage;
    assert.equal(objectAt(row, 'charged')['output_tokens'], output);
    assert.equal(Number(row['cost_usd']), (prompt * 1000 + output * 2000) / 1e6);
  });

  test('limits and budgets of the key hold, and its endpoints', async () => {
    const { model, script } = play();
    const limited = await keyWith({ limits: [{ kind: 'requests', amount: 1 }] });
    const one = await compact({ model, input: 'Hi' }, { authorization: limited });
    assert.equal(one.status, 200, one.text);
    const two = await compact({ model, input: 'Hi' }, { authorization: limited });
    assert.equal(two.status, 429, two.text);
    const poor = await keyWith({ shrink: false, budgets: [{ usd: 0.000001, per: 'month' }] });
    const known = 'openai/gpt-5.1';
    const spent = await compact({ model: known, input: 'Hi' }, { authorization: poor });
    assert.equal(objectAt(spent.json, 'error')['code'], 'insufficient_quota', spent.text);
    const elsewhere = await keyWith({ endpoints: ['chat'] });
    const foreign = await compact({ model, input: 'Hi' }, { authorization: elsewhere });
    assert.equal(foreign.status, 403, foreign.text);
    assert.equal(script.requests.length, 1);
  });

  test('a repetition by Idempotency-Key is answered without another request', async () => {
    const { model, script } = play();
    const headers = { 'idempotency-key': `compact-${played}` };
    const first = await compact({ model, input: 'Hi' }, headers);
    const again = await compact({ model, input: 'Hi' }, headers);
    assert.equal(again.text, first.text);
    assert.equal(script.requests.length, 1);
  });

  test('a body and an answer that the thread reads are relayed as well', async () => {
    played += 1;
    const name = `gpt-5.5-long-${played}`;
    const blob = 'b'.repeat(2_000_000);
    const long = { ...compacted, output: [{ ...compaction, encrypted_content: blob }] };
    const script = openai.script(name, { body: JSON.stringify(long) });
    const input = 'word '.repeat(300_000);
    const reply = await compact({ model: `openai/${name}`, input });
    assert.equal(reply.status, 200, reply.text.slice(0, 300));
    assert.deepEqual(reply.json, long);
    assert.deepEqual(script.requests[0]?.json, { model: name, input });
  });

  test('of a route, only the targets that have it are asked', async () => {
    const script = openai.script('gpt-mixed', answering);
    const reply = await compact({ model: 'mixed', input: 'Hi' });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(script.requests.length, 1);
  });

  test('an error of the upstream is told as such', async () => {
    played += 1;
    const name = `gpt-5.5-broken-${played}`;
    openai.script(name, {
      status: 400,
      body: '{"error":{"message":"no such","type":"invalid_request_error"}}',
    });
    const reply = await compact({ model: `openai/${name}`, input: 'Hi' });
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.text, /no such/);
  });
});

for (const upstream of allDialects) {
  test(`a ${upstream} upstream without it is not asked: 400 says what to do`, async () => {
    const { model, script } = rig.play(upstream, replying(upstream, { text: 'ok' }));
    const reply = await compact({ model, input: 'Hi' });
    assert.equal(reply.status, 400, reply.text);
    const { code, param, message } = objectAt(reply.json, 'error');
    assert.deepEqual([code, param], ['unsupported_parameter', 'model']);
    assert.match(String(message), /Ask for a summary in an ordinary request/);
    assert.equal(script.requests.length, 0);
  });
}

test('a model that is unknown, and another method', async () => {
  assert.equal((await compact({ model: 'openai-compact', input: 'Hi' })).status, 404);
  const reply = await send(`${rig.gateway.url}/v1/responses/compact`, undefined, { method: 'GET' });
  assert.equal(reply.status, 405);
  assert.equal(reply.headers['allow'], 'POST');
});
