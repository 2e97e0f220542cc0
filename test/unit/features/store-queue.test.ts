/** Responses are written several at once, each answered by its own result (issue 21: 40 µs a call). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Later } from '../../../src/core/runtime.ts';
import { StoreQueue } from '../../../src/features/stored-responses/stored-responses.ts';
import type { ResponseToKeep } from '../../../src/store/sealed.ts';

function response(id: string, bytes = 10): ResponseToKeep {
  const sealed = new Uint8Array(bytes);
  return { id, keyId: 'key', previous: undefined, sealed, items: [], startedAt: 1, keepMs: 1 };
}

/** A store that answers when it is told to, and a clock that stands. */
function held(): {
  readonly queue: StoreQueue;
  readonly batches: string[][];
  readonly answer: (outcome: readonly boolean[] | Error) => Promise<void>;
  readonly tick: () => Promise<void>;
} {
  const batches: string[][] = [];
  const answers: PromiseWithResolvers<readonly boolean[]>[] = [];
  const timers: (() => void)[] = [];
  const later: Later = (_, run) => {
    timers.push(run);
    return () => undefined;
  };
  const keep = (responses: readonly ResponseToKeep[]): Promise<readonly boolean[]> => {
    batches.push(responses.map(({ id }) => id));
    const answer = Promise.withResolvers<readonly boolean[]>();
    answers.push(answer);
    return answer.promise;
  };
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    queue: new StoreQueue({ keep }, later),
    batches,
    answer: (outcome) => {
      const next = answers.shift();
      if (outcome instanceof Error) next?.reject(outcome);
      else next?.resolve(outcome);
      return settled();
    },
    tick: () => {
      for (const run of timers.splice(0)) run();
      return settled();
    },
  };
}

test('ST6 the first is written at once, those that come meanwhile together', async () => {
  const { queue, batches, answer, tick } = held();
  const first = queue.add(response('a'));
  const others = [queue.add(response('b')), queue.add(response('c'))];
  assert.deepEqual(batches, [['a']]);
  await answer([true]);
  assert.equal(await first, true);
  assert.equal(batches.length, 1, 'not before the pause is over');
  await tick();
  assert.deepEqual(batches, [['a'], ['b', 'c']]);
  await answer([false, true]);
  assert.deepEqual(await Promise.all(others), [false, true]);
});

test('ST6 a write that fails fails those written with it, and no later one', async () => {
  const { queue, batches, answer, tick } = held();
  const first = assert.rejects(queue.add(response('a')), /full/);
  const second = queue.add(response('b'));
  await answer(new Error('full'));
  await first;
  await tick();
  await answer([true]);
  assert.equal(await second, true);
  assert.equal(batches.length, 2);
});

test('G5 one write takes at most 4 MB and 64 responses, and one that is longer alone', async () => {
  const { queue, batches, answer, tick } = held();
  void queue.add(response('a'));
  const large = 3 * 1024 * 1024;
  for (const id of ['b', 'c', 'd']) void queue.add(response(id, 2 * large));
  for (let i = 0; i < 70; i += 1) void queue.add(response(`s${i}`));
  for (let i = 0; i < 5; i += 1) {
    await answer(batches.at(-1)?.map(() => true) ?? []);
    await tick();
  }
  assert.deepEqual(
    batches.map((batch) => batch.length),
    [1, 1, 1, 1, 64, 6],
  );
});
