import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UpstreamTraits } from '../../../src/core/traits.ts';
import { providerRow } from '../../../src/providers/compatible.ts';
import { createHttpProvider, withTraits } from '../../../src/providers/http-provider.ts';

function traitsOf(id: string, model: string, more: { serverTools?: boolean } = {}): UpstreamTraits {
  const row = providerRow(id);
  assert.ok(row !== undefined);
  return createHttpProvider({ ...row, options: more, row }).traits(model);
}

const rows: readonly (readonly [string, string, Partial<UpstreamTraits>])[] = [
  ['gemini-compatible', 'gemini-3-pro', { schemaRules: 'openapi' }],
  ['lm-studio', 'x', { schemaRules: 'resolved', bufferToolArguments: true }],
  ['ollama', 'x', { schemaRules: 'resolved', toolChoice: false, parallelFlag: false }],
  ['mistral', 'mistral-large', { schemaRules: 'resolved', nineCharacterToolIds: true }],
  ['xai', 'grok-4', { schemaRules: 'resolved' }],
  ['vllm', 'x', { bufferToolArguments: true }],
  ['openrouter', 'x/y', { webSearch: 'plugin' }],
  ['openai', 'gpt-4o-search-preview', { webSearch: 'options' }],
  ['anthropic', 'claude-opus-4-8', { webSearch: 'tool', responseFormat: 'schema' }],
  ['anthropic', 'claude-3-5-haiku-20241022', { responseFormat: 'none' }],
  ['anthropic', 'claude-sonnet-4-20250514', { responseFormat: 'none' }],
];
for (const [id, model, expected] of rows) {
  test(`B8, A10, §1.7 tools of ${id}/${model}`, () => {
    const traits = traitsOf(id, model);
    for (const [key, value] of Object.entries(expected)) {
      assert.equal(Reflect.get(traits, key), value, key);
    }
  });
}

test('B8 all others get schemas as they are, and nobody searches by itself', () => {
  for (const id of ['openai', 'anthropic', 'deepseek', 'groq', 'together', 'llama-cpp']) {
    const traits = traitsOf(id, 'x');
    assert.equal(traits.schemaRules, undefined, id);
    assert.equal(traits.serverTools, undefined, id);
  }
});

test('A10 server_tools of a provider, and of a route before it', () => {
  assert.equal(traitsOf('anthropic', 'x', { serverTools: true }).serverTools, true);
  const row = providerRow('anthropic');
  assert.ok(row !== undefined);
  const provider = createHttpProvider({ ...row, row, options: { serverTools: true } });
  const other = withTraits(provider, { serverTools: false });
  assert.equal(other.traits('x').serverTools, false);
  assert.equal(provider.traits('x').serverTools, true);
  assert.deepEqual({ ...other.traits('x'), serverTools: true }, provider.traits('x'));
});
