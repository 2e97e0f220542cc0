/** F6, issue 8: amounts, counts and times as the pages write them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { exactMoney, money, roughMoney } from '../../../dashboard/src/format/money.ts';
import { count, percent } from '../../../dashboard/src/format/number.ts';
import { ago, span } from '../../../dashboard/src/format/time.ts';
import { curlOf } from '../../../dashboard/src/pages/calls/curl.ts';
import { burnDown } from '../../../dashboard/src/pages/keys/burn-down.ts';
import { lastUsed } from '../../../dashboard/src/pages/keys/last-used.ts';
import { statusName, statusText } from '../../../dashboard/src/pages/setup/status-text.ts';

test('F6 an unknown number is a dash, never a zero', () => {
  assert.deepEqual([money(null), count(null), span(null), percent(0, 0)], ['–', '–', '–', '–']);
  assert.deepEqual([money(0), count(0), span(0)], ['$0.00', '0', '0 ms']);
  assert.equal(exactMoney(null), 'the price is unknown');
});

test('issue 8 small amounts keep their digits, large ones their cents', () => {
  assert.equal(money(0.000243), '$0.000243');
  assert.equal(money(0.00000012), '$0.00000012');
  assert.equal(money(1234.567), '$1,234.57');
  assert.equal(exactMoney(1234.567890123), '$1,234.567890123');
  assert.deepEqual(
    [0, 0.8, 5, 5.04, 26.4, 412, 12_345].map((dollars) => roughMoney(dollars)),
    ['$0', '$0.80', '$5', '$5.0', '$26', '$412', '$12K'],
  );
});

test('issue 8 every token counts: no rounding', () => {
  assert.equal(count(12_345_678_901), '12,345,678,901');
});

test('issue 8 spans and distances in words', () => {
  assert.deepEqual(
    [0.72, 999, 1234, 125_000, 3_720_000].map((ms) => span(ms)),
    ['0.7 ms', '999 ms', '1.23 s', '2 min 5 s', '1 h 2 min'],
  );
  const now = Date.parse('2026-11-21T12:00:00Z');
  assert.equal(ago('2026-11-21T11:57:00Z', now), '3 minutes ago');
  assert.equal(ago('2026-11-23T12:00:00Z', now), 'in 2 days');
});

test('issue 8 S12 a call copied as curl is one command, whatever the model is called', () => {
  const model = `it's $(touch /tmp/x) \`id\` "quoted" \\ ; rm`;
  const text = curlOf(
    { endpoint: 'anthropic-messages', model, stream: true },
    'http://127.0.0.1:1',
  );
  const shown = spawnSync('sh', ['-c', `curl() { printf '%s\\n' "$@"; }\n${text}`], {
    encoding: 'utf8',
    env: { MODEL_GATEWAY_KEY: 'secret' },
  });
  assert.equal(shown.stderr, '');
  const words = shown.stdout.trimEnd().split('\n');
  assert.deepEqual(words.slice(0, 4), [
    '-N',
    'http://127.0.0.1:1/v1/messages',
    '-H',
    'x-api-key: secret',
  ]);
  assert.deepEqual(
    words.at(-1),
    JSON.stringify({
      model,
      max_tokens: 1024,
      stream: true,
      messages: [{ role: 'user', content: 'your prompt' }],
    }),
  );
});

test('issue 21 a call of each endpoint is copied with its own path and prompt', () => {
  const words = { 'openai-chat': 'messages', 'openai-responses': 'input' };
  const paths = { 'openai-chat': 'chat/completions', 'openai-responses': 'responses' };
  for (const endpoint of ['openai-chat', 'openai-responses'] as const) {
    const text = curlOf({ endpoint, model: 'm', stream: false }, 'http://127.0.0.1:1');
    assert.ok(text.includes(`'http://127.0.0.1:1/v1/${paths[endpoint]}'`), text);
    assert.ok(text.includes(`"${words[endpoint]}":`), text);
  }
});

test('issue 8 issue 24 a burn-down goes from all of a budget to what is left, beside an even pace', () => {
  const start = Date.parse('2026-11-20T23:00:00Z');
  const hour = 3_600_000;
  const period = { start, end: start + 4 * hour, now: start + 2.5 * hour };
  const spent = [
    { at: new Date(start).toISOString(), cost_usd: 25 },
    { at: new Date(start + hour).toISOString(), cost_usd: null },
    { at: new Date(start + 2 * hour).toISOString(), cost_usd: 100 },
  ];
  const { stepMs, times, left, even } = burnDown(50, spent, period);
  assert.equal(stepMs, hour);
  assert.deepEqual(
    times.map((time) => (time - start) / hour),
    [0, 1, 2, 3],
  );
  assert.deepEqual(left, [25, 25, 0, null]);
  assert.deepEqual(even, [37.5, 25, 12.5, 0]);
  const week = burnDown(50, [], { start, end: start + 7 * 24 * hour, now: start });
  assert.deepEqual([week.stepMs, week.left[0], week.left[1]], [6 * hour, 50, null]);
  const month = burnDown(50, [], { start, end: start + 30 * 24 * hour, now: start });
  assert.deepEqual([month.stepMs, month.times.length], [24 * hour, 30]);
});

test('issue 8.1 shares, times and sizes of the status are not rounded to counts', () => {
  assert.equal(statusText('memory_share', 0.61), '61%');
  assert.equal(statusText('loop_delay_ms', 4), '4 ms');
  assert.equal(statusText('contents_bytes', 2_500_000), '2.5 MB');
  assert.equal(statusText('body_memory', 1500), '1.5 kB');
  assert.equal(statusText('live_calls', 1234), '1,234');
  assert.deepEqual(
    [statusText('store_up', false), statusText('providers', 'local,up')],
    ['no', 'local, up'],
  );
  assert.equal(statusName('loop_delay_ms'), 'Loop delay');
});

test('issue 8.1 a key of the config that is in use is not said to be never used', () => {
  assert.equal(lastUsed({ last_used_at: null, source: 'environment' }), 'unknown');
  assert.equal(lastUsed({ last_used_at: null, source: 'config' }), 'unknown');
  assert.equal(lastUsed({ last_used_at: null, source: 'store' }), 'never');
  const now = new Date().toISOString();
  assert.notEqual(lastUsed({ last_used_at: now, source: 'config' }), 'unknown');
});
