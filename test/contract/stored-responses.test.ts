/** State of `/v1/responses` with the official SDK: chains, references and the endpoints beside it (docs/user/responses.md). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI, { APIError } from 'openai';
import type { Response } from 'openai/resources/responses/responses';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { framesOf, listAt, objectAt, textAt, type Dialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { begun, rest } from '../faults/stream-pieces.ts';
import { replying } from '../upstream/reply.ts';
import {
  callItem,
  reasoningItem,
  responsesAnswer,
  responsesEvents,
  responsesUsage,
  textItem,
} from '../upstream/responses.ts';
import type { Answer } from '../upstream/scripted.ts';
import { wire } from '../unit/openai-responses/recorded.ts';

const said = ['One.', 'Two.', 'Three.', 'Four.', 'Five.'];
const weather = {
  type: 'function',
  name: 'weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  strict: false,
} as const;

let rig: Rig;
let client: OpenAI;
before(async () => {
  rig = await startRig({ limits: { body: '256KiB' } });
  client = new OpenAI({ apiKey: clientKey, baseURL: `${rig.gateway.url}/v1`, maxRetries: 0 });
});
after(() => rig.stop());

function playAll(upstream: Dialect): ReturnType<Rig['play']> {
  return rig.play(upstream, ...said.map((text) => replying(upstream, { text })));
}

/** All texts of a request to an upstream, in their order. */
function textsOf(body: JsonObject | undefined): string {
  return JSON.stringify(body?.['messages'] ?? []);
}

function assertOrder(text: string, parts: readonly string[]): void {
  const places = parts.map((part) => text.indexOf(part));
  assert.ok(!places.includes(-1), `${parts.join()} in ${text}`);
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
  );
}

function lastEvent(text: string): JsonObject {
  return tryParseObject(framesOf(text).at(-1)?.data ?? '') ?? {};
}

