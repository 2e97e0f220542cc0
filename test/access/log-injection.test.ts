/** S13: words of clients and upstreams that look like log lines, terminal commands or headers of their own. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { Instance } from '../cluster/instance.ts';
import { rawPost } from '../support/raw-post.ts';
import { requestBody } from '../support/requests.ts';
import { clientDialects } from '../support/dialects.ts';
import { send, sendRaw } from '../support/http.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

const forged = '{"time":"2020-01-01","level":"info","event":"forged"}';
/** Line ends of all kinds, terminal sequences by ESC and by C1, a bell, turned text. */
const evil = `a\r\n${forged}\n\u0085${forged}\u2028\u2029\u001b[2J\u009b31m\u0007\u202e\u0000b`;

let upstream: ScriptedUpstream;
let instance: Instance;
before(async () => {
  upstream = await ScriptedUpstream.start();
  instance = await Instance.start({
    storage: 'sqlite',
    upstream: upstream.port,
    config: { log_level: 'debug' },
  });
});
after(async () => {
  await instance.stop();
  await upstream.close();
});

test('S13 each line of the log is one object of the gateway, and nothing in it is obeyed', async () => {
  const { key } = await instance.makeKey();
  const headers = { authorization: `Bearer ${key}` };
  upstream.script(evil, {
    status: 400,
    headers: { 'x-note': 'a' },
    body: JSON.stringify({ error: { message: evil, type: evil, code: evil, param: evil } }),
  });
  for (const dialect of clientDialects) {
    for (const model of [evil, `up/${evil}`]) {
      const path = dialect === 'chat' ? '/v1/chat/completions' : '/v1/messages';
      const body = {
        ...requestBody(dialect, { model, stream: true }),
        metadata: { user_id: evil },
      };
      const reply = await send(instance.url + path, body, { headers });
      assert.ok(reply.status >= 400);
      // A header of the answer holds the model's name: no line of it may be another header.
      assert.equal(reply.headers['event'], undefined);
      for (const value of Object.values(reply.headers)) {
        assert.doesNotMatch(String(value), /[^\x20-\x7e]/);
      }
    }
    await rawPost(instance.url, {
      dialect,
      body: JSON.stringify(requestBody(dialect, { model: 'up/x', stream: false })),
      contentType: 'application/json',
      auth: [`Authorization: Bearer ${key}`],
      lines: ['x-gateway-tags: a\u009b31m', 'x-session-id: \u001b[2J', 'user-agent: \u0085x'],
    });
  }
  const target = `/v1/${encodeURIComponent(evil)}`;
  await send(instance.url + target, undefined, { headers });
  await sendRaw(instance.url, `GET /\u009b31m${forged}\u001b[2J HTTP/1.1\r\nHost: a\r\n\r\n`);
  await sendRaw(instance.url, `GET /v1/models HTTP/1.1\r\nHost: a\r\nx: a\rb\r\n\r\n`);
  await instance.admin('POST', '/api/keys', { name: evil, models: [evil] });
  await instance.admin('GET', `/api/keys/${encodeURIComponent(evil)}`);
  assert.equal(await instance.stop(), 0);

  const lines = instance.log.split('\n').filter((line) => line.includes('"event"'));
  assert.ok(lines.length > 6, instance.log);
  for (const line of lines) {
    const entry = tryParseObject(line);
    assert.notEqual(entry, undefined, line);
    assert.notEqual(entry?.['event'], 'forged', line);
    assert.match(String(entry?.['time']), /^20\d\d-\d\d-\d\dT[\d:.]+Z$/);
    assert.doesNotMatch(line, /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
    assert.ok(!line.includes(key) && !/authorization|x-api-key|cookie/i.test(line), line);
  }
});
