/** What relayed usage means in this dialect's own terms (F3, F4), and when its bytes stay. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chatTraits } from '../../../src/core/traits.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { findUsage, writeUsage } from '../../../src/dialects/openai-chat/answer/usage.ts';
import { repairedUsage } from '../../../src/dialects/shared/usage-sums.ts';

function repair(raw: JsonObject): JsonObject | undefined {
  const usage = findUsage({ usage: raw }, chatTraits);
  return usage === undefined ? undefined : repairedUsage(raw, writeUsage(usage));
}

const plain = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };

for (const raw of [
  plain,
  { ...plain, prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 } },
  { ...plain, prompt_cache_hit_tokens: 0, prompt_cache_miss_tokens: 9 },
  { ...plain, completion_tokens_details: { reasoning_tokens: 5 }, queue_time: 0.1 },
]) {
  test(`said as this dialect says it: ${JSON.stringify(raw)}`, () => {
    assert.equal(repair(raw), undefined);
  });
}

test('F3 cached tokens stand where clients look for them, and nothing else changes', () => {
  assert.deepEqual(repair({ ...plain, prompt_cache_hit_tokens: 4, other: 1 }), {
    ...plain,
    prompt_cache_hit_tokens: 4,
    other: 1,
    prompt_tokens_details: { cached_tokens: 4 },
  });
});

test('F4 thoughts that only the total knows of are completion and reasoning', () => {
  assert.deepEqual(repair({ prompt_tokens: 20, completion_tokens: 151, total_tokens: 553 }), {
    prompt_tokens: 20,
    completion_tokens: 533,
    total_tokens: 553,
    completion_tokens_details: { reasoning_tokens: 382 },
  });
});

test('cached tokens that the prompt leaves out are put back', () => {
  const details = { cached_tokens: 30, text_tokens: 9 };
  assert.deepEqual(repair({ ...plain, prompt_tokens_details: details }), {
    prompt_tokens: 39,
    completion_tokens: 5,
    total_tokens: 44,
    prompt_tokens_details: details,
  });
});
