/** Requirements of wire/responses.md §11 that need a whole gateway and no agent: texts that clients get and upstreams do not. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { send, type Reply, type Sending } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { allDialects, framesOf, listAt, objectAt, textAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { messagesAnswer } from '../upstream/messages.ts';
import { replying } from '../upstream/reply.ts';
import {
  reasoningItem,
  responsesAnswer,
  responsesEvents,
  textItem,
} from '../upstream/responses.ts';
import {
  doneItems,
  leftOut,
  recordedDocuments,
  recordedStreams,
  wire,
} from '../unit/openai-responses/recorded.ts';

let rig: Rig;
before(async () => {
  rig = await startRig(({ responses }) => ({
    models: { limited: { targets: ['up-chat/limited', 'up-messages/limited'] } },
    prices: { 'up-chat/*': { input: 1, output: 2 } },
    // The service that refuses ids of others.
    providers: { openai: { base_url: `http://127.0.0.1:${responses.port}/v1`, api_key: 'k' } },
  }));
});
after(() => rig.stop());

function call(model: string, more: JsonObject, sending: Sending = {}): Promise<Reply> {
  return ask(rig, 'responses', requestBody('responses', { model, stream: false, more }), sending);
}

function errorOf(reply: Reply): JsonObject {
  return objectAt(reply.json, 'error');
}

test('R-12 limits of all targets are a 429 with the time to wait', async () => {
  const refusal = {
    status: 429,
    body: '{"error":{"message":"slow down"}}',
    headers: { 'retry-after': '7' },
  };
  rig.upstreams.chat.script('limited', refusal);
  rig.upstreams.messages.script('limited', refusal);
  for (const stream of [false, true]) {
    const reply = await call('limited', { stream });
    assert.equal(reply.status, 429, reply.text);
    assert.ok(Number(reply.headers['retry-after']) >= 6, String(reply.headers['retry-after']));
    assert.equal(errorOf(reply)['code'], 'rate_limit_exceeded');
  }
});

for (const upstream of ['chat', 'messages'] as const) {
  test(`an empty input beside instructions is reported by its own name, ${upstream} upstream`, async () => {
    const { model, script } = rig.play(upstream, replying(upstream, { text: 'ok' }));
    const reply = await call(model, { input: '', instructions: 'Be kind.' });
    assert.equal(reply.status, 400, reply.text);
    assert.equal(errorOf(reply)['param'], 'input');
    assert.equal(script.requests.length, 0);
  });
}

test('R-14 a budget that is spent is insufficient_quota, and no upstream is asked', async () => {
  const { model, script } = rig.play('chat', replying('chat', { text: 'ok' }));
  const key = {
    name: 'poor',
    models: ['*'],
    shrink: false,
    budgets: [{ usd: 0.000001, per: 'month' }],
  };
  const made = await send(`${rig.gateway.adminUrl}/api/keys`, key, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const headers = { authorization: `Bearer ${String(made.json['key'])}` };
  const reply = await call(model, { stream: true }, { headers });
  assert.equal(reply.status, 429, reply.text);
  assert.equal(errorOf(reply)['code'], 'insufficient_quota');
  assert.equal(reply.headers['x-should-retry'], 'false');
  assert.equal(script.requests.length, 0);
});

test('R-20 a header of the upstream that names its model does not reach the client', async () => {
  for (const stream of [false, true]) {
    const headers = { 'openai-model': 'another', 'x-codex-turn-state': 's', 'x-models-etag': 'e' };
    const answer = { ...responsesAnswer([textItem('Hi')], { stream }), headers };
    const { model } = rig.play('responses', answer);
    const reply = await call(model, { stream });
    assert.equal(reply.status, 200, reply.text);
    for (const name of Object.keys(headers)) assert.equal(reply.headers[name], undefined, name);
  }
});

describe('R-58 a conversation that moves to another provider', () => {
  const thought = { text: 'Hm.', thinking: 'It rains.', signature: 'sig-of-messages' };

  async function firstTurn(upstream: 'messages' | 'responses'): Promise<readonly JsonObject[]> {
    const answer =
      upstream === 'responses'
        ? responsesAnswer([reasoningItem('It rains.', 'blob'), textItem('Hm.')], { stream: false })
        : messagesAnswer(thought, true);
    const { model } = rig.play(upstream, answer);
    const more = { reasoning: { effort: 'high', summary: 'auto' } };
    const reply = await call(model, more);
    assert.equal(reply.status, 200, reply.text);
    const output = listAt(reply.json, 'output');
    assert.ok(output.some(({ type }) => type === 'reasoning'));
    return output;
  }

  for (const from of ['messages', 'responses'] as const) {
    for (const to of allDialects.filter((each) => each !== from)) {
      test(`${from} → ${to}: what the first one sealed is omitted, and it is no fault`, async () => {
        const output = await firstTurn(from);
        const { model, script } = rig.play(to, replying(to, { text: 'Go on.' }));
        const user = { role: 'user', content: 'And now?' };
        const reply = await call(model, {
          input: [{ role: 'user', content: 'Hi' }, ...output, user],
        });
        assert.equal(reply.status, 200, reply.text);
        const [asked] = script.requests;
        const sent = asked?.body.toString() ?? '';
        assert.match(sent, /And now\?/);
        assert.match(sent, /Hm\./);
        // A blob of a Responses service means nothing to others; to such a service, foreign seals do not go.
        assert.doesNotMatch(sent, /gw1\.|"encrypted_content":"|sig-of-messages|It rains/);
      });
    }
  }
});

describe('R-61 a history of another vendor, relayed', () => {
  test('ids that the service would refuse are omitted, and long call ids fit', async () => {
    const model = 'gpt-5.5-foreign';
    const answer = responsesAnswer([textItem('Done.')], { stream: false });
    const script = rig.upstreams.responses.script(model, answer);
    const call_id = `toolu_${'x'.repeat(90)}`;
    const input = [
      { role: 'user', content: 'Hi' },
      { type: 'function_call', id: 'toolu_1', call_id, name: 'w', arguments: '{}' },
      { type: 'function_call_output', id: 'item_2', call_id, output: 'ok' },
    ];
    const reply = await call(`openai/${model}`, { input });
    assert.equal(reply.status, 200, reply.text);
    const [, made, result] = listAt(script.requests[0]?.json ?? {}, 'input');
    assert.equal(made?.['id'], undefined);
    assert.ok(String(made?.['call_id']).length <= 64);
    assert.equal(made?.['call_id'], result?.['call_id']);
  });
});

describe('R-72 recorded streams, relayed', { skip: leftOut }, () => {
  /** A failure, changing ids, and a last event without the items: other tests show how these are mended. */
  const mended = /^(openai-error|github-copilot|parallel-tool-call-wrapper)/;
  const own = new Set(['model', 'store', 'previous_response_id', 'id']);

  /** A lifecycle event without what the gateway owns of its response. */
  function comparable(event: JsonObject): unknown {
    const { response, ...rest } = event;
    if (!isObject(response)) return rest;
    return [rest, Object.entries(response).filter(([name]) => !own.has(name))];
  }

  for (const { name, events } of recordedStreams()) {
    if (mended.test(name)) continue;
    test(`${name}: every event as it came, but for the gateway's own members`, async () => {
      const { model } = rig.play('responses', { body: wire(events), framing: 'chunked' });
      const reply = await call(model, { stream: true });
      assert.equal(reply.status, 200, reply.text);
      const frames = framesOf(reply.text);
      const told = frames.map(({ data }) => tryParseObject(data) ?? {});
      assert.deepEqual(told.map(comparable), events.map(comparable));
      for (const [i, event] of events.entries()) {
        // What holds no response has not one byte of the gateway's.
        if (!isObject(event['response'])) assert.equal(frames[i]?.data, JSON.stringify(event));
      }
      const names = told.flatMap(({ response }) => (isObject(response) ? [response['model']] : []));
      assert.deepEqual(new Set(names), new Set([model]));
    });
  }

  for (const { name, text } of recordedDocuments()) {
    const recorded = tryParseObject(text) ?? {};
    if (mended.test(name) || recorded['object'] !== 'response') continue;
    test(`${name}: the document as it came, but for the gateway's own members`, async () => {
      const { model } = rig.play('responses', { body: text });
      const reply = await call(model, {});
      assert.equal(reply.status, 200, reply.text);
      assert.deepEqual(comparable({ response: reply.json }), comparable({ response: recorded }));
      assert.equal(reply.json['model'], model);
    });
  }

  /** Calls that a client runs; programs and searches are run by the service. */
  const runByClient = new Set([
    'function_call',
    'custom_tool_call',
    'tool_search_call',
    'local_shell_call',
    'apply_patch_call',
  ]);
  for (const { name, events } of recordedStreams()) {
    if (mended.test(name)) continue;
    test(`${name}: a chat client gets the calls that it may run as functions, and nothing else`, async () => {
      const { model } = rig.play('responses', { body: wire(events), framing: 'chunked' });
      const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: true }));
      assert.equal(reply.status, 200, reply.text);
      const calls = reply.text.match(/"name":"[^"]+"/g) ?? [];
      const wanted = doneItems(events)
        .filter((item) => runByClient.has(String(item['type'])) && item['execution'] !== 'server')
        .map(
          ({ type, name: own_ }) =>
            `"name":"${String(own_ ?? String(type).replace(/_call$/, ''))}"`,
        );
      assert.deepEqual(calls, wanted);
      const deltas = framesOf(reply.text).flatMap(({ data }) =>
        listAt(tryParseObject(data) ?? {}, 'choices').map((choice) => objectAt(choice, 'delta')),
      );
      const said = doneItems(events)
        .filter(({ type }) => type === 'message')
        .flatMap((item) => listAt(item, 'content').map((part) => textAt(part, 'text')));
      const shown = deltas.map((delta) => String(delta['content'] ?? '')).join('');
      assert.equal(shown.replaceAll('\n\n', ''), said.join('').replaceAll('\n\n', ''));
    });
  }
});

