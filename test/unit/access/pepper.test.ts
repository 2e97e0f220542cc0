import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it } from 'node:test';
import { makeKey, digestOf } from '../../../src/access/keys/key-format.ts';
import { KeyRing } from '../../../src/access/keys/keys.ts';
import { Pepper } from '../../../src/access/keys/seal-key.ts';
import type { LogFields } from '../../../src/core/runtime.ts';
import { Secret } from '../../../src/core/secret.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { countingBytes, HeldClock, silentLog } from './fakes.ts';

const folder = temporaryFolder('pepper');

const refused = { name: 'GatewayError', code: 'unauthenticated' };
const secret = 'pepper-0123456789-abcdef';

async function ring(store: Store, pepper?: string, seed = 1) {
  const told: { readonly event: string; readonly fields: LogFields | undefined }[] = [];
  const log = {
    ...silentLog,
    error: (event: string, fields?: LogFields) => void told.push({ event, fields }),
  };
  const keys = new KeyRing({
    store,
    clock: new HeldClock(),
    random: countingBytes(seed),
    log,
    ...(pepper === undefined ? {} : { pepper: new Pepper(new Secret(pepper)) }),
  });
  await keys.load();
  return { keys, told };
}

it('S2 with a pepper the digest is an HMAC that the secret alone does not give', async () => {
  const store = memoryStore();
  const { keys } = await ring(store, secret);
  const { key } = await keys.create({ name: 'a', models: ['*'] });
  const [record] = await store.keys.list();
  assert.equal(record?.peppered, true);
  assert.notEqual(record?.digest, digestOf(key.reveal()).toString('hex'));
  assert.equal(keys.authenticate(undefined, key.reveal()).name, 'a');
  const again = await ring(store, secret, 2);
  assert.equal(again.keys.authenticate(undefined, key.reveal()).name, 'a');
});

it('S2 keys from before the pepper keep working, rotated ones too, and get it', async () => {
  const store = memoryStore();
  const before = await ring(store);
  const { id, key: old } = await before.keys.create({ name: 'a', models: ['*'] });
  const current = (await before.keys.rotate(id, 1000))?.key.reveal() ?? '';
  for (let start = 0; start < 2; start++) {
    const { keys, told } = await ring(store, secret, 2);
    assert.equal(keys.authenticate(undefined, old.reveal()).keyId, id);
    assert.equal(keys.authenticate(undefined, current).keyId, id);
    assert.deepEqual(told, []);
    const [record] = await store.keys.list();
    assert.deepEqual([record?.peppered, record?.previous[0]?.peppered], [true, true]);
  }
});

it('S2 a start that was cut off while keys got their pepper is finished by the next', async () => {
  const store = memoryStore();
  const before = await ring(store);
  const made = [];
  for (const name of ['a', 'b', 'c']) made.push(await before.keys.create({ name, models: ['*'] }));
  const replace = store.keys.replace;
  let left = 1;
  store.keys.replace = (record) => {
    left -= 1;
    return left < 0 ? Promise.reject(new Error('the power is out')) : replace(record);
  };
  await assert.rejects(ring(store, secret, 2), /power/);
  store.keys.replace = replace;
  const { keys, told } = await ring(store, secret, 3);
  for (const { id, key } of made) {
    assert.equal(keys.authenticate(undefined, key.reveal()).keyId, id);
  }
  assert.deepEqual(told, []);
});

