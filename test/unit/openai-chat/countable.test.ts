import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countTokens as cl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { countTokens as o200k } from 'gpt-tokenizer/encoding/o200k_base';
import type { JsonObject } from '../../../src/json/value.ts';
import type { ModelTokenizer } from '../../../src/core/provider.ts';
import { tokenizerOf } from '../../../src/providers/http-provider.ts';
import { chatCountable } from '../../../src/dialects/openai-chat/request/countable.ts';
import { mediumTokens } from '../../../src/tokens/prompt.ts';
import { pieces } from '../../../src/tokens/tokenizer-worker.ts';
import { samples } from '../tokens/samples.ts';

function tokenizerFor(model: string): ModelTokenizer {
  const tokenizer = tokenizerOf(model);
  assert.ok(tokenizer !== undefined, model);
  return tokenizer;
}

function count(model: string, body: JsonObject): number {
  const tokenizer = tokenizerFor(model);
  const { texts, media, constant } = chatCountable(body, tokenizer);
  const ofMedia = media.reduce((sum, each) => sum + mediumTokens(each, tokenizer.image), 0);
  const counter = tokenizer.encoding === 'o200k_base' ? o200k : cl100k;
  return texts.reduce((sum, text) => sum + counter(text), constant + ofMedia);
}

// The published examples and the counts that the API reported for them (OpenAI cookbook, "How to
// count tokens with tiktoken").
const jargon = [
  {
    role: 'system',
    content:
      'You are a helpful, pattern-following assistant that translates corporate jargon into plain English.',
  },
  {
    role: 'system',
    name: 'example_user',
    content: 'New synergies will help drive top-line growth.',
  },
  {
    role: 'system',
    name: 'example_assistant',
    content: 'Things working well together will increase revenue.',
  },
  {
    role: 'system',
    name: 'example_user',
    content:
      "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
  },
  {
    role: 'system',
    name: 'example_assistant',
    content: "Let's talk later when we're less busy about how to do better.",
  },
  {
    role: 'user',
    content:
      "This late pivot means we don't have time to boil the ocean for the client deliverable.",
  },
];

const weather = {
  messages: [
    {
      role: 'system',
      content: 'You are a helpful assistant that can answer to questions about the weather.',
    },
    { role: 'user', content: "What's the weather like in San Francisco?" },
  ],
  tools: [
    {
      type: 'function',
      function: {
        name: 'get_current_weather',
        description: 'Get the current weather in a given location',
        parameters: {
          type: 'object',
          properties: {
            location: { type: 'string', description: 'The city and state, e.g. San Francisco, CA' },
            unit: {
              type: 'string',
              description: 'The unit of temperature to return',
              enum: ['celsius', 'fahrenheit'],
            },
          },
          required: ['location'],
        },
      },
    },
  ],
};

for (const [model, messages, tools] of [
  ['gpt-4o', 124, 101],
  ['gpt-4o-mini', 124, 101],
  ['gpt-4', 129, 105],
  ['gpt-3.5-turbo', 129, 105],
] as const) {
  test(`F5 ${model}: the published examples count as the API reported them`, () => {
    assert.equal(count(model, { messages: jargon }), messages);
    assert.equal(count(model, weather), tools);
  });
}

test('F5 tools nested deeper than the recipe goes are not forgotten', () => {
  const inner = {
    type: 'object',
    properties: { deep: { type: 'string', description: 'x '.repeat(50) } },
  };
  const tool = (parameters: JsonObject): JsonObject => ({
    type: 'function',
    function: { name: 'f', description: 'd', parameters },
  });
  const flat = count('gpt-4o', { messages: [], tools: [tool({ type: 'object', properties: {} })] });
  for (const parameters of [
    { type: 'object', properties: { a: inner } },
    { type: 'object', properties: { a: { type: 'array', items: inner } } },
    { type: 'object', properties: { a: { anyOf: [inner, { type: 'null' }] } } },
    { type: 'object', properties: { a: { $ref: '#/$defs/b' } }, $defs: { b: inner } },
  ]) {
    assert.ok(count('gpt-4o', { messages: [], tools: [tool(parameters)] }) > flat + 50);
  }
});