describe('R-46 what belongs to the account of one provider', () => {
  const user = (part: JsonObject): JsonObject => ({ input: [{ role: 'user', content: [part] }] });
  const owned: readonly (readonly [param: string, more: JsonObject])[] = [
    [
      'input[0].content[0].file_id',
      user({ type: 'input_image', file_id: 'file-1', detail: 'auto' }),
    ],
    ['input[0].content[0].file_id', user({ type: 'input_file', file_id: 'file-1' })],
    ['prompt', { prompt: { id: 'pmpt_1', version: '2', variables: { city: 'Oslo' } } }],
  ];

  for (const [param, more] of owned) {
    test(`${Object.keys(more).join()}: ${param} is relayed, and elsewhere refused with what to send`, async () => {
      const relayed = rig.play('responses', replying('responses', { text: 'ok' }));
      const reply = await call(relayed.model, more);
      assert.equal(reply.status, 200, reply.text);
      const [asked] = relayed.script.requests;
      for (const [name, value] of Object.entries(more)) assert.deepEqual(asked?.json[name], value);
      for (const upstream of ['chat', 'messages'] as const) {
        const { model, script } = rig.play(upstream, replying(upstream, { text: 'ok' }));
        const refused = await call(model, more);
        assert.equal(refused.status, 400, refused.text);
        assert.equal(errorOf(refused)['param'], param);
        assert.match(String(errorOf(refused)['message']), /send (the content|their text)/);
        assert.equal(script.requests.length, 0);
      }
    });
  }
});

