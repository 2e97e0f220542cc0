/** Which claims make which person, and what a sign-in leaves behind: no text of the provider, no old session. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { OidcSettings } from '../../src/config/oidc.ts';
import type { Log } from '../../src/core/runtime.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { errorOf, listOf, textOf, type Rig } from '../unit/admin/admin-rig.ts';
import { accessToken, client, lyingProvider, signed } from './providers.ts';
import {
  begin,
  Browser,
  callback,
  dashboard,
  locationOf,
  returned,
  returnedFrom,
  rigFor,
  sealer,
} from './sign-in-scene.ts';

interface Case {
  /** Besides those of Ana, who is in the group `admins`. */
  readonly claims?: JsonObject;
  readonly userinfo?: JsonObject;
  readonly settings?: Partial<OidcSettings>;
}

interface SignedIn {
  readonly rig: Rig;
  readonly browser: Browser;
  /** '' = let in. */
  readonly failure: string;
  readonly session: JsonObject;
}

/** Null takes a claim away. */
function present(claims: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== null));
}

async function signIn(t: TestContext, { claims, userinfo, settings }: Case): Promise<SignedIn> {
  const token = (own: JsonObject, key: Parameters<typeof signed>[1]): string =>
    signed(present({ ...own, ...claims }), key);
  const provider = await lyingProvider(t, token, userinfo);
  const rig = await rigFor(t, provider.issuer, settings === undefined ? {} : { settings });
  const begun = await begin(rig);
  const at = new URL(locationOf(await returnedFrom(rig, begun, provider)));
  assert.equal(at.origin, dashboard);
  const { browser } = begun;
  const session = (await (await browser.open(`${rig.url}/api/session`)).json()) as JsonObject;
  return { rig, browser, failure: at.searchParams.get('sign_in') ?? '', session };
}

const named = { person: 'sub', name: 'name', groups: 'groups' };
const byEmail = { claims: { ...named, person: 'email' } };
const none = { groups: null };

const cases: readonly (readonly [string, Case, string | JsonObject])[] = [
  ['a group with a role', {}, { id: 'ana', roles: ['owner'] }],
  ['one group as a text', { claims: { groups: 'ops' } }, { id: 'ana', roles: ['operator'] }],
  ['no group', { claims: none }, 'no-role'],
  ['a group that no role has', { claims: { groups: ['x', 'Admins'] } }, 'no-role'],
  ['groups of another form', { claims: { groups: { admins: true } } }, 'no-role'],
  ['a role by its own name', { claims: { ...none, roles: ['owner'] } }, 'no-role'],
  [
    'roles and teams together',
    { claims: { groups: ['ops', 'red'] } },
    { id: 'ana', roles: ['operator', 'member'] },
  ],
  [
    'a claim within others',
    {
      claims: { realm_access: { roles: ['admins'] }, ...none },
      settings: { claims: { ...named, groups: 'realm_access.roles' } },
    },
    { id: 'ana', roles: ['owner'] },
  ],
  [
    'groups that only the userinfo has',
    { claims: none, userinfo: { sub: 'ana', groups: ['ops'] } },
    { id: 'ana', roles: ['operator'] },
  ],
  [
    'userinfo of another person',
    { claims: none, userinfo: { sub: 'eve', groups: ['admins'] } },
    'invalid',
  ],
  [
    'a verified email',
    { claims: { email: 'ana@x.example', email_verified: true }, settings: byEmail },
    { id: 'ana@x.example', roles: ['owner'] },
  ],
  [
    'an email that the userinfo verifies',
    {
      claims: { email: 'ana@x.example' },
      userinfo: { sub: 'ana', email_verified: true },
      settings: byEmail,
    },
    { id: 'ana@x.example', roles: ['owner'] },
  ],
  ['an email that nobody verified', { claims: { email: 'a@x' }, settings: byEmail }, 'invalid'],
  [
    'an email that is not verified',
    { claims: { email: 'a@x', email_verified: 'true' }, settings: byEmail },
    'invalid',
  ],
  ['an id of two lines', { claims: { sub: 'ana\nadmin' } }, 'invalid'],
  ['an id that is no text', { claims: { sub: 7 } }, 'invalid'],
];