it('S2 a row that was written without the pepper opens nothing, whatever it says of itself', async (t) => {
  const path = join(folder, 'edited', 'gateway.db');
  const first = await openSqliteStore({ path, log: silentLog });
  const { keys } = await ring(first, secret);
  const honest = await keys.create({ name: 'honest', models: ['*'] });
  const victim = await keys.create({ name: 'victim', models: ['*'] });
  const rotated = await keys.create({ name: 'rotated', models: ['*'] });
  await first.close();
  const planted = makeKey(countingBytes(40));
  const forged = makeKeyOfId(victim.id);
  const old = makeKeyOfId(rotated.id);
  const hash = (text: string): string => digestOf(text).toString('hex');
  const db = new DatabaseSync(path);
  db.prepare('UPDATE keys SET digest = ?, peppered = 0 WHERE id = ?').run(hash(forged), victim.id);
  const previous = [{ digest: hash(old), replacedAt: 1, validUntil: 8e15 }];
  db.prepare('UPDATE keys SET previous = ? WHERE id = ?').run(JSON.stringify(previous), rotated.id);
  // A copy of an honest row with an id and a digest of its own.
  db.exec(`CREATE TEMP TABLE planted AS SELECT * FROM keys WHERE id = '${honest.id}'`);
  db.prepare('UPDATE planted SET id = ?, digest = ?, peppered = 0').run(
    planted.id,
    hash(planted.key.reveal()),
  );
  db.exec('INSERT INTO keys SELECT * FROM planted');
  for (const mark of ['kept', 'taken away']) {
    if (mark === 'taken away') db.exec(`DELETE FROM settings WHERE name = 'pepper_mark'`);
    const store = await openSqliteStore({ path, log: silentLog });
    t.after(() => store.close());
    const again = await ring(store, secret, 3);
    for (const key of [forged, old, planted.key.reveal(), victim.key.reveal()]) {
      assert.throws(() => again.keys.authenticate(undefined, key), refused, mark);
    }
    assert.equal(again.keys.authenticate(undefined, honest.key.reveal()).name, 'honest');
    assert.equal(again.keys.authenticate(undefined, rotated.key.reveal()).name, 'rotated');
    assert.deepEqual(
      again.told.map(({ event, fields }) => [event, fields?.['keys']]),
      [['keys_without_pepper_refused', 3]],
    );
    await store.close();
  }
  db.close();
});

/** A well-formed key of somebody who knows the id. */
function makeKeyOfId(id: string): string {
  for (let seed = 60; ; seed++) {
    let calls = 0;
    const made = makeKey((count) => {
      calls += 1;
      return calls === 1 ? idBytes(id) : countingBytes(seed)(count);
    });
    if (made.id === id) return made.key.reveal();
  }
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

function idBytes(id: string): Uint8Array {
  return Uint8Array.from([...id].map((letter) => alphabet.indexOf(letter)));
}

it('S2 without the pepper, or with another, peppered keys are refused and that is said', async () => {
  const store = memoryStore();
  const { key } = await (await ring(store, secret)).keys.create({ name: 'a', models: ['*'] });
  const missing = await ring(store, undefined, 2);
  assert.match(missing.keys.pepperProblem ?? '', /set MODEL_GATEWAY_PEPPER/);
  assert.throws(() => missing.keys.authenticate(undefined, key.reveal()), refused);
  await assert.rejects(missing.keys.create({ name: 'b', models: ['*'] }), /MODEL_GATEWAY_PEPPER/);
  const other = await ring(store, 'another-pepper-0123456789', 3);
  assert.match(other.keys.pepperProblem ?? '', /not the pepper/);
  assert.throws(() => other.keys.authenticate(undefined, key.reveal()), refused);
  assert.ok(!`${missing.keys.pepperProblem}${other.keys.pepperProblem}`.includes(secret));
  await missing.keys.revoke(key.reveal().slice(3, 11));
  assert.equal((await ring(store, secret, 4)).keys.pepperProblem, undefined);
});

it('S2 declared keys and that of the environment need no pepper', async () => {
  const { keys } = await ring(memoryStore(), secret);
  keys.declare([
    {
      id: 'ci',
      name: 'ci',
      digests: [digestOf('declared for tests').toString('hex')],
      models: ['*'],
    },
  ]);
  keys.addLiteralKey(new Secret('a-literal-key-of-any-form'), {
    id: 'env',
    name: 'env',
    models: ['*'],
  });
  assert.equal(keys.authenticate(undefined, 'declared for tests').keyId, 'ci');
  assert.equal(keys.authenticate(undefined, 'a-literal-key-of-any-form').keyId, 'env');
});

it('S4 a pepper is not printed, and not taken when it is short', () => {
  assert.throws(
    () => new Pepper(new Secret('short')),
    /MODEL_GATEWAY_PEPPER must have at least 16/,
  );
  assert.ok(!JSON.stringify(new Pepper(new Secret(secret))).includes(secret));
});
