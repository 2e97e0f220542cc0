/** S12: the headers of every answer of the admin listener, whoever gives it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contentSecurityPolicy } from '../../../src/admin/dashboard.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { send, sendRaw, type Sending } from '../../support/http.ts';
import { adminToken } from '../../support/keys.ts';

const literal =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

test('S12 every answer of the admin listener has the policy: pages, JSON, metrics, calls, every kind of refusal', async (t) => {
  const gateway = await startTestGateway({});
  t.after(() => gateway.stop());
  assert.ok(contentSecurityPolicy.startsWith(`${literal}; require-trusted-types-for 'script'`));
  const headers = { authorization: `Bearer ${adminToken}` };
  const page = { accept: 'text/html' };
  const chat = { model: 'local/tiny', max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] };
  const asked: readonly (readonly [string, number, unknown?, Sending?])[] = [
    ['/', 200, undefined, { headers: page }],
    ['/assets/none.js', 401, undefined, { anonymous: true }],
    ['/healthz', 200, undefined, { anonymous: true }],
    ['/api/keys', 200],
    ['/api/keys', 401, undefined, { anonymous: true }],
    ['/api/keys', 401, undefined, { headers: { authorization: 'Bearer wrong' } }],
    ['/api/keys', 400, { name: 7 }],
    ['/api/keys', 400, '{'],
    ['/api/none', 404],
    ['/api/session', 405, undefined, { method: 'PUT' }],
    ['/api/session', 403, { token: adminToken }, { anonymous: true }],
    ['/api/usage.csv?since=1h', 404],
    ['/metrics', 200],
    ['/api/playground/chat/completions', 200, chat],
    ['/api/playground/chat/completions', 200, { ...chat, stream: true }],
    ['/api/playground/chat/completions', 404, { ...chat, model: 'none' }],
    ['/api/playground/messages', 400, { ...chat, max_tokens: 'x' }],
  ];
  for (const [path, status, body, sending] of asked) {
    const answer = await send(gateway.adminUrl + path, body, {
      ...sending,
      headers: { ...(sending?.anonymous === true ? {} : headers), ...sending?.headers },
      anonymous: true,
    });
    const name = `${path} ${answer.text.slice(0, 200)}`;
    // A checkout whose dashboard is not built has a page that says so.
    if (path !== '/') assert.equal(answer.status, status, name);
    assert.equal(answer.headers['content-security-policy'], contentSecurityPolicy, name);
    assert.equal(answer.headers['x-content-type-options'], 'nosniff', name);
    assert.equal(answer.headers['referrer-policy'], 'no-referrer', name);
  }
  const tooLong = `GET / HTTP/1.1\r\nhost: a\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`;
  for (const bytes of ['GARBAGE\r\n\r\n', tooLong, 'CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n']) {
    const text = await sendRaw(gateway.adminUrl, bytes);
    assert.match(text, /^HTTP\/1\.1 4/);
    assert.ok(text.includes(`content-security-policy: ${contentSecurityPolicy}\r\n`), text);
    assert.match(text, /x-content-type-options: nosniff/);
  }
});
