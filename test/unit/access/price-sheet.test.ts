/** Every model of the price package, reckoned here and by the package's own calculator. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { calcPrice, waitForUpdate } from '@pydantic/genai-prices';
import { costOf } from '../../../src/access/cost.ts';
import { PriceList } from '../../../src/access/prices.ts';
import { isInSample } from '../../support/depth.ts';

const list = new PriceList();
const times = [Date.UTC(2026, 10, 21, 2), Date.UTC(2026, 10, 21, 12), Date.UTC(2024, 0, 1)];

interface Counts {
  readonly fresh: number;
  readonly read: number;
  readonly write: number;
  readonly long: number;
  readonly output: number;
  /** The parts of fresh input and of output that are sound. */
  readonly heard?: number;
  readonly spoken?: number;
}

const calls: readonly Counts[] = [
  { fresh: 1, read: 0, write: 0, long: 0, output: 1 },
  { fresh: 1234, read: 5678, write: 910, long: 111, output: 1213 },
  { fresh: 100_000, read: 28_000, write: 0, long: 0, output: 1000 },
  { fresh: 100_000, read: 28_001, write: 0, long: 0, output: 1000 },
  { fresh: 0, read: 200_001, write: 0, long: 0, output: 4096 },
  { fresh: 5000, read: 0, write: 0, long: 0, output: 900, heard: 4000, spoken: 850 },
  { fresh: 300_000, read: 300_000, write: 300_000, long: 100_000, output: 64_000 },
];

/** The package knows a long write only where it has a price of its own. */
function byPackage(provider: string, model: string, at: number, counts: Counts): number {
  const { fresh, read, write, long, output, heard = 0, spoken = 0 } = counts;
  const usage = {
    input_tokens: fresh + read + write,
    cache_read_tokens: read,
    cache_write_tokens: write,
    cache_write_1h_tokens: long,
    output_tokens: output,
    input_audio_tokens: heard,
    output_audio_tokens: spoken,
  };
  const options = { providerId: provider, timestamp: new Date(at) };
  return calcPrice(usage, model, options)?.total_price ?? Number.NaN;
}

test('F6 every price of the package gives the cost that the package itself reckons', async () => {
  const providers = (await waitForUpdate()) ?? [];
  let compared = 0;
  for (const { id: provider, models } of providers) {
    for (const { id: model } of models.filter((_, i) => isInSample(i, 4))) {
      for (const at of times) {
        const price = list.find(provider, model)?.at(at);
        if (price === undefined) continue;
        for (const counts of calls) {
          const { fresh, read, write, long, output, heard = 0, spoken = 0 } = counts;
          const cost = costOf(price, {
            freshInputTokens: fresh,
            cacheReadTokens: read,
            cacheWriteTokens: write,
            cacheWriteLongTokens: long,
            outputTokens: output,
            audioInputTokens: heard,
            audioOutputTokens: spoken,
          });
          assert.ok(cost);
          const theirs = byPackage(provider, model, at, counts) * 1e9;
          // Theirs is a sum of floats, and some of its rates are finer than a picodollar.
          const slack = 1 + (fresh + read + write + output) / 2000;
          const where = `${provider}/${model} ${JSON.stringify(counts)}`;
          assert.ok(Math.abs(cost.total - theirs) <= slack, `${where}: ${cost.total} ${theirs}`);
          compared += 1;
        }
      }
    }
  }
  assert.ok(compared > 3_000, `${compared} compared`);
});
