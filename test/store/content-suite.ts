/** What calls said, in every store (docs/user/content.md): bytes that no store can read. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { contentBytes } from '../../src/store/sealed.ts';
import type { SealedContent, Store } from '../../src/store/store.ts';
import { eachWith, type OpenStore } from './opened.ts';

const sealed = Uint8Array.from({ length: 300 }, (_, i) => i % 256);
const size = contentBytes({ sealed });

function content(id: string, startedAt: number, keyId = 'key'): SealedContent {
  return { id, keyId, startedAt, sealed };
}

async function there(store: Store, ...ids: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(ids.map((id) => store.contents.find(id)));
  return found.flatMap((each) => (each === undefined ? [] : [each.id]));
}

export function contentSuite(open: OpenStore): void {
  describe('contents of calls', () => {
    const opened = eachWith(open);

    it('is told byte for byte, and nothing of a call that has none', async () => {
      const { contents } = opened.store;
      await contents.keep([content('a', 1), content('b', 2, 'other')]);
      const found = await contents.find('b');
      assert.deepEqual([...(found?.sealed ?? [])], [...sealed]);
      assert.deepEqual([found?.keyId, found?.startedAt], ['other', 2]);
      assert.equal(await contents.find('c'), undefined);
    });

    it('what is there stays when it is told again, and the others are kept', async () => {
      const { contents } = opened.store;
      await contents.keep([content('a', 1)]);
      await contents.keep([{ ...content('a', 9), sealed: new Uint8Array(5) }, content('b', 2)]);
      assert.equal((await contents.find('a'))?.sealed.length, sealed.length);
      assert.equal(await contents.bytes(), 2 * size);
    });

    it('removes what began before a time, the oldest first, at most this many', async () => {
      const { store } = opened;
      const { contents } = store;
      await contents.keep(['a', 'b', 'c', 'd'].map((id, i) => content(id, 10 * (4 - i))));
      assert.deepEqual(await contents.remove({ before: 31 }, 2), { rows: 2, bytes: 2 * size });
      assert.deepEqual(await there(store, 'a', 'b', 'c', 'd'), ['a', 'b']);
      assert.deepEqual(await contents.remove({ before: 31 }, 2), { rows: 1, bytes: size });
      assert.deepEqual(await contents.remove({ before: 31 }, 2), { rows: 0, bytes: 0 });
      assert.equal(await contents.bytes(), size);
    });

    it('removes the oldest until there is room', async () => {
      const { store } = opened;
      await store.contents.keep(['a', 'b', 'c'].map((id, i) => content(id, i)));
      const gone = await store.contents.remove({ bytes: size + 1 }, 100);
      assert.deepEqual(gone, { rows: 2, bytes: 2 * size });
      assert.deepEqual(await there(store, 'a', 'b', 'c'), ['c']);
    });

    it('makes room with the oldest of the key that takes the most: a busy key does not push out what others said', async () => {
      const { store } = opened;
      const busy = ['a', 'b', 'c'].map((id, i) => content(id, 10 + i));
      await store.contents.keep([content('quiet', 1, 'other'), ...busy]);
      const gone = await store.contents.remove({ bytes: size + 1 }, 100);
      assert.deepEqual(gone, { rows: 2, bytes: 2 * size });
      assert.deepEqual(await there(store, 'quiet', 'a', 'b', 'c'), ['quiet', 'c']);
    });

    it('removes what one key said, and nothing of another', async () => {
      const { store } = opened;
      await store.contents.keep([content('a', 1), content('b', 1, 'other'), content('c', 1)]);
      assert.equal((await store.contents.remove({ keyId: 'key' }, 100)).rows, 2);
      assert.deepEqual(await there(store, 'a', 'b', 'c'), ['b']);
    });

    it('S4 keeps nothing of calls of a key that began before it was forgotten, however late they come', async () => {
      const { store } = opened;
      const { contents } = store;
      await contents.forget('key', 10);
      await contents.forget('key', 5);
      await contents.keep([content('a', 9), content('b', 9, 'other'), content('c', 10)]);
      assert.deepEqual(await there(store, 'a', 'b', 'c'), ['b', 'c']);
      await contents.forget('key', 11);
      await contents.keep([content('d', 10)]);
      assert.deepEqual(await there(store, 'c', 'd'), ['c']);
    });
  });
}
