/** E17: answers by `Idempotency-Key`, in every store. A lease or a time below zero is over at once. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AnswerToKeep, Claimed } from '../../src/store/sealed.ts';
import type { Store } from '../../src/store/store.ts';
import { eachWith, type OpenStore } from './opened.ts';

const sealed = Uint8Array.from({ length: 300 }, (_, i) => i % 256);
const maxBytes = 1_000_000;

interface More {
  readonly keyId?: string;
  readonly owner?: string;
  readonly leaseMs?: number;
  readonly fingerprint?: string;
}

function claim(store: Store, id: string, more: More = {}): Promise<Claimed> {
  const { keyId = 'key', owner = 'one', leaseMs = 30_000, fingerprint = 'mark' } = more;
  return store.answers.claim({ id, keyId, owner, fingerprint, leaseMs });
}

function keep(store: Store, id: string, more: Partial<AnswerToKeep> = {}): Promise<boolean> {
  const usual = { owner: 'one', answer: sealed, keepMs: 60_000, maxBytes, maxAnswers: 100 };
  return store.answers.keep({ id, ...usual, ...more });
}

/** Claims and answers; whether it was there before. */
async function serve(store: Store, id: string, more: More & Partial<AnswerToKeep> = {}) {
  const claimed = await claim(store, id, { owner: `${id} ${Math.random()}`, ...more });
  if (claimed.state === 'done') return true;
  await keep(store, id, more);
  return false;
}

