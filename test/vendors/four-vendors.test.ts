/**
 * D13: a route whose targets are of four chat vendors answers the same request on each, when the one before it is down.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { readDocument, readStream } from '../support/reading.ts';
import { startStrictVendors, said, type StrictVendors } from './strict.ts';
import { vendors } from './tables.ts';

const names = [
  'openai/gpt-5.1',
  'mistral/mistral-large-latest',
  'deepseek/deepseek-v4',
  'ollama/qwen3:8b',
];
const targets = names.map((name) => {
  const found = vendors.find(({ provider, model }) => `${provider}/${model}` === name);
  assert.ok(found !== undefined, name);
  return found;
});

/** All of them, beginning with one. */
function from(first: number): readonly string[] {
  return [...names.slice(first), ...names.slice(0, first)];
}

/** The model that is down. */
let down = '';
let strict: StrictVendors;
before(async () => {
  strict = await startStrictVendors(
    ({ model }, request) =>
      model === down
        ? { status: 503, body: '{"error":{"message":"down"}}' }
        : said({ text: 'ok' }, request),
    Object.fromEntries(names.map((name, i) => [`from-${name}`, { targets: from(i) }])),
  );
});
after(() => strict.stop());

const tool = {
  type: 'function',
  function: { name: 'get_time', parameters: { type: 'object', properties: {} } },
} as const;
const body: JsonObject = {
  messages: [
    { role: 'developer', content: 'Be brief.' },
    { role: 'user', content: 'What time is it?' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: 'call_Ab3De5Gh7Jk9Mn1Pq',
          type: 'function',
          function: { name: 'get_time', arguments: '{}' },
        },
      ],
    },
    { role: 'tool', tool_call_id: 'call_Ab3De5Gh7Jk9Mn1Pq', content: 'noon' },
    { role: 'user', content: 'And where?' },
  ],
  max_completion_tokens: 500,
  temperature: 0.2,
  seed: 7,
  user: 'u1',
  stop: ['END'],
  tools: [tool],
  tool_choice: 'auto',
  parallel_tool_calls: false,
  reasoning_effort: 'low',
  store: false,
};

for (const [i, target] of targets.entries()) {
  for (const stream of [false, true]) {
    test(`D13 ${target.provider} answers, ${stream ? 'streamed' : 'whole'}`, async () => {
      const before = targets.at(i - 1);
      down = before?.model ?? '';
      const model = `from-${names.at(i - 1)}`;
      const url = `${strict.gateway.url}/v1/chat/completions`;
      const reply = await send(url, { ...body, model, stream });
      assert.equal(reply.status, 200, reply.text);
      const seen = stream ? readStream('chat', reply.text) : readDocument('chat', reply.json);
      assert.equal(seen.text, 'ok');
      assert.equal(reply.headers['x-gateway-target'], `${target.provider}/${target.model}`);
      for (const each of targets) assert.deepEqual(strict.refusals(each), []);
    });
  }
}
