/** Spellings of model names: what limits and prices are compared with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeldLimit } from '../../../src/access/held-limits.ts';
import { modelNames, withoutDate } from '../../../src/core/model-names.ts';

test('K6 a name is known with and without its provider, date, tag and capitals', () => {
  assert.deepEqual(modelNames(['OpenRouter/OpenAI/GPT-5-2025-08-07:nitro ']), {
    own: [
      'openrouter/openai/gpt-5-2025-08-07:nitro',
      'openai/gpt-5-2025-08-07:nitro',
      'gpt-5-2025-08-07:nitro',
    ],
    families: [
      'openrouter/openai/gpt-5:nitro',
      'openrouter/openai/gpt-5-2025-08-07',
      'openrouter/openai/gpt-5',
      'openai/gpt-5:nitro',
      'openai/gpt-5-2025-08-07',
      'openai/gpt-5',
      'gpt-5:nitro',
      'gpt-5-2025-08-07',
      'gpt-5',
    ],
  });
});

test('K6 odd names end', () => {
  assert.deepEqual(modelNames(['/', '', ' ', 'a//']).own, ['/', 'a//']);
  assert.equal(withoutDate('m-20252301'), 'm-20252301');
});

const limitOn = (model: string): HeldLimit =>
  new HeldLimit({ kind: 'key', name: 'k' }, { kind: 'requests', amount: 1, model });

const cases: readonly (readonly [limit: string, name: string, covered: boolean])[] = [
  ['gpt-5', 'openai/gpt-5', true],
  ['gpt-5', 'openai/gpt-5-2025-08-07', true],
  ['gpt-5', 'openai/gpt-5-mini', false],
  ['gpt-*', 'openai/gpt-5', true],
  ['openai/gpt-5', 'openai/GPT-5', true],
  ['OpenAI/GPT-5', 'openai/gpt-5', true],
  ['openai/gpt-5', 'openrouter/openai/gpt-5:nitro', true],
  ['openai/gpt-5', 'azure/gpt-5', false],
  ['claude-3-5-haiku', 'anthropic/claude-3-5-haiku-latest', true],
  ['llama3', 'ollama/llama3:latest', true],
  ['llama3:8b', 'ollama/llama3', false],
  ['claude-sonnet-4', 'vertex/claude-sonnet-4@20250514', true],
  // A dated name is one of its family's, and the family's name may lead to it; other dates do not.
  ['gpt-5-2025-08-07', 'openai/gpt-5', true],
  ['gpt-5-2025-08-07', 'openai/gpt-5-2025-08-07', true],
  ['gpt-5-2025-08-07', 'openai/gpt-5-2025-12-01', false],
  ['gpt-4', 'openai/gpt-4-0613', true],
  ['mistral-large', 'mistral/mistral-large-2411', true],
  ['mistral-large-2411', 'mistral/mistral-large-2402', false],
  ['embed', 'x/embed-1024', false],
  ['*', 'anything', true],
];

for (const [limit, name, covered] of cases) {
  test(`K6 a limit on ${limit} ${covered ? 'counts' : 'does not count'} ${name}`, () => {
    assert.equal(limitOn(limit).covers(modelNames([name])), covered);
  });
}
