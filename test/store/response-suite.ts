/** Responses that clients may refer to, in every store (docs/user/responses.md): bytes that no store can read. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { responseBytes, type ResponseToKeep } from '../../src/store/sealed.ts';
import type { Store } from '../../src/store/store.ts';
import { eachWith, type OpenStore } from './opened.ts';

const sealed = Uint8Array.from({ length: 300 }, (_, i) => i % 256);
const size = responseBytes({ sealed, items: [] });
const hourMs = 3_600_000;
const refusal = { ms: hourMs, most: 1000 };
const wide = { links: 1000, bytes: 1e9 };
const roomy = { totalBytes: 1e9, keyBytes: 1e9 };

function response(id: string, more: Partial<ResponseToKeep> = {}): ResponseToKeep {
  const own = { keyId: 'key', previous: undefined, items: [], startedAt: 1, keepMs: hourMs };
  return { id, sealed, ...own, ...more };
}

async function keepAll(store: Store, responses: readonly ResponseToKeep[]): Promise<void> {
  for (const each of responses) {
    await store.responses.keep([each]);
    // The oldest goes first: each has a time of its own.
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function chainOf(
  store: Store,
  id: string,
  { keyId = 'key', limits = wide } = {},
): Promise<readonly string[]> {
  const { responses, end } = await store.responses.chain(keyId, id, limits);
  return [...responses.map((each) => each.id), end];
}

async function sweepAll(store: Store, room = roomy): Promise<number> {
  let removed = 0;
  for (;;) {
    const rows = await store.responses.sweep(1, room);
    if (rows === 0) return removed;
    removed += rows;
  }
}

export function responseSuite(open: OpenStore): void {
  describe('responses', () => {
    const opened = eachWith(open);

    it('is told byte for byte, and only to its key', async () => {
      const { store } = opened;
      assert.deepEqual(await store.responses.keep([response('a')]), [true]);
      const { responses, end } = await store.responses.chain('key', 'a', wide);
      assert.deepEqual([...(responses[0]?.sealed ?? [])], [...sealed]);
      assert.equal(end, 'whole');
      assert.deepEqual(await chainOf(store, 'a', { keyId: 'other' }), ['broken']);
      assert.deepEqual(await chainOf(store, 'b'), ['broken']);
    });

    it('R-27 a chain is read from its end, and R-30 two continue from one', async () => {
      const { store } = opened;
      const ids = ['a', 'b', 'c', 'd'];
      const before = [undefined, 'a', 'b', 'b'];
      await keepAll(
        store,
        ids.map((id, i) => response(id, { previous: before[i] })),
      );
      assert.deepEqual(await chainOf(store, 'c'), ['c', 'b', 'a', 'whole']);
      assert.deepEqual(await chainOf(store, 'd'), ['d', 'b', 'a', 'whole']);
    });

    it('R-28 a chain breaks where a response was removed, or its time is over', async () => {
      const { store } = opened;
      const gone = response('b', { previous: 'a', keepMs: 1 });
      await keepAll(store, [response('a'), gone, response('c', { previous: 'b' })]);
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.deepEqual(await chainOf(store, 'c'), ['c', 'broken']);
      assert.equal(await store.responses.remove('key', 'c'), true);
      assert.equal(await store.responses.remove('key', 'c'), false);
      assert.equal(await store.responses.remove('other', 'a'), false);
      assert.deepEqual(await chainOf(store, 'a'), ['a', 'whole']);
    });

    it('R-34 a response that is removed before its end is not kept at its end', async () => {
      const { store } = opened;
      const named = response('a', { items: ['x'] });
      assert.equal(await store.responses.remove('key', 'a', refusal), false);
      assert.equal(await store.responses.remove('key', 'a', refusal), false);
      assert.deepEqual(await store.responses.keep([named, response('b')]), [false, true]);
      assert.deepEqual(await chainOf(store, 'a'), ['broken']);
      const found = await store.responses.holding('key', ['a', 'x', 'b'], 1e9);
      assert.deepEqual(found.places, [['b', 'b']]);
      assert.deepEqual(await store.responses.keep([response('a', { keyId: 'other' })]), [true]);
      const goesOn = response('c', { previous: 'a' });
      assert.deepEqual(await store.responses.keep([goesOn]), [true]);
      assert.deepEqual(await chainOf(store, 'c'), ['c', 'broken']);
    });

    it('R-34 an id that was refused for its time is free again once it is swept', async () => {
      const { store } = opened;
      await store.responses.remove('key', 'a', { ...refusal, ms: 1 });
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(await sweepAll(store), 1);
      assert.deepEqual(await store.responses.keep([response('a')]), [true]);
      assert.equal(await store.responses.remove('key', 'a', refusal), true);
      assert.deepEqual(await chainOf(store, 'a'), ['broken']);
    });

    it('R-34 of the ids that are refused to a key the last ones are remembered, and they cost no response', async () => {
      const { store } = opened;
      await keepAll(store, [response('mine'), response('other', { keyId: 'other' })]);
      await store.responses.remove('other', 'a', refusal);
      for (const id of ['a', 'b', 'c']) {
        await store.responses.remove('key', id, { ...refusal, most: 2 });
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      assert.equal(await sweepAll(store, { totalBytes: 2 * size, keyBytes: size }), 0);
      assert.deepEqual(await chainOf(store, 'other', { keyId: 'other' }), ['other', 'whole']);
      assert.equal(await sweepAll(store, { totalBytes: 0, keyBytes: 0 }), 2);
      const all = ['a', 'b', 'c'].map((id) => response(id));
      assert.deepEqual(await store.responses.keep(all), [true, false, false]);
      assert.deepEqual(await store.responses.keep([response('a', { keyId: 'other' })]), [false]);
    });

    it('R-36 a chain is read up to a number of links and bytes', async () => {
      const { store } = opened;
      await keepAll(store, [
        response('a'),
        response('b', { previous: 'a' }),
        response('c', { previous: 'b' }),
      ]);
      assert.deepEqual(await chainOf(store, 'c', { limits: { links: 2, bytes: 1e9 } }), [
        'c',
        'b',
        'long',
      ]);
      assert.deepEqual(await chainOf(store, 'c', { limits: { links: 3, bytes: 300 } }), [
        'c',
        'long',
      ]);
      assert.deepEqual(await chainOf(store, 'c', { limits: { links: 3, bytes: 900 } }), [
        'c',
        'b',
        'a',
        'whole',
      ]);
    });

    it('a response in the place of another one has its own items', async () => {
      const { store } = opened;
      await keepAll(store, [response('a', { items: ['x', 'y'] }), response('a', { items: ['y'] })]);
      const { places } = await store.responses.holding('key', ['x', 'y'], 1e9);
      assert.deepEqual(places, [['y', 'a']]);
    });

    it('reports which response holds an item, of several the newest, and none of another key', async () => {
      const { store } = opened;
      await keepAll(store, [
        response('a', { items: ['x', 'y', 'y'] }),
        response('b', { items: ['y', 'z'] }),
        response('c', { items: ['y'], keyId: 'other' }),
      ]);
      const { places, responses } = await store.responses.holding('key', ['x', 'y', 'none'], 1e9);
      assert.deepEqual([...places].sort(), [
        ['x', 'a'],
        ['y', 'b'],
      ]);
      assert.deepEqual(responses.map(({ id }) => id).sort(), ['a', 'b']);
      const named = await store.responses.holding('key', ['b', 'c', 'x'], 1e9);
      assert.deepEqual([...named.places].sort(), [
        ['b', 'b'],
        ['x', 'a'],
      ]);
      assert.deepEqual(named.responses.map(({ id }) => id).sort(), ['a', 'b']);
      const little = await store.responses.holding('key', ['x', 'y'], 300);
      assert.equal(little.responses.length, 1);
      await store.responses.remove('key', 'b');
      assert.deepEqual((await store.responses.holding('key', ['y', 'z'], 1e9)).places, [
        ['y', 'a'],
      ]);
    });

    it('removes what a key kept, and keeps nothing of its calls that began before', async () => {
      const { store } = opened;
      await keepAll(
        store,
        ['a', 'b', 'c'].map((id) => response(id)),
      );
      await keepAll(store, [response('d', { keyId: 'other' })]);
      await store.contents.forget('key', 10);
      assert.equal(await store.responses.removeOf('key', 2), 2);
      assert.equal(await store.responses.removeOf('key', 2), 1);
      assert.equal(await store.responses.removeOf('key', 2), 0);
      const both = [response('e', { startedAt: 9 }), response('f', { startedAt: 10 })];
      assert.deepEqual(await store.responses.keep(both), [false, true]);
      assert.deepEqual(await chainOf(store, 'd', { keyId: 'other' }), ['d', 'whole']);
    });

    it('S8 sweeps what is too old, then the oldest of the largest key: no key pushes out what another has', async () => {
      const { store } = opened;
      await keepAll(store, [
        response('a'),
        response('old', { keepMs: 1 }),
        response('b', { keyId: 'other' }),
        response('c', { keyId: 'other' }),
        response('d', { keyId: 'other' }),
        response('e', { keyId: 'other' }),
      ]);
      assert.equal(await sweepAll(store), 1);
      assert.equal(await sweepAll(store, { ...roomy, keyBytes: 3 * size }), 1);
      assert.deepEqual(await chainOf(store, 'b', { keyId: 'other' }), ['broken']);
      assert.equal(await sweepAll(store, { ...roomy, totalBytes: 2 * size }), 2);
      assert.deepEqual(await chainOf(store, 'a'), ['a', 'whole']);
      assert.deepEqual(await chainOf(store, 'd', { keyId: 'other' }), ['broken']);
      assert.deepEqual(await chainOf(store, 'e', { keyId: 'other' }), ['e', 'whole']);
    });

    it('S8 one pass takes the oldest of many keys, and from each no more than from the others', async () => {
      const { store } = opened;
      const keys = Array.from({ length: 20 }, (_, i) => `key ${i}`);
      for (const id of ['old', 'mid', 'new']) {
        await store.responses.keep(keys.map((keyId) => response(id, { keyId })));
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      await store.responses.keep([response('one', { keyId: 'small' })]);
      const left = async (id: string): Promise<number> => {
        const chains = await Promise.all(keys.map((keyId) => chainOf(store, id, { keyId })));
        return chains.filter(([end]) => end === id).length;
      };
      const leaves = (responses: number) => ({ ...roomy, totalBytes: responses * size });
      assert.equal(await store.responses.sweep(200, leaves(31)), 30, 'one pass');
      assert.deepEqual([await left('old'), await left('mid'), await left('new')], [0, 10, 20]);
      assert.equal(await store.responses.sweep(200, leaves(31)), 0);
      assert.equal(await store.responses.sweep(4, leaves(21)), 4, 'as many as it may');
      assert.equal(await store.responses.sweep(200, leaves(21)), 6);
      assert.deepEqual([await left('mid'), await left('new')], [0, 20]);
      assert.deepEqual(await chainOf(store, 'one', { keyId: 'small' }), ['one', 'whole']);
    });

    it('S8 keys beyond their own limit lose their oldest in one pass', async () => {
      const { store } = opened;
      const keys = ['a', 'b', 'c'];
      for (const id of ['1', '2', '3']) {
        await store.responses.keep(keys.map((keyId) => response(id, { keyId })));
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      assert.equal(await store.responses.sweep(200, { ...roomy, keyBytes: size }), 6);
      for (const keyId of keys) {
        assert.deepEqual(await chainOf(store, '2', { keyId }), ['broken']);
        assert.deepEqual(await chainOf(store, '3', { keyId }), ['3', 'whole']);
      }
    });
  });
}
