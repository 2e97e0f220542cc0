import assert from 'node:assert/strict';
import { it } from 'node:test';
import { makeKey, digestOf } from '../../../src/access/keys/key-format.ts';
import { KeyRing, type WriteKey } from '../../../src/access/keys/keys.ts';
import { Policies } from '../../../src/access/policies.ts';
import type { Policy } from '../../../src/core/policy.ts';
import { memoryStore } from '../../support/memory-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { countingBytes, HeldClock } from './fakes.ts';

const clock = new HeldClock();
const refused = { name: 'GatewayError', code: 'unauthenticated' };
const day = 86_400_000;

async function ring(store: Store = memoryStore(), seed = 1) {
  const policies = new Policies(store.policies);
  const keys = new KeyRing({ store, clock, random: countingBytes(seed), policies });
  await policies.load();
  await keys.load();
  return { keys, store, policies };
}

const rpm = (amount: number): Policy => ({
  limits: [{ kind: 'requests', amount }],
  budgets: [],
});

it('a change holds for the next call; what is absent stays, null takes away', async () => {
  const { keys, store } = await ring();
  const { id, key } = await keys.create({
    name: 'a',
    models: ['x/*'],
    team: 'red',
    owner: 'me',
    tags: ['t'],
    strict: true,
    expiresAt: clock.wall() + 10,
  });
  const before = keys.authenticate(undefined, key.reveal());
  const changed = await keys.update(id, () => ({
    models: ['y/*'],
    team: null,
    strict: null,
    expiresAt: null,
  }));
  assert.equal(changed?.before.record.team, 'red');
  const after = keys.authenticate(undefined, key.reveal());
  assert.deepEqual([before.allowsModel('x/1'), after.allowsModel('x/1')], [true, false]);
  assert.deepEqual(
    [after.allowsModel('y/1'), after.team, after.strict, after.tags],
    [true, undefined, false, ['t']],
  );
  const [stored] = await store.keys.list();
  assert.deepEqual(
    [stored?.owner, stored?.expiresAt, stored?.version, stored?.team],
    ['me', undefined, 2, undefined],
  );
});

it('S7 a change is default-deny as a creation is', async () => {
  const { keys } = await ring();
  const { id } = await keys.create({ name: 'a', models: ['*'] });
  for (const change of [
    { models: [] },
    { models: null },
    { endpoints: [] },
    { endpoints: ['admin'] },
    { name: null },
    { cidrs: ['10.0.0.1/8'] },
    { expiresAt: clock.wall() },
  ]) {
    await assert.rejects(
      keys.update(id, () => change),
      { code: 'invalid_request' },
    );
  }
  assert.equal(await keys.update('nobody00', () => ({ team: 'x' })), undefined);
});

it('K8 two instances: a late write starts again from what the other one wrote', async () => {
  const store = memoryStore();
  const one = await ring(store);
  const { id, key } = await one.keys.create({ name: 'a', models: ['*'] });
  const other = await ring(store, 2);
  await one.keys.update(id, () => ({ team: 'red' }));
  await other.keys.update(id, () => ({ owner: 'me' }));
  const principal = other.keys.authenticate(undefined, key.reveal());
  assert.equal(principal.team, 'red');
  const [stored] = await store.keys.list();
  assert.deepEqual([stored?.team, stored?.owner, stored?.version], ['red', 'me', 3]);
});

it('K8 a change that is on its way while the key is revoked never brings it back', async () => {
  const store = memoryStore();
  const { keys } = await ring(store);
  const { id, key } = await keys.create({ name: 'a', models: ['*'] });
  const updating = keys.update(id, () => ({ team: 'red' }));
  await keys.revoke(id);
  await updating.catch(() => undefined);
  assert.throws(() => keys.authenticate(undefined, key.reveal()), refused);
  await assert.rejects(
    keys.update(id, () => ({ team: 'blue' })),
    /revoked/,
  );
  await assert.rejects(keys.rotate(id, 0), /revoked/);
  assert.throws(
    () => keys.authenticate(undefined, key.reveal()),
    refused,
    'no other key of the ring works either',
  );
  const again = await ring(store, 3);
  assert.throws(() => again.keys.authenticate(undefined, key.reveal()), refused);
});

