/** Token counts of the Responses dialect, in both directions (wire/responses.md §5.4). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  readUsage,
  writeServiceTier,
  writeUsage,
} from '../../../src/dialects/openai-responses/answer/usage.ts';

const usage = {
  input_tokens: 7243,
  input_tokens_details: { cached_tokens: 3072, cache_write_tokens: 100 },
  output_tokens: 423,
  output_tokens_details: { reasoning_tokens: 58 },
  total_tokens: 7666,
};

test('R-81 F1 counts become disjoint classes and come back as the same sums', () => {
  const read = readUsage({ usage, service_tier: 'flex' });
  assert.deepEqual(read, {
    freshInputTokens: 7243 - 3072 - 100,
    cacheReadTokens: 3072,
    cacheWriteTokens: 100,
    outputTokens: 423,
    reasoningTokens: 58,
    serviceTier: 'flex',
    raw: usage,
  });
  assert.deepEqual(writeUsage(read), usage);
  assert.equal(writeServiceTier(read), 'flex');
});

test('R-81 what the upstream leaves out is unknown, and written as 0', () => {
  const read = readUsage({ usage: { input_tokens: 11, output_tokens: 2 } });
  assert.equal(read?.cacheReadTokens, undefined);
  assert.equal(read?.reasoningTokens, undefined);
  assert.deepEqual(writeUsage(read ?? {}), {
    input_tokens: 11,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: 2,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 13,
  });
});

test('R-81 F57 no usage, or one that nobody can believe, is none', () => {
  assert.equal(readUsage({}), undefined);
  assert.equal(readUsage({ usage: null }), undefined);
  assert.equal(readUsage({ usage: { input_tokens: -1, output_tokens: 1e300 } }), undefined);
});

test('R-81 more cached than sent: the cached tokens are counted apart (xAI)', () => {
  const details = { cached_tokens: 1578 };
  const read = readUsage({ usage: { input_tokens: 297, input_tokens_details: details } });
  assert.equal(read?.freshInputTokens, 297);
  assert.equal(read?.cacheReadTokens, 1578);
  assert.equal(writeUsage(read ?? {})['total_tokens'], 1875);
});

test('R-81 R-67 searches: as the upstream counts them, else as it shows them', () => {
  const counts = { input_tokens: 1, output_tokens: 1 };
  assert.equal(readUsage({ usage: counts }, 2)?.webSearches, 2);
  const xai = { ...counts, num_server_side_tools_used: 3 };
  assert.equal(readUsage({ usage: xai }, 2)?.webSearches, 3);
  const copilot = { usage: counts, tool_usage: { web_search: { num_requests: 1 } } };
  assert.equal(readUsage(copilot)?.webSearches, 1);
  assert.equal(readUsage({ usage: counts })?.webSearches, undefined);
});

test('R-81 the tier of another dialect is the usual one', () => {
  assert.equal(writeServiceTier({ serviceTier: 'standard' }), 'default');
  assert.equal(writeServiceTier({ serviceTier: 'priority' }), 'priority');
  assert.equal(writeServiceTier(undefined), 'default');
});
