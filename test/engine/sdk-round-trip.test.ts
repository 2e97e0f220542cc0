/** The official SDKs on the real engine: a tool round trip and answers by schema, streamed and whole. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { tryParse } from '../../src/json/parse.ts';
import { temporaryFolder } from '../support/folders.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { clientKey } from '../support/keys.ts';
import { sdks, type SdkTool } from '../support/sdks.ts';
import { writeAlteredModel } from './altered-model.ts';
import { reasonToSkip } from './engine-client.ts';

const skip = await reasonToSkip();
const model = 'local/steady';
const tools: readonly SdkTool[] = [
  { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
];
const text = 'What is the weather in Paris?';
const schema = {
  type: 'object',
  properties: { mood: { enum: ['good', 'bad'] }, count: { type: 'integer', maximum: 9 } },
  required: ['mood', 'count'],
  additionalProperties: false,
} as const;

describe('§4 official SDKs on a local model', { skip }, () => {
  const folder = temporaryFolder('engine-test');
  let gateway: TestGateway;
  before(async () => {
    const path = join(folder, 'steady.gguf');
    // Requests that say no temperature get the likeliest words.
    const floats = { 'general.sampling.temp': 0 };
    writeAlteredModel(path, { template: (original) => original, floats });
    gateway = await startTestGateway({ local: { models: { steady: { path } } } });
  });
  after(() => gateway.stop());

  for (const sdk of sdks) {
    test(`${sdk.name}: a tool is called, and its result is answered from, streamed and whole`, async () => {
      const client = sdk.connect({ url: gateway.url });
      const first = { model, text, tools, maxTokens: 64 };
      const plain = await client.plain(first);
      const final = await client.final(first);
      for (const seen of [plain, final]) {
        assert.equal(seen.finish, 'tools');
        assert.deepEqual(
          seen.calls.map((call) => [call.name, call.arguments]),
          [['get_weather', { city: 'Paris' }]],
        );
      }
      const results = plain.calls.map(({ id, name }) => ({
        id,
        name,
        arguments: { city: 'Paris' },
        result: '{"temp_c": 21, "sky": "sunny"}',
      }));
      const second = { ...first, results };
      const answer = await client.plain(second);
      assert.equal(answer.finish, 'stop');
      assert.ok(answer.text.length > 0 && answer.calls.length === 0);
      assert.equal(await client.iterate(second), answer.text);
      assert.equal((await client.final(second)).text, answer.text);
    });
  }

  const assertFits = (written: string | null): void => {
    const value = Object(tryParse(written ?? ''));
    assert.ok(['good', 'bad'].includes(value.mood), written ?? 'nothing');
    assert.ok(Number.isInteger(value.count) && value.count <= 9);
    assert.equal(Object.keys(value).length, 2);
  };

  test('OpenAI: response_format, streamed and whole', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: clientKey, maxRetries: 0 });
    const body = {
      model,
      messages: [{ role: 'user' as const, content: 'How are you?' }],
      max_tokens: 64,
      response_format: {
        type: 'json_schema' as const,
        json_schema: { name: 'mood', schema: { ...schema }, strict: true },
      },
    };
    const whole = await client.chat.completions.create(body);
    assertFits(whole.choices[0]?.message.content ?? null);
    const streamed = await client.chat.completions.stream(body).finalChatCompletion();
    assert.equal(streamed.choices[0]?.message.content, whole.choices[0]?.message.content);
  });

  test('OpenAI: responses continue from each other by their ids, a tool is called, and text.format holds', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: clientKey, maxRetries: 0 });
    const [{ name, parameters } = { name: '', parameters: {} }] = tools;
    const tool = { type: 'function' as const, name, parameters: { ...parameters }, strict: false };
    const asked = { model, input: text, tools: [tool], max_output_tokens: 64 };
    const first = await client.responses.create(asked);
    const [call] = first.output.filter((item) => item.type === 'function_call');
    assert.deepEqual([call?.name, tryParse(call?.arguments ?? '')], [name, { city: 'Paris' }]);
    const output = { type: 'function_call_output' as const, output: '{"temp_c": 21}' };
    const second = {
      ...asked,
      previous_response_id: first.id,
      input: [{ ...output, call_id: call?.call_id ?? '' }],
    };
    const answer = await client.responses.create(second);
    assert.equal(answer.status, 'completed');
    assert.ok(answer.output_text.length > 0);
    const again = await client.responses.stream(second).finalResponse();
    assert.equal(again.output_text, answer.output_text);
    const format = {
      type: 'json_schema' as const,
      name: 'mood',
      schema: { ...schema },
      strict: true,
    };
    const body = { model, input: 'How are you?', max_output_tokens: 64, text: { format } };
    const whole = await client.responses.create(body);
    assertFits(whole.output_text);
    assert.equal(
      (await client.responses.stream(body).finalResponse()).output_text,
      whole.output_text,
    );
  });

  test('Anthropic: output_config.format, streamed and whole', async () => {
    const client = new Anthropic({ baseURL: gateway.url, apiKey: clientKey, maxRetries: 0 });
    const body = {
      model,
      messages: [{ role: 'user' as const, content: 'How are you?' }],
      max_tokens: 64,
      output_config: { format: { type: 'json_schema' as const, schema } },
    };
    const textOf = ({ content }: Anthropic.Message): string =>
      content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    const whole = textOf(await client.messages.create(body));
    assertFits(whole);
    assert.equal(textOf(await client.messages.stream(body).finalMessage()), whole);
  });
});
