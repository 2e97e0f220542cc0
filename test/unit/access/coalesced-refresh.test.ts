import assert from 'node:assert/strict';
import { it } from 'node:test';
import { makeKey } from '../../../src/access/keys/key-format.ts';
import { KeyRing } from '../../../src/access/keys/keys.ts';
import { CoalescedRefresh } from '../../../src/access/keys/keys.ts';
import { altered, memoryStore } from '../../support/memory-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { countingBytes, HeldClock } from './fakes.ts';

function countingStore() {
  const inner = memoryStore();
  const counted = { looks: 0 };
  const since: Store['keys']['since'] = (stamp) => {
    counted.looks += 1;
    return inner.keys.since(stamp);
  };
  return { counted, store: altered(inner, { keys: { since } }) };
}

async function pair() {
  const { store, counted } = countingStore();
  const clock = new HeldClock();
  const one = new KeyRing({ store, clock, random: countingBytes(1), shared: true });
  const two = new KeyRing({ store, clock, random: countingBytes(7), shared: true });
  await Promise.all([one.load(), two.load()]);
  counted.looks = 0;
  return { store, counted, one, two };
}

it('K8 a key that another gateway made or rotated a moment ago is looked for, and opens', async () => {
  const { one, two } = await pair();
  const { id, key } = await one.create({ name: 'new', models: ['*'] });
  const opens = (text: string): string => two.authenticate(undefined, text).keyId;
  assert.throws(() => opens(key.reveal()), { code: 'unauthenticated' });
  await two.refreshKey(undefined, key.reveal());
  assert.equal(opens(key.reveal()), id);
  const rotated = await one.rotate(id, 1000);
  assert.ok(rotated !== undefined);
  assert.throws(() => opens(rotated.key.reveal()), { code: 'unauthenticated' });
  await two.refreshKey(`Bearer ${rotated.key.reveal()}`, undefined);
  assert.equal(opens(rotated.key.reveal()), id);
});

it('B72 nothing is looked for that is no key, or a revoked one, or where nobody else makes keys', async () => {
  const { store, counted, one } = await pair();
  const { id, key } = await one.create({ name: 'new', models: ['*'] });
  await one.revoke(id);
  for (const text of ['', 'sk-other', `${key.reveal()}x`, key.reveal().replace(/.$/, '-')]) {
    assert.equal(one.refreshKey(undefined, text), undefined);
  }
  assert.equal(one.refreshKey(undefined, key.reveal()), undefined, 'revoked');
  const alone = new KeyRing({ store, clock: new HeldClock(), random: countingBytes(3) });
  assert.equal(alone.refreshKey(undefined, makeKey(countingBytes(9)).key.reveal()), undefined);
  assert.equal(counted.looks, 0);
});

it('B73 a flood of made-up keys is one look, and beyond a thousand none', async () => {
  const { counted, two } = await pair();
  const random = countingBytes(5);
  const asked = Array.from({ length: 1500 }, () =>
    two.refreshKey(undefined, makeKey(random).key.reveal()),
  );
  assert.equal(asked.filter((look) => look === undefined).length, 500);
  await Promise.all(asked);
  assert.equal(counted.looks, 1);
});

it('who asks while a look runs waits for the next one, a quarter of a second later', async () => {
  let now = 0;
  const begun: number[] = [];
  let end = (): void => undefined;
  const read = (): Promise<void> => {
    begun.push(now);
    return new Promise((resolve) => {
      end = resolve;
    });
  };
  const refresh = new CoalescedRefresh({ read, clock: { now: () => now } });
  const first = refresh.ask();
  while (begun.length === 0) await new Promise((resolve) => setImmediate(resolve));
  now = 250;
  const second = refresh.ask();
  assert.notEqual(first, second);
  end();
  await first;
  while (begun.length === 1) await new Promise((resolve) => setImmediate(resolve));
  end();
  await second;
  assert.deepEqual(begun, [0, 250]);
});

it('L1 while the store cannot be asked a key that nobody knows is 503, not 401', async () => {
  const { store, two } = await pair();
  await store.close();
  const stranger = makeKey(countingBytes(9)).key.reveal();
  const looking = two.refreshKey(undefined, stranger);
  assert.ok(looking !== undefined);
  await assert.rejects(looking, { code: 'store_unavailable' });
});