for (const [what, given, expected] of cases) {
  it(`claims: ${what}`, async (t) => {
    const { rig, failure, session } = await signIn(t, given);
    if (typeof expected === 'string') {
      assert.equal(failure, expected);
      assert.equal(session['signed_in'], false);
      assert.deepEqual(listOf((await rig.ask('/api/people')).body, 'people'), []);
      return;
    }
    assert.equal(failure, '');
    const person = session['person'] as JsonObject;
    assert.deepEqual({ id: person['id'], roles: session['roles'] }, expected);
    const button = { label: 'Test', url: `${dashboard}/api/oidc/login` };
    assert.deepEqual(session['sign_in'], button);
  });
}

it('S11 a sign-in opens a session of its own and ends the one before: an id that was planted opens nothing', async (t) => {
  const provider = await lyingProvider(t, signed);
  const rig = await rigFor(t, provider.issuer);
  const name = `__Host-model-gateway-${new URL(rig.url).port}`;
  const planted = new Browser();
  planted.cookies.set(name, 'planted-by-a-stranger');
  const browser = (await begin(rig, planted)).browser;
  await returnedFrom(rig, await begin(rig, browser), provider);
  const first = browser.cookies.get(name) ?? '';
  assert.match(first, /^[\w-]{43}$/);
  await returnedFrom(rig, await begin(rig, browser), provider);
  const second = browser.cookies.get(name) ?? '';
  assert.notEqual(first, second);
  const opens = async (value: string): Promise<number> => {
    const other = new Browser();
    other.cookies.set(name, value);
    return (await other.open(`${rig.url}/api/models`)).status;
  };
  const found = [await opens('planted-by-a-stranger'), await opens(first), await opens(second)];
  assert.deepEqual(found, [401, 401, 200]);
  assert.equal(listOf((await rig.ask('/api/sessions')).body, 'sessions').length, 1);
});

it('S11 the session of a person changes nothing from another page', async (t) => {
  const { rig, browser } = await signIn(t, {});
  const url = `${rig.url}/api/teams/red`;
  const body = JSON.stringify({ rpm: 1 });
  const csrf = { 'x-model-gateway-csrf': '1', 'content-type': 'application/json' };
  for (const headers of [
    {},
    csrf,
    { origin: dashboard },
    { ...csrf, origin: 'http://127.0.0.1:9' },
    { ...csrf, origin: dashboard, 'sec-fetch-site': 'cross-site' },
    { ...csrf, origin: dashboard, 'sec-fetch-site': 'same-site' },
  ]) {
    const answer = await browser.open(url, { method: 'PUT', body, headers });
    assert.equal(answer.status, 403, JSON.stringify(headers));
  }
  const own = { ...csrf, origin: dashboard, 'sec-fetch-site': 'same-origin' };
  assert.equal((await browser.open(url, { method: 'PUT', body, headers: own })).status, 200);
});

it('S11 whatever an address asks for, a sign-in leads to the dashboard and nowhere else', async (t) => {
  const provider = await lyingProvider(t, signed);
  const rig = await rigFor(t, provider.issuer);
  const evil = 'https://evil.example/';
  for (const name of ['return_to', 'next', 'redirect_uri', 'iss']) {
    const query = new URLSearchParams({ [name]: evil }).toString();
    const browser = new Browser();
    const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example' };
    const login = await browser.open(`${rig.url}/api/oidc/login?${query}`, { headers });
    const address = new URL(locationOf(login));
    assert.equal(address.origin, provider.issuer);
    assert.equal(address.searchParams.get('redirect_uri'), callback);
    const state = address.searchParams.get('state') ?? '';
    provider.nonceIs(address.searchParams.get('nonce') ?? '');
    const at = `${callback}?${query}&code=c-${name}&state=${encodeURIComponent(state)}`;
    const back = await returned(rig, { browser, address: '' }, at);
    const isRefused = name === 'iss';
    assert.equal(locationOf(back), isRefused ? `${dashboard}/?sign_in=invalid` : `${dashboard}/`);
    assert.equal(back.headers.get('cache-control'), 'no-store');
    assert.equal(back.headers.get('referrer-policy'), 'no-referrer');
  }
});

