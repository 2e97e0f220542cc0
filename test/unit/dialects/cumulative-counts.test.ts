/** Counts of a Gemini stream are cumulative: a count that a later report lacks is not 0. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeUsage, type Usage } from '../../../src/core/generation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { readEvents, upstreamHalves } from '../../property/dialect-halves.ts';

/** The usage at the end of a stream whose chunks report these counts. */
function usageOf(...reports: readonly JsonObject[]): Usage | undefined {
  const frames = reports.map((usageMetadata, i) => {
    const last = i === reports.length - 1 ? { finishReason: 'STOP' } : {};
    const candidate = { content: { role: 'model', parts: [{ text: 'a' }] }, index: 0, ...last };
    const data = JSON.stringify({ candidates: [candidate], usageMetadata });
    return { bytes: Buffer.alloc(0), event: undefined, data };
  });
  let usage: Usage | undefined;
  for (const event of readEvents(upstreamHalves.gemini, frames)) {
    if (event.type === 'usage') usage = mergeUsage(usage, event.usage);
  }
  return usage;
}

const prompt = { promptTokenCount: 10 };

for (const [name, reports, output, reasoning] of [
  [
    'the last report has the prompt and the sum only',
    [
      { ...prompt, candidatesTokenCount: 7, totalTokenCount: 17 },
      { ...prompt, totalTokenCount: 10 },
    ],
    7,
    0,
  ],
  [
    'the last report has no answer, but thoughts',
    [
      { ...prompt, candidatesTokenCount: 7, totalTokenCount: 17 },
      { ...prompt, thoughtsTokenCount: 5, totalTokenCount: 15 },
    ],
    12,
    5,
  ],
  [
    'the last report has no thoughts',
    [
      { ...prompt, thoughtsTokenCount: 5, totalTokenCount: 15 },
      { ...prompt, candidatesTokenCount: 7, totalTokenCount: 22 },
    ],
    12,
    5,
  ],
  [
    'pieces of a text in between',
    [
      { ...prompt, candidatesTokenCount: 3 },
      { ...prompt, candidatesTokenCount: 4 },
      { ...prompt, candidatesTokenCount: 5 },
      { ...prompt },
      { promptTokenCount: null },
    ],
    5,
    0,
  ],
  [
    'a count that is said to be lower',
    [{ candidatesTokenCount: 7 }, { candidatesTokenCount: 6 }],
    6,
    0,
  ],
] as const) {
  test(`F57 a count that is missing is not 0: ${name}`, () => {
    const usage = usageOf(...reports);
    assert.deepEqual([usage?.outputTokens, usage?.reasoningTokens], [output, reasoning]);
  });
}

test('F57 what was read from the cache stays known', () => {
  const cached = { ...prompt, cachedContentTokenCount: 8, candidatesTokenCount: 1 };
  const usage = usageOf(cached, { ...prompt, candidatesTokenCount: 2 });
  assert.deepEqual(
    [usage?.freshInputTokens, usage?.cacheReadTokens, usage?.outputTokens],
    [2, 8, 2],
  );
});