it('K8 S6 what another instance revoked is refused, and cut, once it is read', async () => {
  const store = memoryStore();
  const one = await ring(store);
  const { id, key } = await one.keys.create({ name: 'a', models: ['*'] });
  const other = await ring(store, 2);
  const running = other.keys.authenticate(undefined, key.reveal());
  await one.keys.revoke(id);
  assert.equal(running.revoked(), false);
  await other.keys.load();
  assert.equal(running.revoked(), true);
  assert.throws(() => other.keys.authenticate(undefined, key.reveal()), refused);
});

it('K8 what was read before a change and comes behind it changes nothing back', async () => {
  const store = memoryStore();
  const { keys } = await ring(store);
  const { id, key } = await keys.create({ name: 'a', models: ['*'] });
  const stale = await store.keys.since(0);
  await keys.update(id, () => ({ team: 'red' }));
  const keysSince = store.keys.since;
  store.keys.since = () => Promise.resolve(stale);
  await keys.load();
  assert.equal(keys.authenticate(undefined, key.reveal()).team, 'red');
  store.keys.since = keysSince;
});

it('K8 a revocation that the store did not take outlasts newer records without it', async () => {
  const store = memoryStore();
  const { keys } = await ring(store);
  const { id, key } = await keys.create({ name: 'a', models: ['*'] });
  store.keys.revoke = () => Promise.reject(new Error('down'));
  await assert.rejects(keys.revoke(id));
  const other = await ring(store, 2);
  for (const team of ['red', 'blue', 'green']) await other.keys.update(id, () => ({ team }));
  await keys.load();
  assert.equal(keys.find(id)?.record.team, 'green');
  assert.equal(keys.find(id)?.state, 'revoked');
  assert.throws(() => keys.authenticate(undefined, key.reveal()), refused);
});

it('a change that the store did not take does not hold', async () => {
  const { keys, store } = await ring();
  const { id, key } = await keys.create({ name: 'a', models: ['*'] });
  await store.close();
  await assert.rejects(
    keys.update(id, () => ({ models: ['x'] })),
    { name: 'StoreError' },
  );
  await assert.rejects(keys.rotate(id, 0), { name: 'StoreError' });
  assert.ok(keys.authenticate(undefined, key.reveal()).allowsModel('any'));
});

it('S5 rotate: both secrets work under one id until the overlap is over', async () => {
  const { keys, store } = await ring();
  const { id, key: old } = await keys.create({ name: 'a', models: ['*'] });
  keys.authenticate(undefined, old.reveal());
  const usedAt = clock.wall();
  clock.time += 1000;
  const rotated = await keys.rotate(id, day);
  assert.ok(rotated);
  assert.notEqual(rotated.key.reveal(), old.reveal());
  assert.equal(rotated.key.reveal().slice(3, 11), id);
  assert.equal(keys.authenticate(undefined, old.reveal()).keyId, id);
  assert.equal(keys.authenticate(undefined, rotated.key.reveal()).keyId, id);
  assert.equal(rotated.after.previousUsedAt, usedAt);
  clock.time += day - 1;
  keys.authenticate(undefined, old.reveal());
  const [lastUsedAt, previousUsedAt] = [clock.wall() - day + 1, clock.wall()];
  assert.deepEqual(
    [keys.find(id)?.lastUsedAt, keys.find(id)?.previousUsedAt],
    [lastUsedAt, previousUsedAt],
  );
  clock.time += 1;
  assert.throws(() => keys.authenticate(undefined, old.reveal()), refused);
  assert.equal(keys.authenticate(undefined, rotated.key.reveal()).keyId, id);
  const again = await ring(store, 9);
  assert.throws(() => again.keys.authenticate(undefined, old.reveal()), refused);
  assert.equal(again.keys.authenticate(undefined, rotated.key.reveal()).keyId, id);
});

it('S5 an overlap of 0 ends all old secrets; a shorter one shortens that of those before', async () => {
  const { keys } = await ring();
  const { id, key: first } = await keys.create({ name: 'a', models: ['*'] });
  const second = (await keys.rotate(id, 7 * day))?.key.reveal();
  const third = (await keys.rotate(id, 60_000))?.key.reveal();
  for (const key of [first.reveal(), second, third]) keys.authenticate(undefined, key);
  clock.time += 60_000;
  assert.throws(() => keys.authenticate(undefined, first.reveal()), refused);
  assert.throws(() => keys.authenticate(undefined, second), refused);
  const fourth = (await keys.rotate(id, 0))?.key.reveal();
  assert.throws(() => keys.authenticate(undefined, third), refused);
  assert.equal(keys.authenticate(undefined, fourth).keyId, id);
});

