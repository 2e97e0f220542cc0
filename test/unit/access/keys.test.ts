import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { makeKey } from '../../../src/access/keys/key-format.ts';
import { KeyRing } from '../../../src/access/keys/keys.ts';
import { Secret } from '../../../src/core/secret.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { countingBytes, HeldClock, silentLog } from './fakes.ts';

const folder = temporaryFolder('keys');

interface Ring {
  readonly keys: KeyRing;
  readonly store: Store;
  readonly clock: HeldClock;
}

async function ring(store: Store = memoryStore(), seed = 1): Promise<Ring> {
  const clock = new HeldClock();
  const keys = new KeyRing({ store, clock, random: countingBytes(seed) });
  await keys.load();
  return { keys, store, clock };
}

const refused = { name: 'GatewayError', code: 'unauthenticated' };

it('both header forms authenticate; the principal says who it is', async () => {
  const { keys } = await ring();
  const { id, key } = await keys.create({ name: 'ci', models: ['*'], team: 'red' });
  const principal = keys.authenticate(`Bearer ${key.reveal()}`, undefined);
  assert.equal(principal.keyId, id);
  assert.equal(principal.name, 'ci');
  assert.equal(principal.team, 'red');
  assert.equal(keys.authenticate(undefined, key.reveal()), principal);
  assert.equal(keys.authenticate(`bearer ${key.reveal()}`, key.reveal()), principal);
});

it('E4 one text for every cause', async () => {
  const { keys, clock } = await ring();
  const live = (await keys.create({ name: 'live', models: ['*'] })).key.reveal();
  const other = (await keys.create({ name: 'other', models: ['*'] })).key.reveal();
  const revoked = await keys.create({ name: 'revoked', models: ['*'] });
  await keys.revoke(revoked.id);
  const expiresAt = clock.wall() + 1;
  const expired = await keys.create({ name: 'expired', models: ['*'], expiresAt });
  clock.time += 1;
  const stranger = makeKey(countingBytes(99)).key.reveal();
  const attempts: readonly (readonly [string | undefined, string | undefined])[] = [
    [undefined, undefined],
    ['', ''],
    [`Basic ${live}`, undefined],
    [`Bearer ${live}`, other],
    [`Bearer ${live}x`, undefined],
    [`Bearer ${live.slice(0, -1)}`, undefined],
    [`Bearer ${stranger}`, undefined],
    [undefined, revoked.key.reveal()],
    [undefined, expired.key.reveal()],
    [undefined, 'a'.repeat(10_240)],
    [undefined, `' OR 1=1--`],
    [undefined, 'ключ\0'],
  ];
  const texts = attempts.map(([authorization, xApiKey]) => {
    try {
      keys.authenticate(authorization, xApiKey);
      return 'authenticated';
    } catch (error) {
      assert.ok(error instanceof Error && 'code' in error && error.code === 'unauthenticated');
      return error.message;
    }
  });
  assert.equal(new Set(texts).size, 1);
  assert.doesNotMatch(texts[0] ?? '', /gw_[0-9A-Za-z]/);
});

it('S3 a right id with a wrong secret is refused', async () => {
  const { keys } = await ring();
  const { id } = await keys.create({ name: 'a', models: ['*'] });
  let made = makeKey(countingBytes(1));
  assert.equal(made.id, id);
  let calls = 0;
  made = makeKey((count) => {
    calls += 1;
    return calls === 1 ? countingBytes(1)(count) : countingBytes(50)(count);
  });
  assert.equal(made.id, id);
  assert.throws(() => keys.authenticate(undefined, made.key.reveal()), refused);
});

it('S7 scope: models by glob, endpoints by name, all else denied', async () => {
  const { keys } = await ring();
  const { key } = await keys.create({
    name: 'narrow',
    models: ['openai/*', 'local/tiny'],
    endpoints: ['chat'],
  });
  const principal = keys.authenticate(undefined, key.reveal());
  assert.equal(principal.allowsModel('openai/gpt-5'), true);
  assert.equal(principal.allowsModel('local/tiny'), true);
  assert.equal(principal.allowsModel('local/tiny2'), false);
  assert.equal(principal.allowsModel('anthropic/x'), false);
  assert.equal(principal.allowsEndpoint('chat'), true);
  for (const scope of ['messages', 'models', 'count_tokens', 'admin', '', '__proto__']) {
    assert.equal(principal.allowsEndpoint(scope), false, scope);
  }
});