export function answerSuite(open: OpenStore): void {
  describe('E17 answers by Idempotency-Key', () => {
    const opened = eachWith(open);

    it('of many that claim at once, one may answer; the others are told that it does', async () => {
      const { store } = opened;
      const owners = Array.from({ length: 20 }, (_, i) => `owner ${i}`);
      const told = await Promise.all(owners.map((owner) => claim(store, 'a', { owner })));
      assert.equal(told.filter(({ state }) => state === 'mine').length, 1);
      const others = told.filter(({ state }) => state === 'running');
      assert.deepEqual(
        others,
        Array.from({ length: 19 }, () => ({ state: 'running', fingerprint: 'mark' })),
      );
    });

    it('what was kept is told byte for byte, with the mark of its request', async () => {
      const { store } = opened;
      assert.deepEqual(await claim(store, 'a', { fingerprint: 'first' }), { state: 'mine' });
      assert.equal(await keep(store, 'a'), true);
      assert.equal(await keep(store, 'a'), true, 'told twice');
      const told = await claim(store, 'a', { owner: 'two', fingerprint: 'second' });
      assert.ok(told.state === 'done');
      assert.equal(told.fingerprint, 'first');
      assert.deepEqual([...(told.answer ?? [])], [...sealed]);
      await claim(store, 'b');
      await keep(store, 'b', { answer: undefined });
      assert.deepEqual(await claim(store, 'b', { owner: 'two' }), {
        state: 'done',
        fingerprint: 'mark',
        answer: undefined,
      });
    });

    it('a claim that is asked for twice by one owner is one', async () => {
      const { store } = opened;
      await claim(store, 'a');
      assert.deepEqual(await claim(store, 'a'), { state: 'mine' });
    });

    it('a claim that is given up is free; others cannot give it up', async () => {
      const { store } = opened;
      await claim(store, 'a');
      await store.answers.release({ id: 'a', owner: 'two' });
      assert.equal((await claim(store, 'a', { owner: 'two' })).state, 'running');
      await store.answers.release({ id: 'a', owner: 'one' });
      assert.equal((await claim(store, 'a', { owner: 'two' })).state, 'mine');
      await keep(store, 'a', { owner: 'two' });
      await store.answers.release({ id: 'a', owner: 'two' });
      assert.equal((await claim(store, 'a')).state, 'done', 'an answer is no claim');
    });

    it('a lease that ran out is free, and who lost it keeps nothing', async () => {
      const { store } = opened;
      await claim(store, 'a', { leaseMs: -1 });
      assert.equal((await claim(store, 'a', { owner: 'two' })).state, 'mine');
      await store.answers.renew([{ id: 'a', owner: 'one' }], 60_000);
      assert.equal(await keep(store, 'a'), false);
      assert.equal((await claim(store, 'a', { owner: 'three' })).state, 'running');
      assert.equal(await keep(store, 'a', { owner: 'two' }), true);
    });

    it('a lease that ran out and was not taken is found again by its owner', async () => {
      const { store } = opened;
      for (const id of ['a', 'b', 'c']) await claim(store, id, { leaseMs: -1 });
      assert.equal(await store.answers.sweep(100, maxBytes), 0, 'remembered for a while');
      const claims = ['a', 'b', 'x'].map((id) => ({ id, owner: 'one' }));
      await store.answers.renew(claims, 30_000);
      assert.equal((await claim(store, 'a', { owner: 'two' })).state, 'running');
      assert.equal(await keep(store, 'c'), true);
      await store.answers.renew([], 30_000);
    });

    it('a claim that is not renewed is removed in the end', async () => {
      const { store } = opened;
      await claim(store, 'a', { leaseMs: -600_001 });
      assert.equal(await store.answers.sweep(100, maxBytes), 1);
      assert.equal(await keep(store, 'a'), false);
    });

    it('an answer is gone when its time is over', async () => {
      const { store } = opened;
      await serve(store, 'a', { owner: 'one', keepMs: -1 });
      assert.equal((await claim(store, 'a', { owner: 'two', keyId: 'other' })).state, 'mine');
      await store.answers.release({ id: 'a', owner: 'two' });
      for (const id of ['a', 'b', 'c']) await serve(store, id, { owner: 'one', keepMs: -1 });
      assert.equal(await store.answers.sweep(2, maxBytes), 2);
      assert.equal(await store.answers.sweep(2, maxBytes), 1);
      assert.equal(await store.answers.sweep(2, maxBytes), 0);
    });

    it('after a start all claims are free, and the answers are there', async () => {
      const { store } = opened;
      await claim(store, 'a');
      await serve(store, 'b', { owner: 'one' });
      await store.answers.releaseAll();
      assert.equal((await claim(store, 'a', { owner: 'two' })).state, 'mine');
      assert.equal((await claim(store, 'b', { owner: 'two' })).state, 'done');
    });

    it('the oldest answers of a key make room for its newest, in number and in bytes', async () => {
      const { store } = opened;
      await serve(store, 'other', { keyId: 'other', owner: 'one' });
      for (const id of ['1', '2', '3', '4', '5']) {
        await serve(store, id, { owner: 'one', maxAnswers: 4, keepMs: 60_000 + Number(id) });
      }
      const known = async (id: string): Promise<boolean> => {
        const told = await claim(store, id, { owner: 'asks' });
        if (told.state === 'mine') await store.answers.release({ id, owner: 'asks' });
        return told.state === 'done';
      };
      assert.equal(await known('1'), false);
      assert.equal(await known('2'), true);
      const large = new Uint8Array(2000);
      await serve(store, 'large', { owner: 'one', answer: large, maxBytes: 4000 });
      assert.equal(await known('large'), true);
      assert.equal(await known('3'), false, 'two and a half kilobytes put the others out');
      assert.equal(await known('5'), true, 'as far as they must');
      assert.equal(await known('other'), true, 'those of another key are not touched');
    });

    it('where all together take too much, the largest loses its oldest, a few at a time', async () => {
      const { store } = opened;
      const answer = new Uint8Array(1000 - 512);
      for (let i = 0; i < 8; i++) {
        await serve(store, `a${i}`, { keyId: 'a', owner: 'one', answer, keepMs: 60_000 + i });
      }
      for (let i = 0; i < 3; i++) {
        await serve(store, `b${i}`, { keyId: 'b', owner: 'one', answer, keepMs: 1000 });
      }
      assert.equal(await store.answers.sweep(100, 11_000), 0);
      assert.equal(await store.answers.sweep(2, 7000), 2);
      assert.equal(await store.answers.sweep(100, 7000), 2);
      assert.equal(await store.answers.sweep(100, 7000), 0);
      const owner = 'two';
      assert.equal((await claim(store, 'a3', { owner })).state, 'mine');
      assert.equal((await claim(store, 'a4', { owner })).state, 'done');
      assert.equal((await claim(store, 'b0', { owner })).state, 'done');
      for (let i = 0; i < 10 && (await store.answers.sweep(100, 0)) > 0; i++);
      assert.equal((await claim(store, 'b0', { owner: 'three' })).state, 'mine');
      // Sums that were wrong would make room for ever, or never.
      assert.equal(await store.answers.sweep(100, 0), 0);
    });

    it('all at once: no key has two that answer, there is no deadlock, and the sums are right', async () => {
      const { store } = opened;
      const answering = new Map<string, string>();
      const usual = { keepMs: 60_000, maxBytes: 4000, maxAnswers: 2 };
      let served = 0;
      const one = async (n: number): Promise<void> => {
        const id = `id ${n % 12}`;
        const owner = `owner ${n}`;
        const told = await claim(store, id, { owner, keyId: `key ${n % 3}` });
        if (told.state !== 'mine') return;
        assert.equal(answering.get(id), undefined, `two answer ${id}`);
        answering.set(id, owner);
        await store.answers.renew([{ id, owner }], 30_000);
        answering.delete(id);
        if (n % 5 === 0) return store.answers.release({ id, owner });
        const keepMs = n % 7 === 0 ? -1 : usual.keepMs;
        const kept = { id, owner, answer: sealed, ...usual, keepMs };
        assert.equal(await store.answers.keep(kept), true);
        served += 1;
        if (n % 4 === 0) await store.answers.sweep(3, 5000);
      };
      const lane = async (first: number): Promise<void> => {
        for (let n = first; n < 600; n += 30) await one(n);
      };
      await Promise.all(Array.from({ length: 30 }, (_, i) => lane(i)));
      assert.ok(served > 12, `${served}`);
      // Each removal takes one answer: what is left of the sums when all are gone would be told here.
      for (let i = 0; i < 200 && (await store.answers.sweep(1, 0)) > 0; i++);
      assert.equal(await store.answers.sweep(1, 0), 0);
      await serve(store, 'last', { owner: 'one', ...usual, maxBytes: 812 });
      assert.equal((await claim(store, 'last', { owner: 'two' })).state, 'done');
      assert.equal(await store.answers.sweep(100, 812), 0, 'one answer, and no more');
      assert.equal(await store.answers.sweep(100, 811), 1);
    });
  });
}