test('F5 calls, results, refusals and schemas count', () => {
  const text = 'word '.repeat(100).trim();
  const base = count('gpt-4o', { messages: [{ role: 'user', content: '' }] });
  for (const more of [
    { messages: [{ role: 'assistant', refusal: text }] },
    { messages: [{ role: 'tool', tool_call_id: 'c', content: text }] },
    { messages: [{ role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text }] }] },
    {
      messages: [
        { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'f', arguments: text } }] },
      ],
    },
    {
      messages: [{ role: 'user', content: '' }],
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { title: text } } },
    },
  ]) {
    assert.ok(count('gpt-4o', more) >= base + 100, JSON.stringify(more).slice(0, 60));
  }
});

/** A PNG header: all that is read of a picture. */
function png(width: number, height: number): string {
  const bytes = Buffer.alloc(64);
  bytes.write('\x89PNG\r\n\x1a\n', 'latin1');
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return `data:image/png;base64,${bytes.toString('base64')}`;
}

function picture(url: string, detail?: string): JsonObject {
  const image = { url, ...(detail === undefined ? {} : { detail }) };
  return { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: image }] }] };
}

// The examples of the published rule (OpenAI, "Images and vision: calculating costs").
test('F5 pictures count by the published tile and patch rules', () => {
  const frame = count('gpt-4o', { messages: [{ role: 'user', content: [] }] });
  const cost = (model: string, url: string, detail?: string): number =>
    count(model, picture(url, detail)) - frame;
  assert.equal(cost('gpt-4o', png(1024, 1024), 'high'), 765);
  assert.equal(cost('gpt-4o', png(2048, 4096), 'high'), 1105);
  assert.equal(cost('gpt-4o', png(4096, 8192), 'low'), 85);
  assert.equal(cost('gpt-5', png(512, 512)), 210);
  assert.equal(cost('gpt-4.1-mini', png(1024, 1024)), Math.ceil(1024 * 1.62));
  assert.equal(cost('gpt-4.1-mini', png(1800, 2400)), Math.ceil(1536 * 1.62));
  // Of an address the size is not known: the most that it can be.
  assert.equal(cost('gpt-4o', 'https://example.com/a.png'), 1445);
});

test('models are known by name, resold and fine-tuned ones too; others have no public tokenizer', () => {
  for (const name of ['gpt-5.2', 'openai/gpt-oss-120b', 'ft:gpt-4o:acme::abc', 'o3', 'o4-mini']) {
    assert.equal(tokenizerOf(name)?.encoding, 'o200k_base', name);
  }
  assert.equal(tokenizerOf('gpt-4-turbo')?.encoding, 'cl100k_base');
  for (const name of ['claude-sonnet-5', 'qwen3-32b', 'gpt2', 'llama-o3']) {
    assert.equal(tokenizerOf(name), undefined, name);
  }
});

test('long runs are cut, so that no text takes time with the square of its length', () => {
  for (const text of Object.values(samples)) {
    const cut = pieces(text);
    assert.equal(cut.join(''), text);
    const counted = cut.reduce((sum, piece) => sum + o200k(piece), 0);
    assert.ok(counted >= o200k(text) && counted <= o200k(text) * 1.02 + 1);
  }
  assert.deepEqual(pieces(''), []);
  assert.equal(pieces('a'.repeat(100_000)).length, 250);
});

test('what is counted holds all parts, calls and messages, however many there are', () => {
  const many = 4000;
  const list = <T>(make: (i: number) => T): readonly T[] =>
    Array.from({ length: many }, (_, i) => make(i));
  const properties = Object.fromEntries(list((i) => [`p${i}`, { type: 'string' }]));
  const body: JsonObject = {
    messages: [
      { role: 'user', content: list((i) => ({ type: 'text', text: `part ${i}` })) },
      {
        role: 'assistant',
        tool_calls: list((i) => ({ function: { name: `f${i}`, arguments: '{}' } })),
      },
      ...list((i) => ({ role: 'user', content: `message ${i}` })),
    ],
    tools: [{ function: { name: 'wide', parameters: { type: 'object', properties } } }],
  };
  const { texts } = chatCountable(body, tokenizerFor('gpt-4o'));
  for (const [i, text] of [`part ${many - 1}`, `f${many - 1}`, `message ${many - 1}`].entries()) {
    assert.ok(texts.includes(text), `${i}: ${text}`);
  }
  assert.equal(texts.length, 2 + many + 2 * many + 2 * many + 1 + many);
});
