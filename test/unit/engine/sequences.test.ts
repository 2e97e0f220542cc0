/** Which sequence a request gets, who is computed with whom, and who may change its state when. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { LlamaContextSequence, Token } from 'node-llama-cpp';
import { planCapacity, type Capacity, FullBatches, nextBatch } from '../../../src/engine/model.ts';
import {
  SliceSizer,
  SequenceSlot,
  StateGate,
  aloneInBatch,
  chooseSlot,
  sharedBatch,
} from '../../../src/engine/slots.ts';

const isToken = (value: number): value is Token => Number.isInteger(value);
const tokens = (...values: number[]): Token[] => values.filter(isToken);
const range = (from: number, count: number): Token[] =>
  tokens(...Array.from({ length: count }, (_, index) => from + index));

/** A sequence that remembers its tokens and who computed them with whom. */
class FakeSequence {
  readonly needsCheckpoints = false;
  readonly read: { readonly count: number; readonly priority: number }[] = [];
  kept: Token[] = [];

  get nextTokenIndex(): number {
    return this.kept.length;
  }

  compareContextTokens(others: Token[]): { firstDifferentIndex: number } {
    const at = this.kept.findIndex((token, index) => token !== others[index]);
    return { firstDifferentIndex: at === -1 ? Math.min(this.kept.length, others.length) : at };
  }

  async adaptStateToTokens(others: Token[]): Promise<void> {
    this.kept = this.kept.slice(0, this.compareContextTokens(others).firstDifferentIndex);
  }

  async evaluateWithoutGeneratingNewTokens(
    added: Token[],
    { evaluationPriority }: { evaluationPriority: number },
  ): Promise<void> {
    this.read.push({ count: added.length, priority: evaluationPriority });
    this.kept.push(...added);
  }
}

interface Rig {
  readonly slot: SequenceSlot;
  readonly sequence: FakeSequence;
}

function slotWith(kept: Token[], slice = 4, now: () => number = () => 0): Rig {
  const sequence = new FakeSequence();
  sequence.kept = kept;
  // Only these members are called.
  const stand: unknown = sequence;
  const isSequence = (value: unknown): value is LlamaContextSequence => value === stand;
  assert.ok(isSequence(stand));
  const sizer = new SliceSizer(slice);
  return {
    slot: new SequenceSlot({ sequence: stand, slice, sizer, now, gate: new StateGate() }),
    sequence,
  };
}

const { signal } = new AbortController();

describe('choice', () => {
  const fresh = slotWith([]).slot;
  const short = slotWith(range(0, 10)).slot;
  const long = slotWith(range(0, 100)).slot;

  test('the sequence that shares most with the prompt', () => {
    assert.equal(chooseSlot([fresh, short, long], range(0, 120)), long);
    assert.equal(chooseSlot([fresh, long, short], range(0, 12)), short);
  });

  test('a long conversation is not given up for a short common beginning', () => {
    assert.equal(chooseSlot([fresh, long], [...range(0, 20), ...range(500, 20)]), fresh);
    assert.equal(chooseSlot([long, fresh], range(500, 20)), long, 'the longest unused one');
  });
});

describe('reading a prompt', () => {
  test('what is shared is kept, the rest is read in slices, the last token is left', async () => {
    const { slot, sequence } = slotWith(range(0, 5));
    const kept = await slot.readPrompt({ prompt: range(0, 12), alone: false, signal });
    assert.equal(kept, 5);
    assert.deepEqual(sequence.kept, range(0, 11));
    assert.deepEqual(
      sequence.read.map(({ count }) => count),
      [4, 2],
    );
    assert.ok(sequence.read.every(({ priority }) => priority === sharedBatch));
  });

  test('a seeded request keeps only what was read alone and in whole slices', async () => {
    const { slot, sequence } = slotWith(range(0, 11));
    const prompt = range(0, 12);
    const counts = (): readonly number[] => sequence.read.splice(0).map(({ count }) => count);
    assert.equal(await slot.readPrompt({ prompt, alone: true, signal }), 0);
    assert.ok(sequence.read.every(({ priority }) => priority === aloneInBatch));
    assert.deepEqual(counts(), [4, 4, 3]);
    assert.equal(await slot.readPrompt({ prompt, alone: true, signal }), 8);
    assert.deepEqual(counts(), [3]);
    await slot.readPrompt({ prompt: [...range(0, 6), ...range(50, 6)], alone: false, signal });
    counts();
    assert.equal(await slot.readPrompt({ prompt, alone: true, signal }), 4);
    assert.deepEqual(counts(), [4, 3]);
  });

  test('it can be given up between two slices', async () => {
    const leaving = new AbortController();
    const { slot, sequence } = slotWith([]);
    const reading = slot.readPrompt({ prompt: range(0, 40), alone: false, signal: leaving.signal });
    leaving.abort();
    await assert.rejects(reading);
    assert.ok(sequence.kept.length <= 4);
  });
});