it('S5 of many rotations within an overlap the five newest replaced secrets work', async () => {
  const { keys } = await ring();
  const { id, key } = await keys.create({ name: 'a', models: ['*'] });
  const secrets = [key.reveal()];
  for (let i = 0; i < 6; i++) {
    clock.time += 1;
    secrets.push((await keys.rotate(id, day))?.key.reveal() ?? '');
  }
  assert.throws(() => keys.authenticate(undefined, secrets[0]), refused);
  for (const secret of secrets.slice(1)) keys.authenticate(undefined, secret);
  assert.equal(keys.find(id)?.record.previous.length, 5);
  clock.time += day;
  await keys.rotate(id, day);
  assert.equal(keys.find(id)?.record.previous.length, 1, 'those that are over are not kept');
});

it('S24 the audit entry of a change names the state before and after it', async () => {
  const { keys } = await ring();
  const { id } = await keys.create({ name: 'a', models: ['*'], expiresAt: clock.wall() + 10 });
  clock.time += 10;
  const states: unknown[] = [];
  const write: WriteKey = async (change, { before, after }) => {
    states.push([change.op, before?.state, after.state, after.record.name]);
    return true;
  };
  await keys.update(id, () => ({ name: 'b' }), write);
  await keys.update(id, () => ({ expiresAt: clock.wall() + 10 }), write);
  await keys.revoke(id, write);
  await keys.create({ name: 'c', models: ['*'] }, write);
  assert.deepEqual(states, [
    ['replaceKey', 'expired', 'expired', 'b'],
    ['replaceKey', 'expired', 'active', 'b'],
    ['revokeKey', 'active', 'revoked', 'b'],
    ['addKey', undefined, 'active', 'c'],
  ]);
});

it('K8 a change that loses every race is refused as busy, after five tries', async () => {
  const { keys } = await ring();
  const { id } = await keys.create({ name: 'a', models: ['*'] });
  let tries = 0;
  const write: WriteKey = async () => {
    tries += 1;
    return false;
  };
  await assert.rejects(
    keys.update(id, () => ({ name: 'b' }), write),
    { code: 'store_unavailable' },
  );
  assert.deepEqual([tries, keys.find(id)?.record.name], [5, 'a']);
});

