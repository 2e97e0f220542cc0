/** B9: what a model refuses is asked for in another way, once, and known from then on. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { clientDialects } from '../support/dialects.ts';
import { objectAt, readDocument, readStream, type Dialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { answerIn, errorIn, replying } from '../upstream/reply.ts';
import type { Answer, Received, Scripted } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

/** An upstream that refuses a member wherever it stands. */
function refusing(upstream: Dialect, member: string, message: string): Scripted {
  return (request: Received): Answer =>
    request.json[member] === undefined
      ? answerIn(upstream, { text: 'Hello' }, request.json['stream'] === true)
      : errorIn(upstream, 400, message);
}

const unsupported = (member: string): string =>
  `Unsupported parameter: '${member}' is not supported with this model.`;

interface Row {
  readonly client: Dialect;
  readonly member: string;
  readonly message: string;
  readonly more: JsonObject;
  /** What the corrected request holds. */
  readonly holds: JsonObject;
  /** The notes for the client about lost members, from the first call on. */
  readonly lost?: string;
}

const rows: readonly Row[] = [
  {
    client: 'messages',
    member: 'max_tokens',
    message: `${unsupported('max_tokens')} Use 'max_completion_tokens' instead.`,
    more: {},
    holds: { max_completion_tokens: 100 },
  },
  {
    client: 'messages',
    member: 'temperature',
    message: unsupported('temperature'),
    more: { temperature: 0.5 },
    holds: {},
    lost: 'temperature',
  },
  {
    client: 'messages',
    member: 'stop',
    message: unsupported('stop'),
    more: { stop_sequences: ['xyz'] },
    holds: { stream: true },
  },
  {
    client: 'chat',
    member: 'temperature',
    message: '`temperature` is deprecated for this model.',
    more: { temperature: 0.5 },
    holds: { max_tokens: 8192 },
    lost: 'temperature',
  },
];

for (const { client, member, message, more, holds, lost } of rows) {
  for (const stream of [false, true]) {
    test(`B9 ${member} of a ${client} request, stream: ${stream}`, async () => {
      const upstream = client === 'chat' ? 'messages' : 'chat';
      const { model, script } = rig.play(upstream, refusing(upstream, member, message));
      const body = requestBody(client, { model, stream, more });

      const first = await ask(rig, client, body);
      assert.equal(first.status, 200, first.text);
      const seen = stream ? readStream(client, first.text) : readDocument(client, first.json);
      assert.equal(seen.text, 'Hello');
      assert.equal(first.headers['x-gateway-attempts'], '2');
      assert.match(String(first.headers['x-gateway-notes']), new RegExp(`refused ${member}`));
      const corrected = (await script.request(1)).json;
      assert.ok(!(member in corrected), JSON.stringify(corrected));
      for (const [key, value] of Object.entries(holds)) assert.deepEqual(corrected[key], value);

      const second = await ask(rig, client, body);
      assert.equal(second.headers['x-gateway-attempts'], '1', 'it is remembered');
      assert.equal(script.requests.length, 3);
      const notes = String(second.headers['x-gateway-notes'] ?? '');
      if (lost === undefined) assert.equal(notes, '');
      else assert.match(notes, new RegExp(`^${lost}: dropped`));

      const calls = await rig.gateway.callRows(model, 2);
      assert.deepEqual(calls.map((row) => row['attempts']).toSorted(), [1, 2]);
      assert.deepEqual(
        calls.map((row) => row['outcome']),
        ['ok', 'ok'],
      );
    });
  }
}

test('B9 G12 a model that refuses two members, one after the other, is learned in one call', async () => {
  const { model, script } = rig.play('chat', (request) => {
    const bad = ['max_tokens', 'temperature'].find((each) => request.json[each] !== undefined);
    return bad === undefined
      ? answerIn('chat', { text: 'Hello' }, request.json['stream'] === true)
      : errorIn('chat', 400, unsupported(bad));
  });
  const more = { temperature: 0.5 };
  const body = requestBody('messages', { model, stream: false, more });
  const first = await ask(rig, 'messages', body);
  assert.equal(first.status, 200, first.text);
  assert.equal(first.headers['x-gateway-attempts'], '3');
  assert.match(String(first.headers['x-gateway-notes']), /refused max_tokens, temperature/);
  const second = await ask(rig, 'messages', body);
  assert.equal(second.headers['x-gateway-attempts'], '1', 'both are remembered');
  assert.equal(script.requests.length, 4);
});

