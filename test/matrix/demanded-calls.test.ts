/**
 * D14: a demanded tool call at models that refuse to be made to call one. Real gateway, official SDK,
 * scripted upstreams that answer in the format that they are given.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import OpenAI from 'openai';
import type { JsonObject } from '../../src/json/value.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { objectAt } from '../support/reading.ts';
import { replying } from '../upstream/reply.ts';
import { ScriptedUpstream, type Script } from '../upstream/scripted.ts';

const answer = '{"city": "Bern", "days": [1, 2]}';
const parameters = {
  type: 'object',
  properties: { city: { type: 'string', minLength: 1 }, days: { type: 'array', items: {} } },
  required: ['city'],
};
const weather = {
  type: 'function',
  function: { name: 'weather', description: 'Tells the weather.', parameters },
} as const;
const time = { type: 'function', function: { name: 'time', parameters } } as const;
const named = { type: 'function', function: { name: 'weather' } } as const;
const messages = [{ role: 'user', content: 'The weather?' } as const];
const format = {
  type: 'json_schema',
  schema: {
    ...parameters,
    properties: {
      ...parameters.properties,
      city: { type: 'string', description: '(minLength: 1)' },
    },
    additionalProperties: false,
  },
};

type Tool = OpenAI.Chat.Completions.ChatCompletionTool;
type Choice = OpenAI.Chat.Completions.ChatCompletionToolChoiceOption;

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let client: OpenAI;
before(async () => {
  upstream = await ScriptedUpstream.start();
  const base = `http://127.0.0.1:${upstream.port}`;
  gateway = await startTestGateway({
    providers: {
      anthropic: { base_url: base, api_key: 'k' },
      ollama: { base_url: `${base}/v1`, api_key: 'k' },
    },
    models: {
      careful: { targets: ['anthropic/claude-opus-5-5-strict'], strict: true },
    },
  });
  client = new OpenAI({ apiKey: clientKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
});
after(async () => {
  await gateway.stop();
  await upstream.close();
});

function play(model: string, dialect: 'chat' | 'messages', text: string): Script {
  return upstream.script(model, replying(dialect, { text }));
}

suite('D14 a call that the model cannot be made to make', () => {
  const demands: readonly (readonly [string, Tool[], Choice])[] = [
    ['the one tool by name', [weather, time], named],
    ['any, where there is one', [weather], 'required'],
    [
      'one of the allowed, where there is one',
      [weather, time],
      { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [named] } },
    ],
  ];
  for (const [i, [what, tools, tool_choice]] of demands.entries()) {
    test(`D14 ${what}: the schema is the format of the answer, the answer is the call`, async () => {
      const model = `claude-opus-5-5-${i}`;
      const script = play(model, 'messages', answer);
      const { data, response } = await client.chat.completions
        .create({ model: `anthropic/${model}`, messages, tools, tool_choice })
        .withResponse();
      const [sent] = script.requests;
      assert.deepEqual(objectAt(sent?.json ?? {}, 'output_config')['format'], format);
      assert.deepEqual(sent?.json['tool_choice'], { type: 'none' });
      assert.equal(Array.isArray(sent?.json['tools']) && sent.json['tools'].length, tools.length);
      const [choice] = data.choices;
      assert.equal(choice?.finish_reason, 'tool_calls');
      assert.equal(choice?.message.content, null);
      const [call] = choice?.message.tool_calls ?? [];
      assert.ok(call?.type === 'function');
      assert.deepEqual([call.function.name, call.function.arguments], ['weather', answer]);
      const notes = response.headers.get('x-gateway-notes') ?? '';
      assert.match(notes, /tool_choice: changed, the model cannot be made to call a tool/);
      assert.match(notes, /tools\.0: changed, only described: minLength/);
    });
  }

  test('D14 streamed: the call comes in pieces, as any other', async () => {
    const model = 'claude-sonnet-5-5';
    play(model, 'messages', answer);
    const stream = client.chat.completions.stream({
      model: `anthropic/${model}`,
      messages,
      tools: [weather],
      tool_choice: named,
    });
    const { choices } = await stream.finalChatCompletion();
    const [call] = choices[0]?.message.tool_calls ?? [];
    assert.ok(call?.type === 'function');
    assert.deepEqual([call.function.name, call.function.arguments], ['weather', answer]);
    assert.equal(choices[0]?.finish_reason, 'tool_calls');
  });

  test('D14 words that are no input stay words', async () => {
    const model = 'claude-fable-5-1';
    play(model, 'messages', 'I would rather not.');
    const { choices } = await client.chat.completions.create({
      model: `anthropic/${model}`,
      messages,
      tools: [weather],
      tool_choice: 'required',
    });
    assert.equal(choices[0]?.message.content, 'I would rather not.');
    assert.equal(choices[0]?.finish_reason, 'stop');
  });

  test('D14 Ollama has no choice of tools, but formats', async () => {
    const script = play('llama3', 'chat', answer);
    const request = {
      model: 'ollama/llama3',
      max_tokens: 100,
      messages,
      tools: [{ name: 'weather', input_schema: parameters }],
      tool_choice: { type: 'any' },
    };
    const reply = await send(`${gateway.url}/v1/messages`, request);
    const sent = script.requests[0]?.json;
    assert.equal(objectAt(sent ?? {}, 'response_format')['type'], 'json_schema');
    assert.equal(sent?.['tool_choice'], undefined);
    assert.equal(reply.json['stop_reason'], 'tool_use');
    const [block] = reply.json['content'] as readonly JsonObject[];
    assert.deepEqual([block?.['name'], block?.['input']], ['weather', JSON.parse(answer)]);
  });

  test('D14 one of several tools cannot be demanded so: noted, and refused under strict', async () => {
    const model = 'claude-opus-5-5-several';
    const script = play(model, 'messages', 'Sunny.');
    const more = { messages, tools: [weather, time], tool_choice: 'required' as const };
    const { response } = await client.chat.completions
      .create({ model: `anthropic/${model}`, ...more })
      .withResponse();
    assert.deepEqual(script.requests[0]?.json['tool_choice'], { type: 'auto' });
    assert.match(
      response.headers.get('x-gateway-notes') ?? '',
      /^tool_choice: dropped, the model cannot be made to call a tool$/,
    );
    for (const demand of [more, { ...more, tools: [weather] }]) {
      const refused = await send(`${gateway.url}/v1/chat/completions`, {
        model: 'careful',
        ...demand,
      });
      assert.equal(refused.status, 400);
      assert.equal(objectAt(refused.json, 'error')['param'], 'tool_choice');
    }
  });

  test('D14 models that can be made to call think for once not, and call', async () => {
    const model = 'claude-opus-4-8-forced';
    const script = upstream.script(
      model,
      replying('messages', { calls: [{ id: 'toolu_1', name: 'weather', arguments: answer }] }),
    );
    await client.chat.completions.create({
      model: `anthropic/${model}`,
      messages,
      tools: [weather],
      tool_choice: named,
      reasoning_effort: 'high',
    });
    const sent = script.requests[0]?.json;
    assert.deepEqual(sent?.['tool_choice'], { type: 'tool', name: 'weather' });
    assert.deepEqual(sent?.['thinking'], { type: 'disabled' });
  });
});
