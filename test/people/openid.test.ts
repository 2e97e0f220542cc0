/** Sign-in by OpenID Connect: against the certified `oidc-provider`, and against one that lies. */
import assert from 'node:assert/strict';
import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { it } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { freePort } from '../support/server-process.ts';
import { listOf } from '../unit/admin/admin-rig.ts';
import { client, lyingProvider, part, realProvider, signed } from './providers.ts';
import {
  atProvider,
  begin,
  Browser,
  callback,
  dashboard,
  locationOf,
  returned,
  returnedFrom,
  rigFor,
} from './sign-in-scene.ts';

it('a person signs in at the real provider: session, roles, audit; a second return is refused', async (t) => {
  const issuer = await realProvider(t, callback);
  const rig = await rigFor(t, issuer);
  const begun = await begin(rig);
  const asked = new URL(begun.address).searchParams;
  assert.equal(asked.get('code_challenge_method'), 'S256');
  assert.ok(asked.get('nonce') !== null && asked.get('state') !== null);
  const jar = new Map(begun.browser.cookies);
  const at = await atProvider(begun.address, 'ops');
  const back = await returned(rig, begun, at);
  assert.deepEqual([back.status, locationOf(back)], [302, `${dashboard}/`]);
  assert.match(back.headers.getSetCookie()[0] ?? '', /; HttpOnly; Secure; SameSite=Strict$/);
  const seen = (await (await begun.browser.open(`${rig.url}/api/session`)).json()) as JsonObject;
  assert.deepEqual(seen['roles'], ['operator']);
  assert.deepEqual(seen['person'], { id: 'ops', name: 'Name of ops', leads: [], teams: [] });
  const [entry] = listOf((await rig.ask('/api/audit')).body, 'entries');
  assert.deepEqual([entry?.['actor'], entry?.['action']], ['person:ops', 'person.sign_in']);
  // The same code, state and cookie once more.
  const replay = new Browser();
  for (const [name, value] of jar) replay.cookies.set(name, value);
  const again = await returned(rig, { ...begun, browser: replay }, at);
  assert.equal(locationOf(again), `${dashboard}/?sign_in=expired`);
  // Another gateway does not know that the state was used; the provider knows that the code was.
  const other = await rigFor(t, issuer);
  const cookie = new Browser();
  const [value = ''] = jar.values();
  cookie.cookies.set(`__Host-model-gateway-${new URL(other.url).port}-oidc`, value);
  const elsewhere = await returned(other, { ...begun, browser: cookie }, at);
  assert.equal(locationOf(elsewhere), `${dashboard}/?sign_in=invalid`);
});

it('who is in no group has no session, who is revoked neither, and whose role is gone loses theirs', async (t) => {
  const issuer = await realProvider(t, callback);
  const rig = await rigFor(t, issuer);
  const signIn = async (account: string): Promise<string> => {
    const begun = await begin(rig);
    return locationOf(await returned(rig, begun, await atProvider(begun.address, account)));
  };
  assert.equal(await signIn('strangers'), `${dashboard}/?sign_in=no-role`);
  assert.equal(await signIn('red'), `${dashboard}/`);
  assert.equal((await rig.ask('/api/people/red/revoke', { method: 'POST' })).status, 200);
  assert.equal(await signIn('red'), `${dashboard}/?sign_in=revoked`);
  assert.deepEqual(listOf((await rig.ask('/api/sessions')).body, 'sessions'), []);
});

it('a return without the cookie, with another state, or too late is refused', async (t) => {
  const issuer = await realProvider(t, callback);
  const rig = await rigFor(t, issuer);
  const begun = await begin(rig);
  const at = await atProvider(begun.address, 'ops');
  const stranger = await returned(rig, { ...begun, browser: new Browser() }, at);
  assert.equal(locationOf(stranger), `${dashboard}/?sign_in=expired`);
  const other = await begin(rig);
  const mixed = await returned(rig, other, at);
  assert.equal(locationOf(mixed), `${dashboard}/?sign_in=invalid`);
  rig.clock.time += 600_000;
  const late = await returned(rig, begun, at);
  assert.equal(locationOf(late), `${dashboard}/?sign_in=expired`);
  assert.deepEqual(listOf((await rig.ask('/api/sessions')).body, 'sessions'), []);
});