describe('batches', () => {
  const item = (count: number, evaluationPriority: 1 | 5 = sharedBatch) => ({
    tokens: range(0, count),
    logits: [],
    evaluationPriority,
  });

  test('one that must be computed alone is, in the order of asking', () => {
    const [shared, alone, other] = [item(1), item(3, aloneInBatch), item(1)];
    assert.deepEqual(nextBatch({ items: [alone, shared], size: 8 }), [
      { item: alone, processAmount: 3 },
    ]);
    const together = nextBatch({ items: [shared, alone, other], size: 8 });
    assert.deepEqual(new Set(together.map((part) => part.item)), new Set([shared, other]));
  });

  test('who generates gets its token, who reads shares the rest', () => {
    const [first, second, generating] = [item(20), item(3), item(1)];
    const amounts = new Map(
      nextBatch({ items: [first, second, generating], size: 10 }).map((part) => [
        part.item,
        part.processAmount,
      ]),
    );
    assert.deepEqual([amounts.get(generating), amounts.get(second), amounts.get(first)], [1, 3, 6]);
  });
});

describe('a batch of all who generate', () => {
  const item = (count: number, evaluationPriority: 1 | 5 = sharedBatch) => ({
    tokens: range(0, count),
    logits: [],
    evaluationPriority,
  });
  const [first, second, alone] = [item(1), item(1), item(1, aloneInBatch)];
  const sizes = (batches: FullBatches, items: (typeof first)[]): number =>
    batches.next({ items, size: 8 }).length;

  test('waits for those who are about to ask, but not for ever', () => {
    const batches = new FullBatches(() => 2);
    assert.deepEqual([sizes(batches, [first]), sizes(batches, [first])], [0, 0]);
    assert.equal(sizes(batches, [first, second]), 2);
    const looks = Array.from({ length: 100 }, () => sizes(batches, [first]));
    assert.equal(looks.indexOf(1), 16);
    assert.equal(looks.lastIndexOf(0) > 16, true, 'and waits again for the next batch');
  });

  test('is not waited for by one alone, nor by who must be computed alone', () => {
    assert.equal(sizes(new FullBatches(() => 1), [first]), 1);
    assert.equal(sizes(new FullBatches(() => 0), [first]), 1, 'a prompt that is read');
    assert.equal(sizes(new FullBatches(() => 3), [alone, first]), 1);
  });
});

test('while one changes its state the others pause', async () => {
  const gate = new StateGate();
  const order: string[] = [];
  assert.equal(gate.pause(), undefined);
  const changed = Promise.withResolvers<void>();
  const change = gate.change(() => changed.promise);
  const step = (async () => {
    await gate.pause();
    order.push('step');
  })();
  await new Promise(setImmediate);
  order.push('changed');
  changed.resolve();
  await Promise.all([change, step]);
  assert.deepEqual(order, ['changed', 'step']);
  assert.equal(gate.pause(), undefined);
});

test('short memory: fewer at once first, then shorter ones; what was asked for is not made shorter', async () => {
  const plan = (memoryBytes: number, contextSize?: number): Promise<Capacity> =>
    planCapacity({
      parallel: 4,
      trainContextSize: 32_768,
      memoryBytes,
      ...(contextSize === undefined ? {} : { contextSize }),
      estimate: async (capacity) => capacity.contextSize * capacity.parallel,
    });
  assert.deepEqual(await plan(40_000), { contextSize: 8192, parallel: 4 });
  assert.deepEqual(await plan(20_000), { contextSize: 8192, parallel: 2 });
  assert.deepEqual(await plan(5000), { contextSize: 4096, parallel: 1 });
  assert.deepEqual(await plan(10), { contextSize: 2048, parallel: 1 });
  assert.deepEqual(await plan(20_000, 16_384), { contextSize: 16_384, parallel: 1 });
});

describe('slices', () => {
  const prompt = range(0, 201);

  /** A machine on which each token takes so long, and the sizes of what it reads at once. */
  async function slices(msPerToken: number, alone: boolean): Promise<readonly number[]> {
    const { slot, sequence } = slotWith([], 64, () => sequence.kept.length * msPerToken);
    await slot.readPrompt({ prompt, alone, signal });
    return sequence.read.map(({ count }) => count);
  }

  test('where tokens are slow, so few are read at once that a place is free soon after its client left', async () => {
    assert.deepEqual((await slices(5, false)).slice(0, 3), [16, 12, 12]);
    assert.deepEqual((await slices(100, false)).slice(0, 3), [16, 8, 8]);
    assert.deepEqual((await slices(0.1, false)).slice(0, 3), [16, 64, 64]);
  });

  test('a seeded request reads the same slices however fast they are', async () => {
    assert.deepEqual(await slices(5, true), [64, 64, 64, 8]);
    assert.deepEqual(await slices(0.1, true), [64, 64, 64, 8]);
  });
});