it('S11 what was sealed for something else begins no sign-in', async (t) => {
  const provider = await lyingProvider(t, signed);
  const rig = await rigFor(t, provider.issuer);
  const begun = await begin(rig);
  const name = `__Host-model-gateway-${new URL(rig.url).port}-oidc`;
  const own = begun.browser.cookies.get(name) ?? '';
  const record = sealer.open(own) ?? {};
  for (const value of ['', 'x', own.slice(0, -2), sealer.seal({ ...record, purpose: 'other' })]) {
    const browser = new Browser();
    browser.cookies.set(name, value);
    const back = await returnedFrom(rig, { ...begun, browser }, provider);
    assert.equal(locationOf(back), `${dashboard}/?sign_in=expired`, value);
  }
});

it('S24 the log and the audit log name the person, and hold no token, code, secret or cookie', async (t) => {
  const lines: string[] = [];
  const note = (event: string, fields?: object): void =>
    void lines.push(`${event} ${JSON.stringify(fields)}`);
  const log: Log = { debug: note, info: note, warn: note, error: note };
  let isSound = true;
  const provider = await lyingProvider(t, (claims, key) =>
    signed(isSound ? claims : { ...claims, aud: 'other' }, key),
  );
  const rig = await rigFor(t, provider.issuer, { log });
  const begun = await begin(rig);
  const secrets = [client.secret, accessToken, 'eyJ', 'code-'];
  for (const name of ['state', 'nonce', 'code_challenge']) {
    secrets.push(new URL(begun.address).searchParams.get(name) ?? '');
  }
  secrets.push(...begun.browser.cookies.values());
  await returnedFrom(rig, begun, provider);
  secrets.push(...begun.browser.cookies.values());
  isSound = false;
  await returnedFrom(rig, await begin(rig), provider);
  await returnedFrom(rig, { ...begun, browser: new Browser() }, provider);
  const failures = lines.filter((line) => line.startsWith('refused {"error":"sign_in"'));
  assert.equal(failures.length, 2, lines.join('\n'));
  const audit = JSON.stringify((await rig.ask('/api/audit')).body);
  const [entry] = listOf((await rig.ask('/api/audit')).body, 'entries');
  assert.deepEqual([entry?.['actor'], entry?.['action']], ['person:ana', 'person.sign_in']);
  const shown = [audit, JSON.stringify((await rig.ask('/api/sessions')).body), ...lines].join('\n');
  for (const secret of secrets) assert.ok(secret !== '' && !shown.includes(secret), secret);
});

it('a role that the provider takes away is gone from all sessions with the next sign-in', async (t) => {
  let groups = ['admins'];
  const provider = await lyingProvider(t, (claims, key) => signed({ ...claims, groups }, key));
  const rig = await rigFor(t, provider.issuer);
  const sign = async (): Promise<Browser> => {
    const begun = await begin(rig);
    await returnedFrom(rig, begun, provider);
    return begun.browser;
  };
  const roles = async (browser: Browser): Promise<unknown> =>
    ((await (await browser.open(`${rig.url}/api/session`)).json()) as JsonObject)['roles'];
  const first = await sign();
  assert.deepEqual(await roles(first), ['owner']);
  groups = ['red'];
  await sign();
  rig.clock.time += 6000;
  assert.deepEqual(await roles(first), ['member']);
  const refused = await first.open(`${rig.url}/api/people`);
  assert.equal(refused.status, 403);
  const told = errorOf({ status: 403, headers: {}, body: (await refused.json()) as JsonObject });
  assert.match(textOf(told, 'message'), /You are signed in as Ana with member/);
  groups = [];
  await sign();
  rig.clock.time += 6000;
  assert.deepEqual(await roles(first), []);
  assert.deepEqual(listOf((await rig.ask('/api/sessions')).body, 'sessions'), []);
});