it('S5 rotation under load: no call with either secret is refused', async () => {
  const { keys } = await ring();
  const { id, key } = await keys.create({ name: 'a', models: ['*'] });
  const secrets = [key.reveal()];
  let calls = 0;
  const rounds = { left: 20 };
  const load = async (): Promise<void> => {
    while (rounds.left > 0) {
      for (const secret of secrets.slice(-2)) keys.authenticate(`Bearer ${secret}`, undefined);
      calls += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const loads = [load(), load(), load()];
  for (; rounds.left > 0; rounds.left--) {
    const rotated = await keys.rotate(id, day);
    secrets.push(rotated?.key.reveal() ?? '');
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(loads);
  assert.ok(calls >= 20);
});

it('a last use is written in batches, never with the call', async () => {
  const store = memoryStore();
  const written: unknown[] = [];
  const touch = store.keys.touch;
  store.keys.touch = (uses) => {
    written.push(...uses);
    return touch(uses);
  };
  const { keys } = await ring(store);
  const { id, key } = await keys.create({ name: 'a', models: ['*'] });
  for (let i = 0; i < 100; i++) keys.authenticate(undefined, key.reveal());
  assert.deepEqual(written, []);
  await keys.flushUses();
  assert.deepEqual(written, [{ id, at: clock.wall(), previous: false }]);
  await keys.flushUses();
  assert.equal(written.length, 1);
  const again = await ring(store, 2);
  assert.equal(again.keys.find(id)?.lastUsedAt, clock.wall());
});

it('a last use that the store did not take is reported with the next ones', async () => {
  const store = memoryStore();
  const { keys } = await ring(store);
  const { id, key } = await keys.create({ name: 'a', models: ['*'] });
  const touch = store.keys.touch;
  store.keys.touch = () => Promise.reject(new Error('down'));
  keys.authenticate(undefined, key.reveal());
  await keys.flushUses();
  store.keys.touch = touch;
  await keys.flushUses();
  const [stored] = await store.keys.list();
  assert.deepEqual([stored?.id, stored?.lastUsedAt], [id, clock.wall()]);
});

const declared = (id: string, secret: string, more: object = {}) => ({
  id,
  name: id,
  digests: [digestOf(secret).toString('hex')],
  models: ['*'],
  ...more,
});

it('declared keys work by their hash, cannot be changed, and end when they are taken out', async () => {
  const { keys, store } = await ring();
  const wellFormed = makeKey(countingBytes(70)).key.reveal();
  keys.declare([
    declared('ci', 'any secret at all', { policy: rpm(5), team: 'red' }),
    declared('cd', wellFormed, { cidrs: ['10.0.0.0/8'] }),
  ]);
  const ci = keys.authenticate(undefined, 'any secret at all');
  const cd = keys.authenticate(undefined, wellFormed);
  assert.deepEqual([ci.keyId, ci.team, cd.keyId, cd.anywhere], ['ci', 'red', 'cd', false]);
  assert.deepEqual(await store.keys.list(), []);
  await assert.rejects(
    keys.update('ci', () => ({ team: 'x' })),
    /declared in the config/,
  );
  await assert.rejects(keys.rotate('ci', 0), /declared in the config/);
  await assert.rejects(keys.revoke('ci'), /declared in the config/);
  keys.declare([declared('cd', wellFormed, { models: ['x/*'] })]);
  assert.deepEqual([ci.revoked(), cd.revoked()], [true, false]);
  assert.throws(() => keys.authenticate(undefined, 'any secret at all'), refused);
  assert.equal(keys.authenticate(undefined, wellFormed).allowsModel('y/1'), false);
  assert.equal(keys.find('ci'), undefined);
  await keys.flushUses();
  assert.equal(await keys.ensureFirstKey(), undefined, 'a declared key is a key');
});

it('a declared key changes its secret with an overlap by two hashes', async () => {
  const { keys } = await ring();
  const hash = (text: string): string => digestOf(text).toString('hex');
  keys.declare([declared('ci', 'the old one, long')]);
  keys.declare([
    { ...declared('ci', ''), digests: [hash('the new one, long'), hash('the old one, long')] },
  ]);
  assert.equal(keys.authenticate(undefined, 'the old one, long').keyId, 'ci');
  assert.equal(keys.authenticate(undefined, 'the new one, long').keyId, 'ci');
  keys.declare([declared('ci', 'the new one, long')]);
  assert.throws(() => keys.authenticate(undefined, 'the old one, long'), refused);
});

it('S7 a declared hash of a word opens nothing: everybody has tables of such hashes', async () => {
  const { keys } = await ring();
  keys.declare([declared('word', 'test'), declared('text', 'sixteen letters!')]);
  assert.throws(() => keys.authenticate('Bearer test', undefined), refused);
  assert.equal(keys.authenticate('Bearer sixteen letters!', undefined).keyId, 'text');
});

it('K8 changes of one key that are asked for at the same time take turns; none is lost', async () => {
  const { keys } = await ring();
  const { id } = await keys.create({ name: 'shared', models: ['*'] });
  const changes = Array.from({ length: 30 }, (_, i) =>
    keys.update(id, ({ tags }) => ({ tags: [...tags, `t${i}`] })),
  );
  const [rotated] = await Promise.all([keys.rotate(id, day), ...changes]);
  assert.equal(keys.find(id)?.record.tags.length, 30);
  assert.ok(rotated !== undefined);
  assert.equal(keys.authenticate(`Bearer ${rotated.key.reveal()}`, undefined).keyId, id);
});

it('a declared key that has the id of another key is refused as a whole', async () => {
  const { keys } = await ring();
  const { id } = await keys.create({ name: 'a', models: ['*'] });
  keys.declare([declared('ci', 'one that is long')]);
  assert.throws(() => keys.declare([declared(id, 'two')]), new RegExp(id));
  assert.equal(keys.authenticate(undefined, 'one that is long').keyId, 'ci');
});

it('L5 pages go through declared keys and those of the store', async () => {
  const { keys } = await ring();
  keys.declare([declared('x', '1'), declared('y', '2')]);
  for (const name of ['a', 'b', 'c']) await keys.create({ name, models: ['*'] });
  const names: string[] = [];
  let after: string | undefined;
  do {
    const page = keys.list({ limit: 2, ...(after === undefined ? {} : { after }) });
    names.push(...(page?.keys ?? []).map(({ record }) => record.name));
    after = page?.next;
  } while (after !== undefined);
  assert.deepEqual(names, ['x', 'y', 'a', 'b', 'c']);
});

it('policies of key, team and tags, once each, until something changes', async () => {
  const { keys, policies } = await ring();
  const { id, key } = await keys.create({
    name: 'a',
    models: ['*'],
    team: 'red',
    tags: ['nightly', 'empty'],
    policy: rpm(1),
  });
  const principal = keys.authenticate(undefined, key.reveal());
  const alone = principal.policies();
  assert.deepEqual(alone, [{ holder: { kind: 'key', name: id }, policy: rpm(1) }]);
  assert.equal(principal.policies(), alone);
  await policies.put({ kind: 'team', name: 'red', ...rpm(2) });
  await policies.put({ kind: 'tag', name: 'nightly', ...rpm(3) });
  await policies.put({ kind: 'tag', name: 'empty', limits: [], budgets: [] });
  await policies.put({ kind: 'tag', name: 'red', ...rpm(4) });
  const all = principal.policies();
  assert.deepEqual(
    all.map(({ holder, policy }) => [holder.kind, holder.name, policy.limits[0]?.amount]),
    [
      ['key', id, 1],
      ['team', 'red', 2],
      ['tag', 'nightly', 3],
    ],
  );
  assert.equal(principal.policies(), all);
  policies.declare([{ kind: 'team', name: 'red', ...rpm(9) }]);
  assert.equal(principal.policies()[1]?.policy.limits[0]?.amount, 9);
  await assert.rejects(policies.put({ kind: 'team', name: 'red', ...rpm(2) }), /in the config/);
  await assert.rejects(policies.delete('team', 'red'), /in the config/);
  policies.declare([]);
  assert.equal(principal.policies()[1]?.policy.limits[0]?.amount, 2, 'the stored one again');
  await policies.delete('team', 'red');
  assert.equal(principal.policies().length, 2);
  assert.equal(await policies.delete('team', 'red'), undefined);
});

it('S7 addresses: only from the ranges, never when the address is not known', async () => {
  const { keys } = await ring();
  const { key } = await keys.create({ name: 'a', models: ['*'], cidrs: ['10.0.0.0/8', '::1'] });
  const principal = keys.authenticate(undefined, key.reveal());
  assert.deepEqual(
    ['10.1.1.1', '::ffff:10.1.1.1', '::1', '11.0.0.1', '', undefined].map((address) =>
      principal.allowsAddress(address),
    ),
    [true, true, true, false, false, false],
  );
});

it('L1 a store that goes down later: cached keys work, nobody else comes in', async () => {
  const { keys, store } = await ring();
  const { key } = await keys.create({ name: 'a', models: ['*'] });
  await store.close();
  await assert.rejects(keys.load(), { name: 'StoreError' });
  assert.equal(keys.authenticate(undefined, key.reveal()).name, 'a');
  const stranger = makeKey(countingBytes(99)).key.reveal();
  assert.throws(() => keys.authenticate(undefined, stranger), refused);
});

it('L1 a store that is down at start: 503 until it is up, then the key works', async () => {
  const store = memoryStore();
  const { key } = await (await ring(store)).keys.create({ name: 'a', models: ['*'] });
  const keysSince = store.keys.since;
  store.keys.since = () => Promise.reject(new Error('down'));
  const keys = new KeyRing({ store, clock, random: countingBytes(4) });
  await assert.rejects(keys.load());
  assert.throws(() => keys.authenticate(undefined, key.reveal()), { code: 'store_unavailable' });
  assert.throws(() => keys.authenticate(undefined, 'junk'), refused);
  store.keys.since = keysSince;
  await keys.load();
  assert.equal(keys.authenticate(undefined, key.reveal()).name, 'a');
});
