/** When keys were last used, and what is known of keys without their secrets. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KeyRing, type KeyRingDeps } from '../../../src/access/keys/keys.ts';
import { Pepper } from '../../../src/access/keys/seal-key.ts';
import type { Log } from '../../../src/core/runtime.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { KeyUse } from '../../../src/store/records.ts';
import type { Store } from '../../../src/store/store.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { countingBytes, HeldClock, silentLog } from './fakes.ts';

interface Rig {
  readonly keys: KeyRing;
  readonly store: Store;
  readonly clock: HeldClock;
  /** What was written to the store. */
  readonly written: KeyUse[];
  readonly warnings: string[];
  /** While it is true, the store takes no uses. */
  down: boolean;
}

async function ring(more: Partial<KeyRingDeps> = {}): Promise<Rig> {
  const store = more.store ?? memoryStore();
  const clock = new HeldClock();
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (event) => warnings.push(event) };
  const keys = new KeyRing({ clock, random: countingBytes(), log, ...more, store });
  await keys.load();
  const rig: Rig = { keys, store, clock, written: [], warnings, down: false };
  const touch = store.keys.touch;
  store.keys.touch = async (uses) => {
    if (rig.down) throw new Error('down');
    rig.written.push(...uses);
    await touch(uses);
  };
  return rig;
}

const day = 86_400_000;

describe('S5 last uses', () => {
  it('of both secrets are written ten seconds after the first, once each', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { keys, clock, written } = await ring();
    const { id, key: old } = await keys.create({ name: 'a', models: ['*'] });
    const rotated = await keys.rotate(id, day);
    assert.ok(rotated);
    keys.authenticate(undefined, old.reveal());
    clock.time += 5;
    const at = clock.wall();
    keys.authenticate(undefined, old.reveal());
    keys.authenticate(undefined, rotated.key.reveal());
    t.mock.timers.tick(9999);
    assert.deepEqual(written, []);
    t.mock.timers.tick(1);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(written, [
      { id, at, previous: false },
      { id, at, previous: true },
    ]);
    clock.time += 1;
    keys.authenticate(undefined, rotated.key.reveal());
    t.mock.timers.tick(10_000);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(written.slice(2), [{ id, at: at + 1, previous: false }]);
  });

  it('that the store did not take are written with the next ones, those of old secrets too', async () => {
    const rig = await ring();
    const { keys, written, warnings } = rig;
    const { id, key: old } = await keys.create({ name: 'a', models: ['*'] });
    const rotated = await keys.rotate(id, day);
    rig.down = true;
    keys.authenticate(undefined, old.reveal());
    keys.authenticate(undefined, rotated?.key.reveal());
    await keys.flushUses();
    assert.deepEqual(warnings, ['key_uses_not_written']);
    rig.down = false;
    await keys.flushUses();
    assert.deepEqual(
      written.map(({ previous }) => previous),
      [false, true],
    );
    assert.equal(keys.find(id)?.record.lastUsedAt, undefined, 'the key itself is unchanged');
    const again = await ring({ store: rig.store });
    assert.equal(again.keys.find(id)?.previousUsedAt, rig.clock.wall());
  });

  it('of keys of the config and the environment are shown, and not stored', async () => {
    const { keys, written, clock } = await ring();
    const secret = 'a-secret-of-any-form';
    keys.addLiteralKey(new Secret(secret), { id: 'env', name: 'environment', models: ['*'] });
    keys.authenticate(undefined, secret);
    await keys.flushUses();
    assert.deepEqual([written, keys.find('env')?.lastUsedAt], [[], clock.wall()]);
  });

  it('by other processes count where they are later', async () => {
    const { keys, clock } = await ring();
    const { id } = await keys.create({ name: 'a', models: ['*'] });
    const at = clock.wall();
    const uses = (): readonly unknown[] => [
      keys.find(id)?.lastUsedAt,
      keys.find(id)?.previousUsedAt,
    ];
    keys.heardUses([{ id, at, previous: false }]);
    assert.deepEqual(uses(), [at, undefined]);
    keys.heardUses([
      { id, at: at - 1, previous: false },
      { id, at: at - 2, previous: true },
      { id: 'gone0000', at, previous: false },
    ]);
    assert.deepEqual(uses(), [at, at - 2]);
    keys.heardUses([
      { id, at: at + 1, previous: false },
      { id, at: at - 3, previous: true },
    ]);
    assert.deepEqual(uses(), [at + 1, at - 2]);
  });
});

