import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { durationText, openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';

const now = Date.UTC(2026, 10, 21, 12, 0, 0, 250);
const standings = {
  requests: { limit: 60, remaining: 59, fullAt: now + 1000 },
  tokens: { limit: 1000, remaining: 0, fullAt: now + 360_000 },
};

test('chat completions: integers and durations', () => {
  assert.deepEqual(openaiChatClient.limitHeaders(standings, now), [
    'x-ratelimit-limit-requests',
    '60',
    'x-ratelimit-remaining-requests',
    '59',
    'x-ratelimit-reset-requests',
    '1s',
    'x-ratelimit-limit-tokens',
    '1000',
    'x-ratelimit-remaining-tokens',
    '0',
    'x-ratelimit-reset-tokens',
    '6m0s',
  ]);
  // Written later than it was drawn: less is left to wait, and never less than nothing.
  const [, , , , , later] = openaiChatClient.limitHeaders(standings, now + 990);
  assert.equal(later, '10ms');
  assert.equal(openaiChatClient.limitHeaders(standings, now + 5000)[5], '0ms');
});

test('messages: integers and times that are never too early', () => {
  assert.deepEqual(anthropicMessagesClient.limitHeaders(standings, now), [
    'anthropic-ratelimit-requests-limit',
    '60',
    'anthropic-ratelimit-requests-remaining',
    '59',
    'anthropic-ratelimit-requests-reset',
    '2026-11-21T12:00:02Z',
    'anthropic-ratelimit-tokens-limit',
    '1000',
    'anthropic-ratelimit-tokens-remaining',
    '0',
    'anthropic-ratelimit-tokens-reset',
    '2026-11-21T12:06:01Z',
  ]);
});

test('without limits there are no headers', () => {
  assert.deepEqual(openaiChatClient.limitHeaders({}, now), []);
  assert.deepEqual(anthropicMessagesClient.limitHeaders({}, now), []);
});

test('durations', () => {
  const texts = [0, 17, 999, 1000, 1250, 59_999, 60_000, 3_600_000, 90_061_500];
  assert.deepEqual(
    texts.map((ms) => durationText(ms)),
    ['0ms', '17ms', '999ms', '1s', '1.25s', '59.999s', '1m0s', '1h0m0s', '25h1m1.5s'],
  );
});
