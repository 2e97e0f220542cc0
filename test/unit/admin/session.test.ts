import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { StoreError } from '../../../src/store/store-error.ts';
import { adminRig, adminToken, errorOf, type Answer, type Ask, type Rig } from './admin-rig.ts';

const csrf = { 'x-model-gateway-csrf': '1' };
const hour = 3_600_000;
const nobody = { signed_in: false, expires_at: null, person: null, roles: [], sign_in: null };

/** A browser at the rig's own page: the cookie that it was given, and what it sends by itself. */
class Browser {
  readonly origin: string;
  readonly #rig: Rig;
  cookie = '';

  constructor(rig: Rig, origin = rig.url) {
    this.#rig = rig;
    this.origin = origin;
  }

  /** With the headers of the page's own script, unless others are given. */
  async ask(path: string, { headers, ...options }: Ask = {}): Promise<Answer> {
    const method = options.method ?? 'GET';
    const own = {
      'sec-fetch-site': 'same-origin',
      ...(method === 'GET' ? {} : { origin: this.origin, ...csrf }),
    };
    const sent = { ...(headers ?? own), ...(this.cookie === '' ? {} : { cookie: this.cookie }) };
    const answer = await this.#rig.ask(path, { ...options, token: undefined, headers: sent });
    const [set] = [answer.headers['set-cookie'] ?? []].flat();
    if (set !== undefined) this.cookie = set.split(';', 1)[0] ?? '';
    return answer;
  }

  signIn(token = adminToken): Promise<Answer> {
    return this.ask('/api/session', { method: 'POST', body: { token } });
  }
}

async function signedIn(t: TestContext): Promise<{ readonly rig: Rig; readonly page: Browser }> {
  const rig = await adminRig(t);
  const page = new Browser(rig);
  assert.equal((await page.signIn()).status, 200);
  return { rig, page };
}

it('S11 the admin token opens a session, whose cookie is for this host, TLS, no script and no other site', async (t) => {
  const rig = await adminRig(t);
  const page = new Browser(rig);
  const before = await page.ask('/api/session');
  assert.deepEqual([before.status, before.body], [200, nobody]);
  assert.equal((await page.ask('/api/keys')).status, 401);
  const opened = await page.signIn();
  const expires = new Date(rig.clock.wall() + 12 * hour).toISOString();
  assert.deepEqual(
    [opened.status, opened.body],
    [200, { signed_in: true, expires_at: expires, person: null, roles: ['owner'], sign_in: null }],
  );
  const [cookie = ''] = [opened.headers['set-cookie'] ?? []].flat();
  const { port } = new URL(rig.url);
  assert.match(
    cookie,
    new RegExp(
      `^__Host-model-gateway-${port}=[\\w-]{43}; Path=/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict$`,
    ),
  );
  assert.ok(
    !JSON.stringify(opened.body).includes(page.cookie.slice(-43)),
    'the id is in the cookie only',
  );
  assert.deepEqual((await page.ask('/api/session')).body, opened.body);
  assert.equal((await page.ask('/api/keys')).status, 200);
  const made = await page.ask('/api/keys', { method: 'POST', body: { name: 'a', models: ['*'] } });
  assert.equal(made.status, 201);
  const audit = await page.ask('/api/audit');
  assert.match(JSON.stringify(audit.body), /"actor":"admin"/);
});

it('S11 a session ends after twelve hours, whatever was done with it', async (t) => {
  const { rig, page } = await signedIn(t);
  for (let passed = 1; passed < 12; passed++) {
    rig.clock.time += hour;
    assert.equal((await page.ask('/api/status')).status, 200);
  }
  rig.clock.time += hour - 1;
  assert.equal((await page.ask('/api/status')).status, 200);
  rig.clock.time += 1;
  assert.equal((await page.ask('/api/status')).status, 401);
  assert.deepEqual((await page.ask('/api/session')).body, nobody);
});

it('S11 a session ends two hours after its last use', async (t) => {
  const { rig, page } = await signedIn(t);
  rig.clock.time += 2 * hour - 1;
  assert.equal((await page.ask('/api/status')).status, 200);
  rig.clock.time += 2 * hour - 1;
  assert.equal((await page.ask('/api/status')).status, 200);
  rig.clock.time += 2 * hour;
  assert.equal((await page.ask('/api/status')).status, 401);
});