describe('S10 the first key', () => {
  it('that was made and never shown is made again; one that was used is not', async () => {
    const { keys } = await ring();
    assert.equal(keys.unusedFirstKey(), undefined);
    const made = await keys.ensureFirstKey();
    assert.ok(made);
    assert.equal(keys.unusedFirstKey(), made.id);
    await keys.revoke(made.id);
    assert.deepEqual(
      [keys.unusedFirstKey(), keys.wantsFirstKey(), keys.wantsFirstKey(made.id)],
      [undefined, false, true],
    );
    const second = await keys.ensureFirstKey(undefined, made.id);
    assert.ok(second !== undefined && second.id !== made.id);
    assert.equal(keys.wantsFirstKey(made.id), false, 'there are two now');
  });

  it('is not unused once a call was made with it and the store knows', async () => {
    const store = memoryStore();
    const { keys } = await ring({ store });
    const made = await keys.ensureFirstKey();
    keys.authenticate(undefined, made?.key.reveal());
    await keys.flushUses();
    assert.equal((await ring({ store })).keys.unusedFirstKey(), undefined);
  });

  it('is no other key, whatever its age', async () => {
    const { keys } = await ring();
    await keys.create({ name: 'a', models: ['*'] });
    assert.equal(keys.unusedFirstKey(), undefined);
  });
});

describe('S7 S9 without its secret', () => {
  it('a key gives its permissions while it is active only', async () => {
    const { keys, clock } = await ring();
    const expiresAt = clock.wall() + 10;
    const { id } = await keys.create({ name: 'a', models: ['x'], expiresAt });
    assert.equal(keys.principalOf(id)?.allowsModel('x'), true);
    assert.equal(keys.principalOf('nobody00'), undefined);
    clock.time += 10;
    assert.equal(keys.principalOf(id), undefined);
    const other = await keys.create({ name: 'b', models: ['x'] });
    await keys.revoke(other.id);
    assert.equal(keys.principalOf(other.id), undefined);
  });

  for (const pepper of [undefined, new Pepper(new Secret('a-pepper-of-the-operator'))]) {
    const how = pepper === undefined ? 'without a pepper' : 'with a pepper';
    it(`a secret is recognised as that of a key, in any state, ${how}`, async () => {
      const { keys } = await ring(pepper === undefined ? {} : { pepper });
      const { id, key } = await keys.create({ name: 'a', models: ['*'] });
      assert.equal(keys.holds(key), true);
      assert.equal(keys.holds(new Secret('another-secret-of-any-form')), false);
      await keys.revoke(id);
      assert.equal(keys.holds(key), true);
    });
  }
});

describe('L5 lists', () => {
  it('search id, name, team, owner and tags, ignoring case, and name where the page ends', async () => {
    const { keys } = await ring();
    const one = await keys.create({ name: 'Alpha', models: ['*'], team: 'Red', owner: 'me@x' });
    const two = await keys.create({ name: 'beta', models: ['*'], tags: ['Nightly', 'alpha'] });
    await keys.create({ name: 'gamma', models: ['*'] });
    const found = (text: string): readonly string[] =>
      keys.search({ text }, { limit: 10 })?.keys.map(({ record }) => record.name) ?? [];
    assert.deepEqual(found('ALPHA'), ['Alpha', 'beta']);
    assert.deepEqual(found('red'), ['Alpha']);
    assert.deepEqual(found('ME@'), ['Alpha']);
    assert.deepEqual(found('night'), ['beta']);
    assert.deepEqual(found(two.id), ['beta']);
    assert.deepEqual(found('delta'), []);
    const page = keys.search({ text: 'alpha' }, { limit: 1 });
    assert.equal(page?.next, one.id);
    const rest = keys.search({ text: 'alpha' }, { limit: 1, after: one.id });
    assert.deepEqual([rest?.keys[0]?.record.name, rest?.next], ['beta', two.id]);
    const last = keys.search({ text: 'alpha' }, { limit: 1, after: two.id });
    assert.deepEqual(last, { keys: [] });
    assert.equal(keys.search({ text: 'alpha' }, { limit: 1, after: 'nobody00' }), undefined);
  });

  it('name the keys of an owner, those of the config and the environment first', async () => {
    const { keys } = await ring();
    const mine = await keys.create({ name: 'a', models: ['*'], owner: 'me' });
    const given = await keys.create({ name: 'b', models: ['*'], owner: 'me' });
    await keys.create({ name: 'c', models: ['*'], owner: 'you' });
    await keys.create({ name: 'd', models: ['*'] });
    await keys.update(given.id, () => ({ owner: 'you' }));
    keys.addLiteralKey(new Secret('a-secret-of-any-form'), {
      id: 'env',
      name: 'environment',
      models: ['*'],
      owner: 'me',
    });
    await keys.revoke(mine.id);
    const names = (owner: string) => keys.ofOwner(owner).map(({ record }) => record.name);
    assert.deepEqual(names('me'), ['environment', 'a']);
    assert.deepEqual(names('you'), ['b', 'c']);
    assert.deepEqual(names('nobody'), []);
  });
});