async function refusal(asking: Promise<unknown>): Promise<APIError> {
  const error = await asking.then(
    () => assert.fail('it was answered'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof APIError, String(error));
  return error;
}

function suite(upstream: Dialect): void {
  test('R-27 a chain of three has the whole history each time, and no earlier instructions', async () => {
    const { model, script } = playAll(upstream);
    const one = await client.responses.create({
      model,
      input: 'First?',
      instructions: 'Be brief.',
    });
    assert.equal(Reflect.get(one, 'store'), true);
    const stream = client.responses.stream({
      model,
      input: 'Second?',
      previous_response_id: one.id,
    });
    const two = await stream.finalResponse();
    assert.equal(two.previous_response_id, one.id);
    const three = await client.responses.create({
      model,
      input: [{ role: 'user', content: 'Third?' }],
      previous_response_id: two.id,
    });
    assert.equal(three.output_text, 'Three.');
    const [, second, third] = script.requests.map(({ json }) => json);
    assertOrder(textsOf(second), ['First?', 'One.', 'Second?']);
    assertOrder(textsOf(third), ['First?', 'One.', 'Second?', 'Two.', 'Third?']);
    assert.doesNotMatch(JSON.stringify(second), /Be brief/);
  });

  test('R-30 two continue from one response, and know nothing of each other', async () => {
    const { model, script } = playAll(upstream);
    const { id } = await client.responses.create({ model, input: 'First?' });
    const ask = (input: string) =>
      client.responses.create({ model, input, previous_response_id: id });
    await ask('Left?');
    await ask('Right?');
    const last = textsOf(script.requests[2]?.json);
    assertOrder(last, ['First?', 'One.', 'Right?']);
    assert.doesNotMatch(last, /Left/);
  });

  test('R-22 a call that is referred to as the AI SDK does gets its result', async () => {
    const calls = [{ id: 'call_one', name: 'weather', arguments: '{"city":"Paris"}' }];
    const { model, script } = rig.play(
      upstream,
      replying(upstream, { calls }),
      replying(upstream, { text: 'Sunny.' }),
    );
    const first = await client.responses.create({ model, input: 'Weather?', tools: [weather] });
    const call = first.output.find((item) => item.type === 'function_call');
    assert.ok(call?.id !== undefined);
    const second = await client.responses.create({
      model,
      tools: [weather],
      input: [
        { role: 'user', content: 'Weather?' },
        { type: 'item_reference', id: call.id },
        { type: 'function_call_output', call_id: call.call_id, output: 'sunny' },
      ],
    });
    assert.equal(second.output_text, 'Sunny.');
    assertOrder(textsOf(script.requests[1]?.json), ['Weather?', 'Paris', 'sunny']);
  });

  test('ST10 each input item of a response can be referred to by the id that it is listed with', async () => {
    const { model, script } = playAll(upstream);
    const one = await client.responses.create({ model, input: 'First?' });
    const two = await client.responses.create({
      model,
      input: [
        { role: 'user', content: 'Second?' },
        { type: 'message', id: 'msg_of-the-client', role: 'user', content: [] } as never,
        { role: 'developer', content: 'Rule.' },
      ],
      previous_response_id: one.id,
    });
    const { data } = await client.responses.inputItems.list(two.id, { order: 'asc' });
    assert.equal(data[3]?.id, 'msg_of-the-client');
    const references = data.map(({ id = '' }) => ({ type: 'item_reference' as const, id }));
    const last = { role: 'user' as const, content: 'Last?' };
    const three = await client.responses.create({ model, input: [...references, last] });
    const sent = textsOf(script.requests[2]?.json);
    assertOrder(sent, ['First?', 'One.', 'Second?', 'Rule.', 'Last?']);
    // The same once more, from the items of a response that referred to them.
    const again = await client.responses.inputItems.list(three.id, { order: 'asc' });
    const input = again.data.map(({ id = '' }) => ({ type: 'item_reference' as const, id }));
    await client.responses.create({ model, input });
    assert.equal(textsOf(script.requests[3]?.json), sent);
    await client.responses.delete(three.id);
    const gone = await refusal(client.responses.create({ model, input }));
    assert.equal(gone.status, 404);
  });

  test('ST10 items that one request refers to keep their ids, also beyond the last 100', async () => {
    const { model, script } = playAll(upstream);
    const ids = (turn: string): readonly string[] =>
      Array.from({ length: 60 }, (_, i) => `msg_of-${turn}-${i}x`);
    const all = [...ids('one'), ...ids('two')];
    for (const turn of ['one', 'two']) {
      const input = ids(turn).map((id) => ({ type: 'message', id, role: 'user', content: id }));
      await client.responses.create({ model, input: input as never });
    }
    const input = all.map((id) => ({ type: 'item_reference' as const, id }));
    await client.responses.create({ model, input });
    await client.responses.create({ model, input });
    const sent = textsOf(script.requests[3]?.json);
    assertOrder(sent, all);
    assert.equal(textsOf(script.requests[2]?.json), sent);
  });

  test('R-37 input tokens are counted, also of what is referred to', async () => {
    const { model } = playAll(upstream);
    const one = await client.responses.create({ model, input: 'First? '.repeat(50) });
    const count = (body: object) => client.responses.inputTokens.count({ model, ...body });
    const alone = await count({ input: 'Second?', tools: [weather] });
    const whole = await count({ input: 'Second?', previous_response_id: one.id });
    assert.equal(alone.object, 'response.input_tokens');
    assert.ok(whole.input_tokens > alone.input_tokens && alone.input_tokens > 0);
  });
}

for (const upstream of ['chat', 'messages'] as const) {
  describe(`kept responses on ${upstream}`, () => suite(upstream));
}

describe('kept responses', () => {
  test('R-28 unknown, malformed and deleted ids are reported alike, before an upstream is asked', async () => {
    const { model, script } = playAll('chat');
    const { id } = await client.responses.create({ model, input: 'First?' });
    await client.responses.delete(id);
    for (const previous of [id, 'resp_unknown', 'no id at all']) {
      const asked = { model, input: 'Second?', previous_response_id: previous };
      const error = await refusal(client.responses.create(asked));
      assert.equal(error.status, 400);
      assert.equal(error.code, 'previous_response_not_found');
      assert.equal(error.param, 'previous_response_id');
      assert.match(error.message, /Previous response with id '.*' not found\./);
    }
    assert.equal(script.requests.length, 1);
  });

  test('R-23 an item of a response that was not kept is reported in the service’s words', async () => {
    const { model } = playAll('chat');
    const first = await client.responses.create({ model, input: 'First?', store: false });
    assert.equal(Reflect.get(first, 'store'), false);
    const [item] = first.output;
    assert.ok(item?.id);
    const input = [{ type: 'item_reference' as const, id: item.id }];
    const error = await refusal(client.responses.create({ model, input }));
    assert.equal(error.status, 404);
    assert.equal(error.param, 'input');
    assert.match(error.message, /Items are not persisted when `store` is set to false/);
  });

  test('R-34 a response is reported as it was, as events, and as its input items by pages', async () => {
    const { model } = playAll('chat');
    const one = await client.responses.create({ model, input: 'First?' });
    const two = await client.responses.create({
      model,
      input: 'Second?',
      previous_response_id: one.id,
    });
    assert.deepEqual(
      JSON.parse(JSON.stringify(await client.responses.retrieve(two.id))),
      JSON.parse(JSON.stringify(two)),
    );
    const numbers: number[] = [];
    let text = '';
    const events = await client.responses.retrieve(two.id, { stream: true, starting_after: 1 });
    for await (const event of events) {
      numbers.push(event.sequence_number);
      if (event.type === 'response.output_text.delta') text += event.delta;
      if (event.type === 'response.completed') assert.equal(event.response.id, two.id);
    }
    assert.equal(text, 'Two.');
    assert.equal(numbers[0], 2);
    // The stream that was lost had more pieces than this one.
    for (const [from, told] of [
      [7, 8],
      [8, 9],
      [999, 1000],
    ] as const) {
      const last = [];
      const resumed = await client.responses.retrieve(two.id, {
        stream: true,
        starting_after: from,
      });
      for await (const event of resumed) last.push(event);
      assert.deepEqual(
        last.map(({ type, sequence_number: number }) => [type, number]),
        [['response.completed', told]],
      );
      const [end] = last;
      assert.ok(end?.type === 'response.completed');
      assert.deepEqual(end.response.output, two.output);
    }

    const all = await client.responses.inputItems.list(two.id, { order: 'asc' });
    const roles = all.data.map((item) => ('role' in item ? item.role : item.type));
    assert.deepEqual(roles, ['user', 'assistant', 'user']);
    const pages: (string | undefined)[] = [];
    for await (const item of client.responses.inputItems.list(two.id, { limit: 1 }))
      pages.push(item.id);
    assert.deepEqual(pages, all.data.map(({ id }) => id).toReversed());
    assert.equal(
      (await refusal(client.responses.inputItems.list(two.id, { after: 'no' }))).status,
      400,
    );
  });

  test('R-34 a deleted response is gone, and its chain is broken', async () => {
    const { model } = playAll('chat');
    const one = await client.responses.create({ model, input: 'First?' });
    const two = await client.responses.create({
      model,
      input: 'Second?',
      previous_response_id: one.id,
    });
    const url = `${rig.gateway.url}/v1/responses/${one.id}`;
    const headers = { authorization: `Bearer ${clientKey}` };
    const gone = await fetch(url, { method: 'DELETE', headers });
    assert.deepEqual(await gone.json(), { id: one.id, object: 'response', deleted: true });
    assert.equal((await fetch(url, { method: 'DELETE', headers })).status, 404);
    assert.equal((await refusal(client.responses.retrieve(one.id))).status, 404);
    assert.equal((await client.responses.retrieve(two.id)).id, two.id);
    for (const broken of [
      client.responses.create({ model, input: 'Third?', previous_response_id: two.id }),
      client.responses.inputItems.list(two.id),
    ]) {
      const error = await refusal(broken);
      const code = 'previous_response_not_found';
      assert.deepEqual(
        [error.status, error.code, error.param],
        [400, code, 'previous_response_id'],
      );
      const words = `Previous response with id '${one.id}' not found: .* The response '${two.id}' continues it`;
      assert.match(error.message, new RegExp(words));
    }
  });

  for (const upstream of ['chat', 'responses'] as const) {
    test(`R-34 a response that is deleted while it streams is not kept at its end, ${upstream} upstream`, async () => {
      const gate = Promise.withResolvers<void>();
      const { model } = rig.play(upstream, {
        body: [begun(upstream), gate.promise, rest(upstream)],
        framing: 'chunked',
      });
      const stream = await client.responses.create({ model, input: 'First?', stream: true });
      let last: Response | undefined;
      for await (const event of stream) {
        if (event.type === 'response.created') {
          const error = await refusal(client.responses.delete(event.response.id));
          assert.equal(error.status, 404);
          gate.resolve();
        } else if (event.type === 'response.completed') last = event.response;
      }
      assert.ok(last !== undefined);
      assert.equal(Reflect.get(last, 'store'), false);
      assert.equal((await refusal(client.responses.retrieve(last.id))).status, 404);
    });
  }

  test('R-35 cancel, background, conversations and compaction are refused by name', async () => {
    const { model } = playAll('chat');
    const { id } = await client.responses.create({ model, input: 'First?' });
    assert.equal((await refusal(client.responses.cancel(id))).status, 400);
    assert.equal((await refusal(client.responses.cancel('resp_unknown'))).status, 404);
    const background = client.responses.create({ model, input: 'a', background: true });
    assert.equal((await refusal(background)).param, 'background');
    const talk = client.responses.create({ model, input: 'a', conversation: 'conv_1' });
    assert.equal((await refusal(talk)).param, 'conversation');
    const compacted = await refusal(client.responses.compact({ model, input: 'a' }));
    assert.deepEqual(
      [compacted.status, compacted.code, compacted.param],
      [400, 'unsupported_parameter', 'model'],
    );
    const talks = await refusal(client.conversations.create({}));
    assert.equal(talks.status, 404);
  });

  test('R-36 a chain beyond the limit of a body is refused with 413 before an upstream is asked', async () => {
    const { model, script } = playAll('chat');
    const long = 'word '.repeat(30_000);
    const one = await client.responses.create({ model, input: long });
    const asked = { model, input: long, previous_response_id: one.id };
    const error = await refusal(client.responses.create(asked));
    assert.equal(error.status, 413);
    assert.equal(script.requests.length, 1);
  });

  test('R-32 a response of more than 4 MiB is whole, is told not to be kept, and is not there later', async () => {
    const text = 'word '.repeat(900_000);
    const { model } = rig.play('chat', replying('chat', { text }));
    const asked = client.responses.create({ model, input: 'Long?' });
    const { data, response } = await asked.withResponse();
    assert.ok(data.output_text === text);
    assert.equal(Reflect.get(data, 'store'), false);
    assert.match(String(response.headers.get('x-gateway-notes')), /store: dropped, too large/);
    assert.equal((await refusal(client.responses.retrieve(data.id))).status, 404);
  });

  for (const [form, long] of [
    ['short', 'c'],
    ['of 20 KB', 'word '.repeat(4000)],
  ] as const) {
    test(`ST8 errors and notes count the items that the client sent, not those before: ${form}`, async () => {
      const file = {
        type: 'mcp_approval_request',
        id: 'mcpr_1',
        name: 'n',
        arguments: '{}',
        server_label: 's',
      };
      const recorded = rig.play(
        'responses',
        responsesAnswer([textItem('a'), file], { stream: false }),
      );
      const input = [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
        { role: 'user', content: long },
      ];
      const goOn = (model: string, previous_response_id: string, own: readonly JsonObject[]) =>
        ask(rig, 'responses', { model, previous_response_id, input: own });
      const foreign = { role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] };
      for (const upstream of ['chat', 'messages'] as const) {
        const { model } = playAll(upstream);
        const { id } = (await ask(rig, 'responses', { model, input })).json;
        const own = [{ role: 'user', content: 'd' }, foreign];
        const refused = await goOn(model, String(id), own);
        assert.equal(refused.status, 400, refused.text);
        assert.equal(objectAt(refused.json, 'error')['param'], 'input[1].content[0].file_id');
        // What stands in an earlier response is told by what referred to it.
        const made = await ask(rig, 'responses', { model: recorded.model, input: 'x' });
        const earlier = await goOn(model, String(made.json['id']), [
          { role: 'user', content: 'd' },
        ]);
        assert.equal(earlier.status, 400, earlier.text);
        assert.equal(objectAt(earlier.json, 'error')['param'], 'previous_response_id');
      }
      const { model } = playAll('chat');
      const { id } = (await ask(rig, 'responses', { model, input })).json;
      const noted = await goOn(model, String(id), [
        { role: 'user', content: 'd' },
        { role: 'assistant', content: 'e' },
      ]);
      assert.match(
        String(noted.headers['x-gateway-notes']),
        /^input\.1: changed, the model answers/,
      );
      const complaint = {
        message: "Invalid value: 'input[4].content'.",
        type: 'invalid_request_error',
        param: 'input[4].content',
        code: 'invalid_value',
      };
      const relayed = rig.play('responses', replying('responses', { text: 'a' }), {
        status: 400,
        body: JSON.stringify({ error: complaint }),
      });
      const first = await ask(rig, 'responses', { model: relayed.model, input });
      const told = await goOn(relayed.model, String(first.json['id']), [
        { role: 'user', content: 'd' },
      ]);
      assert.equal(told.status, 400, told.text);
      assert.match(told.text, /'input\[0\]\.content'.*"param":"input\[0\]\.content"/);
    });
  }

  /** Ids that name nothing on their own: a draw from a few, a constant, one that fits no path and one beyond any length. */
  const given = {
    'a number': ['resp_4711', 'msg_0'],
    'a constant': ['resp-of-a-server-that-has-but-one', 'item-of-a-server-that-has-but-one'],
    'with signs': ['b64/+==.9?#', 'msg/1+='],
    long: [`resp_${'x'.repeat(300)}`, `msg_${'x'.repeat(300)}`],
  };

  for (const [kind, [id, itemId]] of Object.entries(given)) {
    for (const stream of [false, true]) {
      test(`R-27 ids of an upstream name no two responses: ${kind}, ${stream ? 'streams' : 'documents'}`, async () => {
        const item = (text: string): JsonObject => ({ ...textItem(text), id: itemId ?? '' });
        const { model, script } = rig.play(
          'responses',
          ...said.map((text) => (): Answer => {
            return responsesAnswer([item(text)], { stream, id: id ?? '', store: false });
          }),
        );
        const turn = async (input: string, previous?: string): Promise<Response> => {
          const asked = { model, input, previous_response_id: previous ?? null };
          if (!stream) return client.responses.create(asked);
          const ids = new Set<string>();
          const items = new Set<string>();
          const helper = client.responses.stream(asked);
          helper.on('event', (event) => {
            if ('response' in event) ids.add(event.response.id);
            if ('item_id' in event) items.add(event.item_id);
            if ('item' in event) items.add(event.item.id ?? '');
          });
          const response = await helper.finalResponse();
          assert.deepEqual([...ids], [response.id]);
          assert.deepEqual(
            [...items],
            response.output.map((each) => each.id),
          );
          return response;
        };
        const one = await turn('First?');
        const other = await turn('Other?');
        const two = await turn('Second?', one.id);
        assert.equal(new Set([one.id, other.id, two.id]).size, 3);
        const sent = JSON.stringify(script.requests[2]?.json['input']);
        assertOrder(sent, ['First?', 'One.', 'Second?']);
        assert.doesNotMatch(sent, /Other|Two/);
        for (const [response, text] of [
          [one, 'One.'],
          [other, 'Two.'],
          [two, 'Three.'],
        ] as const) {
          assert.equal((await client.responses.retrieve(response.id)).output_text, text);
        }
        const reference = (response: Response): { type: 'item_reference'; id: string } => ({
          type: 'item_reference',
          id: response.output[0]?.id ?? '',
        });
        const last = [{ role: 'user' as const, content: 'Last?' }];
        const input = [reference(one), reference(two), ...last];
        await client.responses.create({ model, input });
        const referred = JSON.stringify(script.requests[3]?.json['input']);
        // Of items that share an id, the newest is meant.
        assertOrder(referred, kind === 'a constant' ? ['Three.', 'Last?'] : ['One.', 'Three.']);
        await client.responses.delete(one.id);
        assert.equal((await refusal(client.responses.retrieve(one.id))).status, 404);
        assert.equal((await client.responses.retrieve(two.id)).output_text, 'Three.');
      });
    }
  }

  /** What servers say of state, xAI and others nothing at all. */
  const toldOfState = {
    nothing: {},
    'their own': { store: false, previous_response_id: null },
  };

  for (const [kind, more] of Object.entries(toldOfState)) {
    for (const stream of [false, true]) {
      test(`§3.12 a relayed response says what is kept of it where the upstream says ${kind}, ${stream ? 'stream' : 'document'}`, async () => {
        const { model } = rig.play(
          'responses',
          ...said.map(
            (text) => (): Answer => responsesAnswer([textItem(text)], { stream, ...more }),
          ),
        );
        /** The response objects of one answer. */
        const told = async (wish: JsonObject): Promise<readonly JsonObject[]> => {
          const reply = await ask(rig, 'responses', { model, input: 'Hi', stream, ...wish });
          if (!stream) return [reply.json];
          const events = framesOf(reply.text).map(({ data }) => tryParseObject(data) ?? {});
          return events.flatMap(({ response }) => (isObject(response) ? [response] : []));
        };
        const stateOf = (responses: readonly JsonObject[]): readonly JsonObject[] =>
          responses.map(({ store, previous_response_id: previous = null }) => ({
            store,
            previous,
          }));
        const times = <T>(one: T): readonly T[] =>
          Array.from({ length: stream ? 3 : 1 }, () => one);
        const first = await told({});
        assert.deepEqual(stateOf(first), times({ store: true, previous: null }));
        const id = textAt(first[0] ?? {}, 'id');
        const second = await told({ previous_response_id: id });
        assert.deepEqual(stateOf(second), times({ store: true, previous: id }));
        const kept = await client.responses.retrieve(textAt(second[0] ?? {}, 'id'));
        assert.equal(kept.previous_response_id, id);
        assert.ok('store' in kept && kept.store === true);
        const third = await told({ store: false });
        assert.deepEqual(stateOf(third), times({ store: false, previous: null }));
      });
    }
  }

  for (const upstream of ['responses', 'chat', 'messages'] as const) {
    for (const stream of [false, true]) {
      test(`R-15 a response whose call was cut off can be continued, ${upstream} upstream, ${stream ? 'stream' : 'document'}`, async () => {
        const call = { id: 'call_cut', name: 'weather', arguments: '{"city":"Par' };
        const cut = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
        const items = [
          textItem('Let me see.'),
          reasoningItem('', 'blob'),
          { ...callItem(call.id, call.name, call.arguments), status: 'incomplete' },
        ];
        const { model, script } = rig.play(
          upstream,
          upstream === 'responses'
            ? responsesAnswer(items, { ...cut, stream })
            : replying(upstream, { text: 'Let me see.', calls: [call], length: true }),
          replying(upstream, { text: 'Warm.' }),
        );
        const asked = { model, input: 'Weather?', tools: [weather], stream };
        const reply = await ask(rig, 'responses', asked);
        const last = stream ? objectAt(lastEvent(reply.text), 'response') : reply.json;
        assert.equal(last['status'], 'incomplete');
        const calls = listAt(last, 'output').filter(({ type }) => type === 'function_call');
        assert.deepEqual(
          calls.map(({ status }) => status),
          ['incomplete'],
        );
        const url = `${rig.gateway.url}/v1/responses/${textAt(last, 'id')}?stream=true`;
        const again = framesOf((await send(url, undefined)).text).map(({ data }) =>
          tryParseObject(data),
        );
        const done = again.filter((event) => event?.['type'] === 'response.output_item.done');
        assert.ok(!JSON.stringify(done).includes('function_call'), 'nothing to run in the replay');
        assert.deepEqual(objectAt(again.at(-1) ?? {}, 'response'), last);
        const further = { model, tools: [weather], previous_response_id: textAt(last, 'id') };
        const next = await ask(rig, 'responses', { ...further, input: 'Go on.' });
        assert.equal(next.status, 200, next.text);
        assert.equal(
          next.headers['x-gateway-notes'],
          'previous_response_id: dropped, the call was cut off, and has no result',
        );
        const sent = JSON.stringify(script.requests[1]?.json);
        assertOrder(sent, ['Weather?', 'Let me see.', 'Go on.']);
        assert.doesNotMatch(sent, /call_cut|blob/);
        // A client that ran the call all the same says what came of it.
        const output = { type: 'function_call_output', call_id: 'call_cut', output: 'Sunny.' };
        const answered = await ask(rig, 'responses', { ...further, input: [output] });
        assert.equal(answered.status, 200, answered.text);
        const history = JSON.stringify(script.requests[2]?.json);
        assertOrder(history, ['Let me see.', 'call_cut', 'Sunny.']);
      });
    }
  }

  for (const upstream of ['responses', 'chat'] as const) {
    test(`a response that failed says that it is not kept, and its usage where it is known, ${upstream} upstream`, async () => {
      const events = responsesEvents([textItem('Hello')]);
      const end = objectAt(events.at(-1) ?? {}, 'response');
      const error = { code: 'server_error', message: 'It broke.' };
      const failed = { type: 'response.failed', response: { ...end, status: 'failed', error } };
      const answers = {
        responses: { body: wire([...events.slice(0, -1), failed]) },
        chat: {
          body: `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n`,
        },
      };
      const { model } = rig.play(upstream, { ...answers[upstream], framing: 'chunked' });
      const body = requestBody('responses', { model, stream: true });
      const reply = await ask(rig, 'responses', body);
      const told = framesOf(reply.text).map(({ data }) => tryParseObject(data) ?? {});
      const last = told.at(-1) ?? {};
      assert.equal(last['type'], 'response.failed', reply.text);
      const response = objectAt(last, 'response');
      assert.equal(response['store'], false);
      const usage = upstream === 'responses' ? responsesUsage : null;
      assert.deepEqual(response['usage'], usage);
      assert.equal((await refusal(client.responses.retrieve(textAt(response, 'id')))).status, 404);
    });
  }

  test('a repeated request with an Idempotency-Key gets the same response', async () => {
    const { model, script } = playAll('chat');
    const headers = { authorization: `Bearer ${clientKey}`, 'idempotency-key': 'kept-1' };
    const url = `${rig.gateway.url}/v1/responses`;
    const first = await send(url, { model, input: 'First?' }, { headers });
    const again = await send(url, { model, input: 'First?' }, { headers });
    assert.equal(again.text, first.text);
    assert.equal(script.requests.length, 1);
    assert.ok(textAt(JSON.parse(first.text), 'id'));
    assert.equal(listAt(JSON.parse(first.text), 'output').length, 1);
  });
});
