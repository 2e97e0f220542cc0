/** The official OpenAI SDK on `/v1/responses`: `create`, its iterator, `stream` and `parse`, on chat and messages upstreams. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import type { JsonObject } from '../../src/json/value.ts';
import { clientKey } from '../support/keys.ts';
import { listAt, objectAt, textAt, type Dialect } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { replying, type Reply } from '../upstream/reply.ts';

const greeting: Reply = { text: 'Hello, 你好🦀 and good day.' };
const call: Reply = {
  text: 'I will look.',
  calls: [
    { id: 'call_one', name: 'weather', arguments: '{"city":"Paris"}' },
    { id: 'call_two', name: 'weather', arguments: '{"city":"Oslo"}' },
  ],
};
const weather = {
  type: 'function',
  name: 'weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  strict: false,
} as const;

let rig: Rig;
let client: OpenAI;
before(async () => {
  rig = await startRig();
  client = new OpenAI({ apiKey: clientKey, baseURL: `${rig.gateway.url}/v1`, maxRetries: 0 });
});
after(() => rig.stop());

function suite(upstream: Dialect): void {
  test('R-24 a document has the text, the usage and all members that the SDK reads', async () => {
    const { model, script } = rig.play(upstream, replying(upstream, greeting));
    const answer = await client.responses.create({ model, input: 'Hi', instructions: 'Be kind.' });
    assert.equal(answer.output_text, greeting.text);
    assert.equal(answer.status, 'completed');
    assert.equal(answer.model, model);
    assert.equal(answer.instructions, 'Be kind.');
    assert.match(answer.id, /^resp_[A-Za-z0-9]{24}$/);
    const { usage } = answer;
    assert.ok(usage !== undefined && usage.input_tokens > 0 && usage.output_tokens > 0);
    assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
    assert.equal(script.requests.length, 1);
  });

  test('R-24 the stream helper builds the same response from the events', async () => {
    const { model } = rig.play(upstream, replying(upstream, call));
    const types: string[] = [];
    const stream = client.responses.stream({ model, input: 'Weather?', tools: [weather] });
    stream.on('event', (event) => void types.push(event.type));
    const answer = await stream.finalResponse();
    assert.deepEqual(
      answer.output.map(({ type }) => type),
      ['message', 'function_call', 'function_call'],
    );
    assert.equal(types[0], 'response.created');
    assert.equal(types.at(-1), 'response.completed');
    assert.equal(types.filter((type) => type === 'response.output_item.done').length, 3);
    const [, first] = answer.output;
    assert.ok(first?.type === 'function_call');
    assert.equal(first.arguments, '{"city":"Paris"}');
    assert.equal(first.call_id, 'call_one');
  });

  test('R-40 the second turn carries calls and results to the upstream', async () => {
    const { model, script } = rig.play(
      upstream,
      replying(upstream, call),
      replying(upstream, greeting),
    );
    const first = await client.responses.create({ model, input: 'Weather?', tools: [weather] });
    const made = first.output.filter(
      (item) => item.type === 'message' || item.type === 'function_call',
    );
    const results = first.output
      .filter((item) => item.type === 'function_call')
      .map(({ call_id }) => ({ type: 'function_call_output' as const, call_id, output: 'sunny' }));
    const second = await client.responses.create({
      model,
      tools: [weather],
      input: [{ role: 'user', content: 'Weather?' }, ...made, ...results.toReversed()],
    });
    assert.equal(second.output_text, greeting.text);
    assert.deepEqual(resultIds(upstream, script.requests[1]?.json ?? {}), ['call_one', 'call_two']);
  });

  test('R-51 parse asks for the schema and gives the value', async () => {
    const schema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] };
    const { model, script } = rig.play(upstream, replying(upstream, { text: '{"a":1}' }));
    const format = { type: 'json_schema' as const, name: 'answer', schema, strict: true };
    const answer = await client.responses.create({ model, input: 'Hi', text: { format } });
    assert.equal(answer.output_text, '{"a":1}');
    const sent = script.requests[0]?.json ?? {};
    const asked =
      upstream === 'chat'
        ? objectAt(objectAt(sent, 'response_format'), 'json_schema')
        : objectAt(objectAt(sent, 'output_config'), 'format');
    assert.equal(objectAt(asked, 'schema')['type'], 'object');
  });
}

function resultIds(upstream: Dialect, body: JsonObject): readonly string[] {
  const messages = listAt(body, 'messages');
  if (upstream === 'chat') {
    return messages
      .filter((message) => message['role'] === 'tool')
      .map((message) => textAt(message, 'tool_call_id'));
  }
  return messages
    .flatMap((message) => listAt(message, 'content'))
    .filter((block) => block['type'] === 'tool_result')
    .map((block) => textAt(block, 'tool_use_id'));
}

for (const upstream of ['chat', 'messages'] as const) {
  describe(`openai SDK on ${upstream}`, () => suite(upstream));
}
