/** Concurrent requests are computed in one batch: the calls of the library, and their results. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LlamaContextSequence } from 'node-llama-cpp';
import { loadLibrary } from '../../src/engine/library.ts';
import { FullBatches } from '../../src/engine/model.ts';
import { tinyModel } from '../../src/local-models/model-folder.ts';
import { reasonToSkip } from './engine-client.ts';

const skip = await reasonToSkip();
const sequences = 4;
const steps = 40;

test(
  '§4 every batch holds all who generate, from the first common one to the last',
  { skip },
  async (t) => {
    const { llama } = await loadLibrary(1);
    t.after(() => llama.dispose());
    const model = await llama.loadModel({ modelPath: tinyModel.path });
    const sizes: number[] = [];
    let generating = 0;
    const batches = new FullBatches(() => generating);
    const context = await model.createContext({
      sequences,
      contextSize: 256,
      batching: {
        itemPrioritizationStrategy: (items) => {
          const batch = batches.next(items);
          if (batch.length > 0) sizes.push(batch.length);
          return batch;
        },
      },
    });
    const generate = async (sequence: LlamaContextSequence): Promise<void> => {
      generating += 1;
      const options = { temperature: 2, yieldEogToken: true };
      let count = 0;
      for await (const _ of sequence.evaluateWithMetadata(model.tokenize('Hello'), {}, options)) {
        count += 1;
        if (count === steps) break;
      }
      generating -= 1;
    };
    await Promise.all(Array.from({ length: sequences }, () => generate(context.getSequence())));
    assert.deepEqual(
      sizes,
      Array.from({ length: steps }, () => sequences),
    );
  },
);