it('a sign-in whose return failed is used up, and so is one whose return is still being checked', async (t) => {
  const issuer = await realProvider(t, callback);
  const rig = await rigFor(t, issuer);
  const failed = await begin(rig);
  const jar = new Map(failed.browser.cookies);
  const at = await atProvider(failed.address, 'ops');
  const wrong = new URL(at);
  wrong.searchParams.set('state', 'another');
  assert.equal(
    locationOf(await returned(rig, failed, wrong.href)),
    `${dashboard}/?sign_in=invalid`,
  );
  for (const [name, value] of jar) failed.browser.cookies.set(name, value);
  assert.equal(locationOf(await returned(rig, failed, at)), `${dashboard}/?sign_in=expired`);
  const twice = await begin(rig);
  const address = await atProvider(twice.address, 'ops');
  const both = await Promise.all([1, 2].map(() => returned(rig, twice, address)));
  assert.deepEqual(both.map(locationOf).toSorted(), [
    `${dashboard}/`,
    `${dashboard}/?sign_in=expired`,
  ]);
});

it('a provider that does not answer is reported, and the admin token still works', async (t) => {
  const rig = await rigFor(t, `http://127.0.0.1:${await freePort()}`);
  const response = await new Browser().open(`${rig.url}/api/oidc/login`);
  assert.equal(locationOf(response), `${dashboard}/?sign_in=unreachable`);
  assert.equal((await rig.ask('/api/status')).status, 200);
});

const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
const hourAgo = Math.floor(Date.now() / 1000) - 3600;

const lies: readonly (readonly [string, Parameters<typeof lyingProvider>[1], string])[] = [
  ['a sound token', signed, ''],
  ['wrong issuer', (c, key) => signed({ ...c, iss: 'https://evil.example' }, key), 'invalid'],
  ['wrong audience', (c, key) => signed({ ...c, aud: 'other' }, key), 'invalid'],
  ['wrong nonce', (c, key) => signed({ ...c, nonce: 'of-another-sign-in' }, key), 'invalid'],
  ['no nonce', (c, key) => signed(without(c, 'nonce'), key), 'invalid'],
  ['expired', (c, key) => signed({ ...c, iat: hourAgo, exp: hourAgo + 60 }, key), 'invalid'],
  ['unsigned', (c) => `${part({ alg: 'none' })}.${part(c)}.`, 'invalid'],
  ['of another key', (c) => signed(c, stranger), 'invalid'],
  ['signed with the secret of the client', (c) => signedBy(c, client.secret), 'invalid'],
  ['signed with the public key as a secret', (c, key) => signedBy(c, pemOf(key)), 'invalid'],
  [
    'changed',
    (c, key) => signed(c, key).replace(/\.[^.]+\./, `.${part({ ...c, sub: 'eve' })}.`),
    'invalid',
  ],
  ['of two megabytes', (c, key) => signed({ ...c, pad: 'x'.repeat(2_000_000) }, key), 'invalid'],
  ['no person', (c, key) => signed(without(c, 'sub'), key), 'invalid'],
];

function without(claims: JsonObject, name: string): JsonObject {
  return Object.fromEntries(Object.entries(claims).filter(([each]) => each !== name));
}

/** By a secret that both sides know, as HS256 has it. */
function signedBy(claims: JsonObject, secret: string): string {
  const text = `${part({ alg: 'HS256' })}.${part(claims)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

function pemOf(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
}

for (const [what, token, failure] of lies) {
  it(`a token: ${what}`, async (t) => {
    const provider = await lyingProvider(t, token);
    const rig = await rigFor(t, provider.issuer);
    const back = await returnedFrom(rig, await begin(rig), provider);
    const expected = failure === '' ? `${dashboard}/` : `${dashboard}/?sign_in=${failure}`;
    assert.equal(locationOf(back), expected);
    const sessions = listOf((await rig.ask('/api/sessions')).body, 'sessions');
    assert.equal(sessions.length, failure === '' ? 1 : 0);
  });
}