/** A complaint about what one client sent, and a request of another that has nothing to do with it. */
interface ValueRow {
  readonly name: string;
  readonly refused: (sent: JsonObject) => boolean;
  readonly message: string;
  readonly bad: JsonObject;
  readonly good: JsonObject;
  /** What the good request still holds upstream. */
  readonly holds: JsonObject;
}

const formatOf = (property: JsonObject): JsonObject => ({
  type: 'json_schema',
  schema: {
    type: 'object',
    properties: { a: property },
    required: ['a'],
    additionalProperties: false,
  },
});

const valueRows: readonly ValueRow[] = [
  {
    name: 'a schema that the provider does not take',
    refused: (sent) =>
      objectAt(sent, 'response_format')['type'] === 'json_schema' &&
      JSON.stringify(sent).includes('oneOf'),
    message:
      "Invalid schema for response_format 'output': In context=('properties', 'a'), 'oneOf' is not permitted.",
    bad: { output_config: { format: formatOf({ oneOf: [{ type: 'string' }] }) } },
    good: { output_config: { format: formatOf({ type: 'string' }) } },
    holds: {
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'output',
          schema: formatOf({ type: 'string' })['schema'],
          strict: true,
        },
      },
    },
  },
  {
    name: 'a pair of values that do not go together',
    refused: (sent) => sent['temperature'] === 0 && sent['top_p'] !== undefined,
    message: 'top_p must be 1 when using greedy sampling.',
    bad: { temperature: 0, top_p: 0.9 },
    good: { temperature: 0.3, top_p: 0.9 },
    holds: { temperature: 0.3, top_p: 0.9 },
  },
  {
    name: 'a value out of range',
    refused: (sent) => sent['temperature'] === 0.001,
    message: 'Invalid value: temperature must be greater than 0.01.',
    bad: { temperature: 0.001 },
    good: { temperature: 0.3 },
    holds: { temperature: 0.3 },
  },
  {
    name: 'a stop sequence that is too long',
    refused: (sent) => JSON.stringify(sent['stop'] ?? '').length > 64,
    message:
      "Invalid 'stop[0]': string too long. Expected a string with maximum length 64, but got a string with length 100 instead.",
    bad: { stop_sequences: ['x'.repeat(100)] },
    good: { stop_sequences: ['END'] },
    holds: { stop: ['END'] },
  },
];

describe('what one client sent says nothing of the model', () => {
  for (const { name, refused, message, bad, good, holds } of valueRows) {
    test(`B9 ${name} is corrected for its call and not learned`, async () => {
      const { model, script } = rig.play('chat', (request) =>
        refused(request.json)
          ? errorIn('chat', 400, message)
          : answerIn('chat', { text: 'Hello' }, request.json['stream'] === true),
      );
      const bodyOf = (more: JsonObject) => requestBody('messages', { model, stream: false, more });

      const first = await ask(rig, 'messages', bodyOf(bad));
      assert.equal(first.status, 200, first.text);
      assert.equal(first.headers['x-gateway-attempts'], '2');
      assert.match(String(first.headers['x-gateway-notes']), /retried in another form/);

      const other = await ask(rig, 'messages', bodyOf(good));
      assert.equal(other.headers['x-gateway-attempts'], '1');
      assert.equal(other.headers['x-gateway-notes'], undefined);
      const sent = (await script.request(2)).json;
      for (const [key, value] of Object.entries(holds)) assert.deepEqual(sent[key], value);
    });
  }
});

describe('reasoning that a provider refuses', () => {
  const complaints = [
    'messages.1.content.0: Invalid `signature` in `thinking` block',
    'messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.',
  ];
  const detail = { type: 'reasoning.text', text: 'Hm.', signature: 'c2ln', index: 0 };
  const called = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    reasoning_details: [{ ...detail, format: 'anthropic-claude-v1' }],
  };
  const history = [
    { role: 'user', content: 'Hi' },
    called,
    { role: 'tool', tool_call_id: 'call_1', content: 'done' },
  ];
  for (const message of complaints) {
    test(`D3 is omitted for that call: ${message.slice(22, 60)}`, async () => {
      const { script, model } = rig.play('messages', (request) =>
        JSON.stringify(request.json['messages']).includes('"thinking"')
          ? errorIn('messages', 400, message)
          : answerIn('messages', { text: 'Hello' }, request.json['stream'] === true),
      );
      const more = { messages: history, reasoning_effort: 'high' };
      const first = await ask(rig, 'chat', requestBody('chat', { model, stream: false, more }));
      assert.equal(first.status, 200, first.text);
      assert.match(String(first.headers['x-gateway-notes']), /refused (thinking|signature)/);
      const { thinking } = (await script.request(1)).json;
      await ask(rig, 'chat', requestBody('chat', { model, stream: false, more }));
      const again = (await script.request(2)).json;
      assert.ok(JSON.stringify(again['messages']).includes('c2ln'), 'nothing is learned');
      assert.deepEqual(again['thinking'], thinking);
    });
  }
});