it('S7 an empty list in the store allows nothing', async () => {
  const store = memoryStore();
  const first = await ring(store);
  const { record, key } = await first.keys.create({ name: 'a', models: ['*'] });
  const edited = memoryStore();
  await edited.keys.add({ ...record, models: [], endpoints: [] });
  const principal = (await ring(edited)).keys.authenticate(undefined, key.reveal());
  assert.equal(principal.allowsModel('local/tiny'), false);
  assert.equal(principal.allowsEndpoint('chat'), false);
});

it('S7 creation is default-deny: models, endpoints and expiry are checked', async () => {
  const { keys, clock, store } = await ring();
  const inputs = [
    { input: { name: 'a', models: [] }, path: ['models'] },
    { input: { name: 'a', models: ['*'], endpoints: [] }, path: ['endpoints'] },
    { input: { name: 'a', models: ['*'], endpoints: ['admin'] }, path: ['endpoints'] },
    { input: { name: 'a', models: ['*'], expiresAt: clock.wall() }, path: ['expires_at'] },
  ];
  for (const { input, path } of inputs) {
    await assert.rejects(keys.create(input), { code: 'invalid_request', path });
  }
  assert.deepEqual(await store.keys.list(), []);
});

it('K8 S6 a revoked key is refused at once, also after a restart, and never comes back', async () => {
  const path = join(folder, 'revoke', 'gateway.db');
  const first = await ring(await openSqliteStore({ path, log: silentLog }));
  const { id, key } = await first.keys.create({ name: 'a', models: ['*'] });
  first.keys.authenticate(undefined, key.reveal());
  const revoking = first.keys.revoke(id);
  assert.throws(() => first.keys.authenticate(undefined, key.reveal()), refused);
  const revoked = await revoking;
  assert.equal(revoked?.after.state, 'revoked');
  first.clock.time += 1000;
  const again = await first.keys.revoke(id);
  assert.equal(again?.after.record.revokedAt, revoked?.after.record.revokedAt);
  await first.keys.load();
  assert.throws(() => first.keys.authenticate(undefined, key.reveal()), refused);
  assert.equal(await first.keys.revoke('nobody00'), undefined);
  await first.store.close();
  const second = await ring(await openSqliteStore({ path, log: silentLog }), 7);
  assert.throws(() => second.keys.authenticate(undefined, key.reveal()), refused);
  await second.store.close();
});

it('K8 a revoke that the store did not take stays in force and is reported', async () => {
  const { keys, store } = await ring();
  const { id, key } = await keys.create({ name: 'a', models: ['*'] });
  await store.close();
  await assert.rejects(keys.revoke(id), { name: 'StoreError' });
  assert.throws(() => keys.authenticate(undefined, key.reveal()), refused);
});

it('a key that the store did not take does not work', async () => {
  const { keys, store } = await ring();
  await store.close();
  await assert.rejects(keys.create({ name: 'a', models: ['*'] }), { name: 'StoreError' });
  assert.deepEqual(keys.list({ limit: 5 })?.keys, []);
});

it('a key works after a restart, until it expires', async () => {
  const store = memoryStore();
  const first = await ring(store);
  const expiresAt = first.clock.wall() + 10;
  const { key } = await first.keys.create({ name: 'a', models: ['*'], expiresAt });
  const second = await ring(store, 5);
  second.clock.time = first.clock.time + 9;
  second.keys.authenticate(undefined, key.reveal());
  second.clock.time += 1;
  assert.throws(() => second.keys.authenticate(undefined, key.reveal()), refused);
});

it('L1 before the keys are loaded a well-formed key is 503, never 401', async () => {
  const store = memoryStore();
  const { key } = await (await ring(store)).keys.create({ name: 'a', models: ['*'] });
  const keys = new KeyRing({ store, clock: new HeldClock(), random: countingBytes(3) });
  keys.addLiteralKey(new Secret('a-literal-key-of-any-form'), {
    id: 'env',
    name: 'environment',
    models: ['*'],
    endpoints: ['chat'],
  });
  assert.equal(keys.loaded, false);
  assert.throws(() => keys.authenticate(undefined, key.reveal()), { code: 'store_unavailable' });
  assert.throws(() => keys.authenticate(undefined, 'junk'), refused);
  assert.equal(keys.authenticate(undefined, 'a-literal-key-of-any-form').keyId, 'env');
  await keys.load();
  assert.equal(keys.authenticate(undefined, key.reveal()).name, 'a');
});