test('R-82 what Codex sends about its session reaches no foreign upstream', async () => {
  const secret = '/home/somebody/project';
  const headers = {
    'x-codex-turn-metadata': JSON.stringify({ cwd: secret }),
    'x-codex-window-id': secret,
    'thread-id': secret,
    originator: secret,
  };
  for (const upstream of allDialects) {
    const { model, script } = rig.play(upstream, replying(upstream, { text: 'ok' }));
    const input = [
      {
        role: 'user',
        content: 'Hi',
        internal_chat_message_metadata_passthrough: { cwd: secret },
      },
    ];
    const reply = await call(model, { input, client_metadata: { cwd: secret } }, { headers });
    assert.equal(reply.status, 200, reply.text);
    const [asked] = script.requests;
    assert.ok(asked !== undefined);
    assert.ok(!asked.body.toString().includes(secret), upstream);
    assert.ok(!JSON.stringify(asked.headerLines).includes(secret), upstream);
  }
});

test('R-83 a thousand deltas are relayed byte for byte', async () => {
  const text = Array.from({ length: 1000 }, (_, i) => `word${i} `).join('');
  const events = responsesEvents([textItem(text)]).flatMap((event) => {
    if (event['type'] !== 'response.output_text.delta') return [event];
    const pieces = String(event['delta']).match(/.{1,8}/g) ?? [];
    return pieces.map((delta) => ({ ...event, delta, obfuscation: 'x'.repeat(delta.length) }));
  });
  const isDelta = (frame: string): boolean => frame.includes('.delta"');
  const sent = wire(events).split('\n\n').filter(isDelta);
  assert.ok(sent.length > 1000);
  const { model } = rig.play('responses', { body: wire(events), framing: 'chunked' });
  const reply = await call(model, { stream: true });
  assert.deepEqual(reply.text.split('\n\n').filter(isDelta), sent);
});

describe('R-84 requests beyond any use are refused or served, and others do not wait for them', () => {
  const items = (count: number, bytes: number): JsonObject[] =>
    Array.from({ length: count }, () => ({ role: 'user', content: 'x'.repeat(bytes) }));
  const deep = (levels: number): string =>
    `{"model":"m","input":[{"role":"user","content":"Hi"}],"metadata":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`;
  const tools = Array.from({ length: 10_000 }, (_, i) => ({
    type: 'function',
    name: `t${i}`,
    parameters: {},
  }));

  async function meanwhile(asking: Promise<Reply>): Promise<Reply> {
    const { model } = rig.play('chat', replying('chat', { text: 'ok' }));
    const began = performance.now();
    const small = await call(model, {});
    assert.equal(small.status, 200, small.text);
    assert.ok(performance.now() - began < 5000, 'a small call waited');
    return asking;
  }

  test('100 items of 1 MiB', async () => {
    const { model, script } = rig.play('chat', replying('chat', { text: 'ok' }));
    const reply = await meanwhile(call(model, { input: items(100, 1_048_576) }));
    assert.equal(reply.status, 413, reply.text.slice(0, 300));
    assert.equal(script.requests.length, 0);
  });

  test('a body nested 200 levels deep', async () => {
    const reply = await meanwhile(send(`${rig.gateway.url}/v1/responses`, deep(200)));
    assert.equal(reply.status, 413, reply.text);
    assert.equal(errorOf(reply)['type'], 'invalid_request_error');
  });

  test('10,000 tools', async () => {
    const { model, script } = rig.play('chat', replying('chat', { text: 'ok' }));
    const reply = await meanwhile(call(model, { tools }));
    assert.equal(reply.status, 400, reply.text);
    assert.equal(errorOf(reply)['param'], 'tools');
    assert.equal(script.requests.length, 0);
  });
});
