/** How tokens are chosen, and whose word counts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Token } from 'node-llama-cpp';
import {
  readSampling,
  resolveSampling,
  samplingDefaultsOf,
  wrapSeed,
  type Sampling,
  TokenPicker,
} from '../../../src/engine/sampling.ts';

const isToken = (value: number): value is Token => Number.isInteger(value);
const tokens = (...values: number[]): Token[] => values.filter(isToken);

describe('whose word', () => {
  const recommended = samplingDefaultsOf({ sampling: { temp: 0.6, top_k: 20, top_p: 'x' } });

  test('the request, then the model, then what is customary', () => {
    assert.deepEqual(recommended, { temperature: 0.6, topK: 20 });
    const resolved = resolveSampling(readSampling({ temperature: 1, min_p: 0 }), recommended);
    assert.partialDeepStrictEqual(resolved, { temperature: 1, topK: 20, topP: 0.95, minP: 0 });
    const customary = resolveSampling(readSampling({}), samplingDefaultsOf(undefined));
    assert.partialDeepStrictEqual(customary, {
      temperature: 0.8,
      topK: 40,
      topP: 0.95,
      minP: 0.05,
    });
  });

  test('top_k of -1 is off; any integer is a seed', () => {
    assert.equal(readSampling({ top_k: -1 }).topK, 0);
    for (const seed of [-4, 2 ** 40, 0xffffffff]) {
      assert.ok(wrapSeed(seed) >= 0 && wrapSeed(seed) < 0xffffffff);
    }
  });
});

describe('choosing by probabilities', () => {
  const [a, b, c, d] = [1, 2, 3, 4];
  const chances = new Map(
    tokens(a, b, c, d).map((token, index) => [token, [0.5, 0.3, 0.15, 0.05][index] ?? 0]),
  );
  const uncut = { temperature: 1, top_k: 0, top_p: 1, min_p: 0 };
  const sampling = (more: object): Sampling =>
    resolveSampling(readSampling({ ...uncut, ...more }), {});

  function chosen(more: object, generated: Token[] = []): ReadonlyMap<number, number> {
    const picker = new TokenPicker(sampling(more), 0, 11);
    const counts = new Map<number, number>();
    for (let times = 0; times < 2000; times++) {
      const { token } = picker.pick(chances, generated);
      counts.set(token, (counts.get(token) ?? 0) + 1);
    }
    return counts;
  }
  const set = (more: object, generated: Token[] = []): number[] =>
    [...chosen(more, generated).keys()].sort();

  test('as likely as the model says', () => {
    const counts = chosen({});
    for (const [token, chance] of chances) {
      assert.ok(Math.abs((counts.get(token) ?? 0) / 2000 - chance) < 0.05);
    }
  });

  test('cut by number, by mass, by the likeliest one', () => {
    assert.deepEqual(set({ temperature: 0 }), [a]);
    assert.deepEqual(set({ top_k: 2 }), [a, b]);
    assert.deepEqual(set({ top_p: 0.75 }), [a, b]);
    assert.deepEqual(set({ min_p: 0.25 }), [a, b, c]);
  });

  test('penalties and biases change the order, not what is reported', () => {
    const picker = new TokenPicker(sampling({ temperature: 0, presence_penalty: 2 }), 2, 0);
    const choice = picker.pick(chances, tokens(a, a));
    assert.equal(choice.token, b);
    assert.equal(choice.logprob, Math.log(0.3));
    assert.deepEqual(
      choice.top.map(({ token }) => token),
      [a, b],
    );
    assert.deepEqual(set({ logit_bias: { [d]: 100 } }), [d]);
    assert.deepEqual(set({ logit_bias: { [a]: -100 } }), [b, c, d]);
  });
});
