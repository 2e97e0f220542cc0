import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatTraits } from '../../../src/core/traits.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { chunk, collectChunks, frame, role, types, usage, usageChunk } from './answer-context.ts';

const finish = chunk({}, 'stop');

describe('usage', () => {
  const placements: readonly (readonly [string, readonly object[]])[] = [
    ['in its own chunk', [role, chunk({ content: 'x' }), finish, usageChunk]],
    ['on the finish chunk', [role, chunk({ content: 'x' }), chunk({}, 'stop', { usage })]],
    [
      'on every chunk, growing',
      [
        chunk({ role: 'assistant' }, null, { usage: { prompt_tokens: 9, completion_tokens: 1 } }),
        chunk({ content: 'x' }, null, { usage: { prompt_tokens: 9, completion_tokens: 3 } }),
        chunk({}, 'stop', { usage: null }),
        usageChunk,
      ],
    ],
    ['with choices absent', [role, chunk({ content: 'x' }), finish, { usage }]],
    [
      'twice behind the finish',
      [
        role,
        chunk({ content: 'x' }),
        finish,
        { ...usageChunk, usage: { prompt_tokens: 9, completion_tokens: 2 } },
        usageChunk,
      ],
    ],
    ['in x_groq', [role, chunk({ content: 'x' }), chunk({}, 'stop', { x_groq: { usage } })]],
    [
      'with a final null',
      [role, chunk({ content: 'x' }), usageChunk, chunk({}, 'stop', { usage: null })],
    ],
    [
      'on an empty delta',
      [
        role,
        chunk({ content: 'x' }),
        finish,
        { ...usageChunk, choices: [{ index: 0, delta: {} }] },
      ],
    ],
  ];
  for (const [name, chunks] of placements) {
    test(`E7 F56 ${name}`, () => {
      const generation = collectChunks([...chunks, '[DONE]']);
      assert.equal(generation.usage?.freshInputTokens, 9);
      assert.equal(generation.usage.outputTokens, 5);
      assert.deepEqual(generation.parts, [{ type: 'text', text: 'x' }]);
    });
  }

  test('a prompt count on the first chunk comes right behind the start', () => {
    const reader = openaiChatUpstream.streamReader(chatTraits);
    const first = chunk({ role: 'assistant', content: '' }, null, {
      usage: { prompt_tokens: 40, completion_tokens: 0, total_tokens: 40 },
    });
    assert.deepEqual(types(reader.read(frame(first))), ['start', 'usage']);
  });

  test('F55 without any usage the answer ends nevertheless', () => {
    const generation = collectChunks([role, chunk({ content: 'x' }), finish, '[DONE]']);
    assert.equal(generation.usage, undefined);
  });

  test('F57 absurd numbers are not believed', () => {
    for (const value of [-1, 1e308, '12', null]) {
      const bad = { prompt_tokens: value, completion_tokens: value };
      assert.equal(collectChunks([role, chunk({}, 'stop', { usage: bad })]).usage, undefined);
    }
  });

  test('F3 cached tokens in every spelling', () => {
    const spellings = [
      { prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 } },
      { prompt_cache_hit_tokens: 4, prompt_tokens_details: { cache_creation_tokens: 2 } },
      { cache_read_input_tokens: 4, cache_creation_input_tokens: 2 },
    ];
    for (const more of spellings) {
      const seen = collectChunks([role, chunk({}, 'stop', { usage: { ...usage, ...more } })]).usage;
      assert.equal(seen?.cacheReadTokens, 4);
      assert.equal(seen.cacheWriteTokens, 2);
      assert.equal(seen.freshInputTokens, 3);
    }
  });

  test('more cached than sent means that the prompt leaves it out', () => {
    const odd = { ...usage, prompt_tokens_details: { cached_tokens: 20 } };
    const seen = collectChunks([role, chunk({}, 'stop', { usage: odd })]).usage;
    assert.equal(seen?.freshInputTokens, 9);
    assert.equal(seen.cacheReadTokens, 20);
  });

  test('xAI leaves reasoning out of the completion: seen by the total, else by the trait', () => {
    const details = { completion_tokens_details: { reasoning_tokens: 3 } };
    const output = (more: object, excludes: boolean) =>
      collectChunks([role, chunk({}, 'stop', { usage: { ...usage, ...details, ...more } })], {
        ...chatTraits,
        completionExcludesReasoning: excludes,
      }).usage?.outputTokens;
    assert.equal(output({ total_tokens: 14 }, true), 5);
    assert.equal(output({ total_tokens: 17 }, false), 8);
    assert.equal(output({ total_tokens: undefined }, true), 8);
    assert.equal(output({ total_tokens: undefined }, false), 5);
  });
});
