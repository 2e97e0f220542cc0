/** S12, issue 8: the dashboard's files on the admin listener. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  contentSecurityPolicy,
  dashboardFiles,
  sendDashboard,
} from '../../../src/admin/dashboard.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { send, type Reply } from '../../support/http.ts';
import { adminRig } from './admin-rig.ts';

const html = '<!doctype html><title>built</title>';
const script = 'export const answer = 42;\n'.repeat(50);

interface Served {
  readonly folder: string;
  get(path: string, headers?: { readonly [name: string]: string }, method?: string): Promise<Reply>;
}

/** A server with nothing but the dashboard; what is not the dashboard's is 418. */
async function serve(t: TestContext, isBuilt = true): Promise<Served> {
  const folder = temporaryFolder('pages');
  if (isBuilt) {
    mkdirSync(join(folder, 'assets'));
    writeFileSync(join(folder, 'index.html'), html);
    writeFileSync(join(folder, 'assets', 'app-1.js'), script);
    writeFileSync(join(folder, 'assets', 'app-1.js.gz'), gzipSync(script));
  }
  writeFileSync(join(tmpdir(), `${folder.slice(tmpdir().length + 1)}.secret`), 'outside');
  const files = dashboardFiles(folder);
  const server = createServer((request, response) => {
    if (!sendDashboard(files, request, response)) response.writeHead(418).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  t.after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(`${folder}.secret`, { force: true });
  });
  const get: Served['get'] = (path, headers = {}, method = 'GET') =>
    send(`http://127.0.0.1:${port}${path}`, undefined, { method, headers, anonymous: true });
  return { folder, get };
}

const page = { accept: 'text/html,*/*' };

test('S12 every file comes with the policy, word for word, and with Trusted Types', async (t) => {
  const { get } = await serve(t);
  assert.ok(
    contentSecurityPolicy.startsWith(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
  );
  for (const path of ['/', '/calls/req_1', '/assets/app-1.js']) {
    const { status, headers } = await get(path, page);
    assert.equal(status, 200, path);
    assert.equal(headers['content-security-policy'], contentSecurityPolicy);
    assert.match(
      contentSecurityPolicy,
      /require-trusted-types-for 'script'; trusted-types 'none'$/,
    );
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['referrer-policy'], 'no-referrer');
  }
});

test('issue 8 pages are the index wherever a person opens one; addresses of programs are not', async (t) => {
  const { get } = await serve(t);
  for (const path of ['/', '/keys', '/calls/req_1?model=a', '/no-such-page']) {
    assert.equal((await get(path, page)).text, html, path);
  }
  for (const path of [
    '/api/keys',
    '/api',
    '/metrics',
    '/healthz',
    '/v1/models',
    '/assets/none.js',
    '/x.js',
  ]) {
    assert.equal((await get(path, page)).status, 418, path);
  }
  assert.equal((await get('/keys', { accept: 'application/json' })).status, 418);
  assert.equal((await get('/', page, 'POST')).status, 418);
  assert.equal((await get('/')).text, html);
});

test('issue 8 files are kept by browsers, asked for by ETag, and sent compressed to those who take it', async (t) => {
  const { get } = await serve(t);
  const plain = await get('/assets/app-1.js');
  assert.equal(plain.text, script);
  assert.match(String(plain.headers['cache-control']), /immutable/);
  assert.equal((await get('/', page)).headers['cache-control'], 'no-cache');
  for (const [accepted, isCompressed] of [
    ['gzip, br', true],
    ['br;q=1, gzip;q=0.5', true],
    ['gzip;q=0', false],
    ['identity', false],
  ] as const) {
    const { headers } = await get('/assets/app-1.js', { 'accept-encoding': accepted });
    assert.equal(headers['content-encoding'], isCompressed ? 'gzip' : undefined, accepted);
    assert.equal(headers['vary'], 'accept-encoding');
  }
  const zipped = await get('/assets/app-1.js', { 'accept-encoding': 'gzip' });
  assert.notEqual(zipped.headers['etag'], plain.headers['etag']);
  assert.equal(Number(zipped.headers['content-length']), gzipSync(script).length);
  assert.equal(gunzipSync(zipped.bytes).toString(), script);
  const again = await get('/assets/app-1.js', { 'if-none-match': String(plain.headers['etag']) });
  assert.deepEqual([again.status, again.text], [304, '']);
  const weak = `"other", W/${String(plain.headers['etag'])}`;
  assert.equal((await get('/assets/app-1.js', { 'if-none-match': weak })).status, 304);
  const head = await get('/assets/app-1.js', {}, 'HEAD');
  assert.deepEqual([head.status, head.text], [200, '']);
});

test('S12 nothing outside the folder is found, however the path is written', async (t) => {
  const { folder, get } = await serve(t);
  const name = folder.slice(tmpdir().length + 1);
  for (const path of [
    `/../${name}.secret`,
    `/assets/../../${name}.secret`,
    `/%2e%2e/${name}.secret`,
    '/assets/..%2findex.html',
    '//etc/passwd',
  ]) {
    const answer = await get(path);
    assert.ok(!answer.text.includes('outside') && !answer.text.includes('root:'), path);
  }
});

test('issue 8 a dashboard that is not built says how to build it; one that is built again is served anew', async (t) => {
  const { folder, get } = await serve(t, false);
  const none = await get('/', page);
  assert.equal(none.status, 404);
  assert.match(none.text, /npm run build:dashboard/);
  // An install with --omit=dev lacks what that command needs.
  assert.match(none.text, /--omit=dev.*stop the gateway, run\n<code>npm ci</);
  assert.equal(none.headers['content-security-policy'], contentSecurityPolicy);
  writeFileSync(join(folder, 'index.html'), html);
  assert.equal((await get('/', page)).text, html);
  writeFileSync(join(folder, 'index.html'), 'newer');
  utimesSync(join(folder, 'index.html'), 1e9, 1e9);
  assert.equal((await get('/', page)).text, 'newer');
});

test('issue 8 while a build replaces the folder, the files that were read are served', async (t) => {
  const { folder, get } = await serve(t);
  assert.equal((await get('/', page)).text, html);
  const before = `${folder}-before`;
  renameSync(folder, before);
  assert.equal((await get('/', page)).text, html, 'there is no folder');
  assert.equal((await get('/assets/app-1.js')).text, script);
  // A name that leads to no file: what is listed is gone when it is read.
  mkdirSync(folder);
  writeFileSync(join(folder, 'index.html'), 'newer');
  utimesSync(join(folder, 'index.html'), 1e9, 1e9);
  symlinkSync(join(folder, 'gone'), join(folder, 'app-2.js'));
  assert.equal((await get('/', page)).text, html, 'the folder changes while it is read');
  rmSync(join(folder, 'app-2.js'));
  assert.equal((await get('/', page)).text, 'newer');
});

test('S9 issue 8 the admin listener shows the page without a sign-in and reveals nothing else', async (t) => {
  const rig = await adminRig(t);
  const answers = await Promise.all(
    ['/', '/keys'].map((path) => fetch(rig.url + path, { headers: page })),
  );
  for (const answer of answers) {
    assert.ok(answer.status === 200 || answer.status === 404);
    assert.match(String(answer.headers.get('content-type')), /^text\/html/);
  }
  assert.equal((await fetch(`${rig.url}/api/keys`, { headers: page })).status, 401);
  assert.equal((await fetch(`${rig.url}/keys`)).status, 401);
});