describe('relayed requests', () => {
  for (const [member, value, message] of [
    ['max_tokens', 5, `${unsupported('max_tokens')} Use 'max_completion_tokens' instead.`],
    ['logprobs', true, unsupported('logprobs')],
    ['reasoning_effort', 'minimal', unsupported('reasoning_effort')],
  ] as const) {
    test(`B9 D13 ${member} is asked for otherwise, with a note, and remembered`, async () => {
      const { model, script } = rig.play('chat', refusing('chat', member, message));
      const body = requestBody('chat', { model, stream: false, more: { [member]: value } });
      const reply = await ask(rig, 'chat', body);
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.headers['x-gateway-mode'], 'relay');
      assert.match(String(reply.headers['x-gateway-notes']), new RegExp(`${member}: `));
      assert.equal(script.requests.length, 2);
      await ask(rig, 'chat', body);
      assert.equal(script.requests.length, 3);
      assert.equal((await script.request(2)).json[member], undefined);
    });
  }
});

describe('what is not corrected', () => {
  test('B9 D13 a value that no model would take: its client sees what the API itself would say', async () => {
    const message = "Invalid 'metadata.a': string too long.";
    const { model, script } = rig.play('chat', refusing('chat', 'metadata', message));
    const body = requestBody('chat', { model, stream: false, more: { metadata: { a: 'x' } } });
    const reply = await ask(rig, 'chat', body);
    assert.equal(reply.status, 400);
    assert.match(reply.text, /string too long/);
    assert.equal(script.requests.length, 1);
  });

  test('B9 but the member that the gateway adds to it is', async () => {
    const message = unsupported('stream_options');
    const { model, script } = rig.play('chat', refusing('chat', 'stream_options', message));
    const more = { stream_options: undefined };
    const body = requestBody('chat', { model, stream: true, more });
    const reply = await ask(rig, 'chat', body);
    assert.equal(readStream('chat', reply.text).text, 'Hello');
    assert.equal(script.requests.length, 2);
    const [refused, corrected] = [await script.request(0), await script.request(1)];
    assert.deepEqual(refused.json['stream_options'], { include_usage: true });
    const { stream_options: _added, ...own } = refused.json;
    assert.deepEqual(corrected.json, own);
    await ask(rig, 'chat', body);
    assert.deepEqual((await script.request(2)).json, own, 'it is remembered');
  });

  test('B9 G12 a third refusal is the answer', async () => {
    const { model, script } = rig.play(
      'chat',
      errorIn('chat', 400, unsupported('max_tokens')),
      errorIn('chat', 400, unsupported('temperature')),
      errorIn('chat', 400, unsupported('stop')),
      replying('chat', { text: 'Hello' }),
    );
    const more = { temperature: 0.5, stop_sequences: ['END'] };
    const reply = await ask(
      rig,
      'messages',
      requestBody('messages', { model, stream: false, more }),
    );
    assert.equal(reply.status, 400);
    assert.match(reply.text, /stop/);
    assert.equal(script.requests.length, 3);
  });

  test('B9 a guess that does not help is forgotten', async () => {
    const { model, script } = rig.play('chat', errorIn('chat', 400, unsupported('max_tokens')));
    const body = requestBody('messages', { model, stream: false });
    assert.equal((await ask(rig, 'messages', body)).status, 400);
    await ask(rig, 'messages', body);
    assert.equal((await script.request(2)).json['max_tokens'], 100);
  });

  test('B9 nothing is asked again where nothing would be asked otherwise', async () => {
    const { model, script } = rig.play('chat', errorIn('chat', 400, unsupported('logprobs')));
    const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: false }));
    assert.equal(reply.status, 400);
    assert.equal(script.requests.length, 1);
  });
});