it('S11 signing out ends it at once, for whoever has the cookie', async (t) => {
  const { rig, page } = await signedIn(t);
  const other = new Browser(rig);
  other.cookie = page.cookie;
  const ended = await page.ask('/api/session', { method: 'DELETE' });
  assert.deepEqual([ended.status, ended.body], [200, nobody]);
  const [cookie = ''] = [ended.headers['set-cookie'] ?? []].flat();
  assert.match(cookie, /=; Path=\/; Max-Age=0; /);
  assert.equal((await other.ask('/api/status')).status, 401);
});

it('S11 sessions end with the token, and open no other store', async (t) => {
  const { page, rig } = await signedIn(t);
  const again = await adminRig(t);
  const elsewhere = new Browser(again);
  elsewhere.cookie = page.cookie.replace(/-\d+=/, `-${new URL(again.url).port}=`);
  assert.equal((await elsewhere.ask('/api/status')).status, 401);
  assert.equal((await page.ask('/api/status')).status, 200);
  rig.tokenIs('another-admin-token-1');
  assert.equal((await page.ask('/api/status')).status, 401);
  rig.tokenIs(adminToken);
  assert.equal((await page.ask('/api/status')).status, 401, 'it is forgotten');
});

it('S11 changes by cookie need the header and the origin that signed in; tokens need neither', async (t) => {
  const { rig, page } = await signedIn(t);
  const { origin } = page;
  const foreign: readonly { readonly [name: string]: string }[] = [
    {},
    { origin },
    { ...csrf },
    { ...csrf, origin: 'null' },
    { ...csrf, origin: 'https://evil.example' },
    { ...csrf, origin: `${origin}0` },
    { ...csrf, origin: origin.replace('http:', 'https:') },
    { ...csrf, origin: origin.replace('127.0.0.1', 'localhost') },
    { 'x-model-gateway-csrf': '0', origin },
    { ...csrf, origin, 'sec-fetch-site': 'cross-site' },
    { ...csrf, origin, 'sec-fetch-site': 'same-site' },
  ];
  for (const headers of foreign) {
    for (const [method, path, body] of [
      ['POST', '/api/keys', { name: 'stolen', models: ['*'] }],
      ['PUT', '/api/teams/red', { rpm: 1 }],
      ['DELETE', '/api/session', undefined],
      ['POST', '/api/reload', undefined],
    ] as const) {
      const sent = { method, headers, ...(body === undefined ? {} : { body }) };
      const answer = await page.ask(path, sent);
      assert.equal(answer.status, 403, `${method} ${path} ${JSON.stringify(headers)}`);
      assert.match(String(errorOf(answer)['message']), /x-model-gateway-csrf/);
    }
  }
  assert.deepEqual((await rig.ask('/api/keys')).body['keys'], []);
  const byToken = await rig.ask('/api/keys', {
    method: 'POST',
    body: { name: 'a', models: ['*'] },
    headers: {
      origin: 'https://evil.example',
      'sec-fetch-site': 'cross-site',
      cookie: page.cookie,
    },
  });
  assert.equal(byToken.status, 201);
});

it('S11 a form of another page changes nothing, whatever its encoding', async (t) => {
  const { rig, page } = await signedIn(t);
  for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']) {
    const raw = '{"name":"stolen","models":["*"],"x":"="}';
    const headers = { 'content-type': type, origin: 'https://evil.example' };
    const answer = await page.ask('/api/keys', { method: 'POST', raw, headers });
    assert.equal(answer.status, 403, type);
    // Browsers of the same machine's other ports: the same site, so the cookie comes along.
    const near = { ...headers, origin: 'http://127.0.0.1:9', 'sec-fetch-site': 'same-site' };
    assert.equal((await page.ask('/api/keys', { method: 'POST', raw, headers: near })).status, 403);
  }
  assert.deepEqual((await rig.ask('/api/keys')).body['keys'], []);
});

it('S11 other origins read nothing either, and are told nothing they could share', async (t) => {
  const { page } = await signedIn(t);
  for (const site of ['cross-site', 'same-site']) {
    const answer = await page.ask('/api/keys', { headers: { 'sec-fetch-site': site } });
    assert.equal(answer.status, 403, site);
  }
  const typed = await page.ask('/api/keys', { headers: { 'sec-fetch-site': 'none' } });
  assert.equal(typed.status, 200);
  assert.equal(typed.headers['cross-origin-resource-policy'], 'same-origin');
  const asked = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
  const preflight = await page.ask('/api/keys', { method: 'OPTIONS', headers: asked });
  assert.equal(preflight.status, 403);
  for (const headers of [typed.headers, preflight.headers]) {
    assert.deepEqual(
      Object.keys(headers).filter((name) => name.startsWith('access-control')),
      [],
    );
  }
});

