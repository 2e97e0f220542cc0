import assert from 'node:assert/strict';
import { it } from 'node:test';
import { loadAdminToken } from '../../../src/access/keys/admin-token.ts';
import { KeyRing } from '../../../src/access/keys/keys.ts';
import { Secret } from '../../../src/core/secret.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { countingBytes, HeldClock } from './fakes.ts';

async function parts() {
  const store = memoryStore();
  const random = countingBytes();
  const keys = new KeyRing({ store, clock: new HeldClock(), random });
  await keys.load();
  return { store, random, keys };
}

it('S10 the admin token is made at the first start and known at the second', async () => {
  const given = await parts();
  const first = await loadAdminToken(given);
  assert.ok(first.made);
  assert.ok(first.check.verify(first.made.reveal()));
  const second = await loadAdminToken(given);
  assert.equal(second.made, undefined);
  assert.ok(second.check.verify(first.made.reveal()));
  assert.ok(!second.check.verify(''));
  assert.ok(!second.check.verify(`${first.made.reveal()}x`));
});

it('S4 the token itself is not stored', async () => {
  const given = await parts();
  const { made } = await loadAdminToken(given);
  const stored = await given.store.settings.read('admin_token_digest');
  assert.match(stored ?? '', /^[0-9a-f]{64}$/);
  assert.ok(made && !stored?.includes(made.reveal()));
});

it('S9 MODEL_GATEWAY_ADMIN_TOKEN replaces it for good; it may not be short or a key', async () => {
  const given = await parts();
  const first = await loadAdminToken(given);
  const literal = new Secret('an-admin-secret-0123');
  const replaced = await loadAdminToken({ ...given, literal });
  assert.equal(replaced.made, undefined);
  assert.ok(replaced.check.verify('an-admin-secret-0123'));
  assert.ok(first.made && !replaced.check.verify(first.made.reveal()));
  const without = await loadAdminToken(given);
  assert.ok(without.made && without.check.verify(without.made.reveal()));
  assert.ok(!without.check.verify(first.made.reveal()));
  assert.ok(!without.check.verify('an-admin-secret-0123'));
  // The stored token in the variable stays what it is.
  await loadAdminToken({ ...given, literal: without.made });
  assert.ok((await loadAdminToken(given)).check.verify(without.made.reveal()));
  await assert.rejects(
    loadAdminToken({ ...given, literal: new Secret('short') }),
    /MODEL_GATEWAY_ADMIN_TOKEN/,
  );
  const { key } = await given.keys.create({ name: 'a', models: ['*'] });
  await assert.rejects(loadAdminToken({ ...given, literal: key }), /must not be a key/);
});