describe('E11 upstreams that stream always or never', () => {
  for (const client of clientDialects) {
    test(`E11 "Stream must be set to true" is obeyed for a document, ${client} client`, async () => {
      const { model, script } = rig.play('chat', (request) =>
        request.json['stream'] === true
          ? answerIn('chat', { text: 'Hello' }, true)
          : { status: 400, body: JSON.stringify({ detail: 'Stream must be set to true' }) },
      );
      for (const attempts of ['2', '1']) {
        const reply = await ask(rig, client, requestBody(client, { model, stream: false }));
        assert.equal(reply.status, 200, reply.text);
        assert.equal(readDocument(client, reply.json).text, 'Hello');
        assert.deepEqual(readDocument(client, reply.json).usage?.output, 7);
        assert.equal(reply.headers['x-gateway-attempts'], attempts);
      }
      assert.deepEqual((await script.request(1)).json['stream_options'], { include_usage: true });
    });
  }

  test('E11 a model that takes no `stream: true` is asked for a document, shown as a stream', async () => {
    const message = "Unsupported value: 'stream' does not support true with this model.";
    const { model, script } = rig.play('chat', (request) =>
      request.json['stream'] === true
        ? errorIn('chat', 400, message)
        : answerIn('chat', { text: 'Hello' }, false),
    );
    const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: true }));
    const seen = readStream('messages', reply.text);
    assert.equal(seen.text, 'Hello');
    assert.equal(seen.usage?.output, 7);
    assert.equal(script.requests.length, 2);
  });

  for (const client of clientDialects) {
    for (const upstream of clientDialects) {
      for (const wanted of [false, true]) {
        const asks = wanted ? 'a stream' : 'a document';
        test(`E11 F22 F23 ${client} asks ${upstream} for ${asks} and gets the other`, async () => {
          const { model } = rig.play(upstream, answerIn(upstream, { text: 'Hello' }, !wanted));
          const reply = await ask(rig, client, requestBody(client, { model, stream: wanted }));
          assert.equal(reply.status, 200, reply.text);
          const seen = wanted ? readStream(client, reply.text) : readDocument(client, reply.json);
          assert.equal(seen.text, 'Hello');
          assert.equal(seen.finish, 'stop');
          assert.deepEqual([seen.usage?.fresh, seen.usage?.output], [40, 7]);
          const [row] = await rig.gateway.callRows(model, 1);
          assert.equal(row?.['usage_source'], 'reported');
        });
      }
    }
  }
});

describe('a long request that is refused', () => {
  const turns = Array.from({ length: 3001 }, (_, i): JsonObject => {
    return { role: i % 2 === 0 ? 'user' : 'assistant', content: `${i} ${'word '.repeat(200)}` };
  });
  const whole = 2_000_000;
  const refusals = [
    { about: 'nothing in it', message: 'This account is on hold.', again: false },
    { about: 'a member', message: unsupported('temperature'), again: true },
  ] as const;
  for (const client of ['messages', 'chat'] as const) {
    for (const { about, message, again } of refusals) {
      const how = client === 'chat' ? 'relay' : 'translate';
      test(`B9 G11 ${how}, for ${about}: it is not parsed in one go`, async (t) => {
        const { model, script } = rig.play('chat', refusing('chat', 'temperature', message));
        const body = requestBody(client, { model, stream: false, more: { temperature: 0.5 } });
        const parse = t.mock.method(JSON, 'parse');
        const reply = await ask(rig, client, { ...body, messages: turns });
        const asked = again ? 2 : 1;
        assert.equal(reply.status, asked === 2 ? 200 : 400, reply.text);
        assert.equal(script.requests.length, asked);
        const long = parse.mock.calls.filter(({ arguments: [text] }) => text.length > whole);
        assert.equal(long.length, asked, 'only by the upstream of the test');
      });
    }
  }
});

test('B9 a refused request that nests deeper than a client may, since it was translated, is corrected', async () => {
  const deep = `{"a":${'['.repeat(124)}${']'.repeat(124)}}`;
  const { model, script } = rig.play(
    'messages',
    refusing('messages', 'temperature', '`temperature` is deprecated for this model.'),
  );
  const messages: JsonObject[] = [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: deep } }],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'done' },
  ];
  const body = requestBody('chat', { model, stream: false, more: { temperature: 0.5 } });
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
  const reply = await ask(rig, 'chat', { ...body, messages, tools });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(script.requests.length, 2);
});