it('S11 signing in is for a page: the header, an origin, and no other site', async (t) => {
  const rig = await adminRig(t);
  const page = new Browser(rig);
  const { origin } = page;
  for (const headers of [
    {},
    { origin },
    { ...csrf },
    { ...csrf, origin: 'null' },
    { ...csrf, origin: 'file://' },
    { ...csrf, origin, 'sec-fetch-site': 'cross-site' },
    { ...csrf, origin, 'sec-fetch-site': 'same-site' },
  ]) {
    const sent = { method: 'POST', body: { token: adminToken }, headers };
    const answer = await page.ask('/api/session', sent);
    assert.equal(answer.status, 403, JSON.stringify(headers));
    assert.equal(answer.headers['set-cookie'], undefined);
    // Whoever signs in has no session yet.
    assert.doesNotMatch(String(errorOf(answer)['message']), /has a session cookie/);
  }
});

it('S9 S11 over plain HTTP from another machine signing in says what to do instead', async (t) => {
  const rig = await adminRig(t);
  for (const origin of ['http://admin.example', 'http://10.0.0.5:8687', 'http://127.example.com']) {
    const answer = await new Browser(rig, origin).signIn();
    assert.equal(answer.status, 403, origin);
    assert.match(String(errorOf(answer)['message']), /TLS proxy.*https:\/\/.*ssh -L 8687/);
  }
  for (const origin of ['https://admin.example', 'http://localhost:8687', 'http://[::1]:1']) {
    assert.equal((await new Browser(rig, origin).signIn()).status, 200, origin);
  }
});

it('S11 the sixth wrong token within a minute is refused for that; the right one signs in all the while', async (t) => {
  const rig = await adminRig(t);
  const page = new Browser(rig);
  for (let i = 0; i < 5; i++) {
    const wrong = await page.signIn(`guess ${i}`);
    assert.equal(wrong.status, 401);
    assert.equal(errorOf(wrong)['field'], 'token');
  }
  const refused = await page.signIn('guess 6');
  assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '12']);
  // One count: nobody gets five more by guessing in a header.
  assert.equal((await rig.ask('/api/status', { token: 'guess 7' })).status, 429);
  assert.equal((await page.signIn()).status, 200);
  rig.clock.time += 12_000;
  assert.equal((await page.signIn('guess 8')).status, 401);
});

it('S11 strangers send no long bodies, and no other members', async (t) => {
  const rig = await adminRig(t);
  const page = new Browser(rig);
  assert.equal((await page.signIn('x'.repeat(9000))).status, 413);
  const more = { method: 'POST', body: { token: adminToken, hours: 99 } };
  assert.equal((await page.ask('/api/session', more)).status, 400);
});

it('S9 a key of the data plane is no token, and a session no key', async (t) => {
  const { rig, page } = await signedIn(t);
  const { key } = await rig.keys.create({ name: 'a', models: ['*'] });
  assert.equal((await new Browser(rig).signIn(key.reveal())).status, 401);
  assert.equal((await new Browser(rig).signIn(rig.control.reveal())).status, 401);
  const id = page.cookie.split('=')[1] ?? '';
  assert.equal((await rig.ask('/api/status', { token: id })).status, 401);
  assert.throws(() => rig.keys.authenticate(`Bearer ${id}`, undefined), {
    code: 'unauthenticated',
  });
});

it('S11 a stranger with any cookie does not learn why the store is away', async (t) => {
  const rig = await adminRig(t);
  Object.assign(rig.deps.store.people, {
    session: async () => {
      throw new StoreError('unavailable', 'postgres://10.1.2.3/gateway refuses the connection');
    },
  });
  const cookie = `__Host-model-gateway-${new URL(rig.url).port}=anything`;
  const answer = await rig.ask('/api/models', { token: undefined, headers: { cookie } });
  assert.equal(answer.status, 503);
  assert.doesNotMatch(JSON.stringify(answer.body), /postgres|10\.1\.2\.3/);
});