const environmentKey = { id: 'env', name: 'environment', models: ['*'], endpoints: ['chat'] };

it('a literal key of any form works and is not stored', async () => {
  const { keys, store } = await ring();
  keys.addLiteralKey(new Secret('my-own-secret-0123'), environmentKey);
  assert.equal(keys.authenticate('Bearer my-own-secret-0123', undefined).keyId, 'env');
  assert.throws(() => keys.authenticate('Bearer my-own-secret-0124', undefined), refused);
  const wellFormed = makeKey(countingBytes(77)).key;
  keys.addLiteralKey(wellFormed, { ...environmentKey, id: 'env2' });
  assert.equal(keys.authenticate(undefined, wellFormed.reveal()).keyId, 'env2');
  assert.deepEqual(await store.keys.list(), []);
  assert.equal(keys.find('env')?.source, 'environment');
  await assert.rejects(keys.revoke('env'), /comes from the environment/);
  assert.throws(() => keys.addLiteralKey(wellFormed, environmentKey), /There is a key/);
});

it('a literal key that is too short or cannot stand in a header is refused by name', async () => {
  const { keys } = await ring();
  for (const secret of [
    '',
    'only-15-letters',
    'sixteen letters!',
    'sechzehnzeichenß',
    'a\n'.repeat(9),
  ]) {
    assert.throws(
      () => keys.addLiteralKey(new Secret(secret), environmentKey),
      (error: Error) =>
        error.message.startsWith('MODEL_GATEWAY_KEY') &&
        (secret === '' || !error.message.includes(secret)),
    );
  }
});

it('S10 the first key is made once, and never when there was a key or one is given', async () => {
  const store = memoryStore();
  const first = await ring(store);
  const made = await first.keys.ensureFirstKey();
  assert.ok(made);
  const principal = first.keys.authenticate(undefined, made.key.reveal());
  assert.ok(principal.allowsModel('local/tiny') && principal.allowsEndpoint('count_tokens'));
  assert.equal(await first.keys.ensureFirstKey(), undefined);
  await first.keys.revoke(made.id);
  assert.equal(await (await ring(store, 4)).keys.ensureFirstKey(), undefined);
  const given = await ring();
  given.keys.addLiteralKey(new Secret('my-own-secret-0123'), environmentKey);
  assert.equal(await given.keys.ensureFirstKey(), undefined);
});

it('S2 S4 the secret is in no file of the store', async () => {
  const path = join(folder, 'canary', 'gateway.db');
  const { keys, store } = await ring(await openSqliteStore({ path, log: silentLog }));
  const { key } = await keys.create({ name: 'canary', models: ['*'] });
  const secret = key.reveal().slice(12);
  let found = 0;
  const look = (): void => {
    for (const name of readdirSync(join(folder, 'canary'))) {
      const bytes = readFileSync(join(folder, 'canary', name));
      assert.ok(!bytes.includes(secret), name);
      if (bytes.includes('canary')) found += 1;
    }
  };
  look();
  await store.close();
  look();
  assert.ok(found >= 2);
});

it('L5 lists by pages in the order of creation', async () => {
  const { keys, clock } = await ring();
  for (let i = 0; i < 5; i++) {
    clock.time += 1;
    await keys.create({ name: `k${i}`, models: ['*'] });
  }
  const names: string[] = [];
  let after: string | undefined;
  let pages = 0;
  do {
    const page = keys.list({ limit: 2, ...(after === undefined ? {} : { after }) });
    names.push(...(page?.keys ?? []).map((key) => key.record.name));
    after = page?.next;
    pages += 1;
  } while (after !== undefined);
  assert.deepEqual(names, ['k0', 'k1', 'k2', 'k3', 'k4']);
  assert.equal(pages, 3);
  assert.equal(keys.list({ limit: 2, after: 'nobody00' }), undefined);
});
