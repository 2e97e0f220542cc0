/** Keys, routes and methods: what is answered before a body matters. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { adminToken, clientKey } from '../support/keys.ts';
import { send, sendRaw, type Reply } from '../support/http.ts';
import { assertErrorBody } from '../support/legality.ts';
import { rawPost } from '../support/raw-post.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

function legalBody(dialect: ClientDialect): string {
  return JSON.stringify(requestBody(dialect, { model: 'up-chat/unused', stream: false }));
}

function assertUnauthenticated(dialect: ClientDialect, reply: Reply): void {
  assert.equal(reply.status, 401, reply.text);
  assert.equal(reply.headers['www-authenticate'], 'Bearer');
  const error = assertErrorBody(dialect, reply.json);
  if (dialect !== 'messages') {
    assert.equal(error['type'], 'invalid_request_error');
    assert.equal(error['code'], 'invalid_api_key');
  } else {
    assert.equal(error['type'], 'authentication_error');
  }
}

/** B72: each is refused alike. */
const badKeys: { readonly [name: string]: string } = {
  'of another vendor': 'sk-ant-api03-AAAAAAAAAAAAAAAAAAAA',
  'with SQL': "' OR 1=1--",
  'of 10 KB': 'k'.repeat(10 * 1024),
  'nearly right': `${clientKey}x`,
  'a prefix of the right one': clientKey.slice(0, -1),
  'in latin-1': 'schlüssel-0123456789',
  'with a wrong checksum': 'gw_abcdefgh_0123456789012345678901234567890123456789012AAAAAA',
  'the admin token': adminToken,
};

for (const dialect of clientDialects) {
  describe(dialect, () => {
    const post = (headers: Record<string, string>): Promise<Reply> =>
      send(`${rig.gateway.url}${endpointOf[dialect]}`, legalBody(dialect), {
        anonymous: true,
        headers,
      });

    test('E4 no key', async () => {
      assertUnauthenticated(dialect, await post({}));
    });

    for (const [name, key] of Object.entries(badKeys)) {
      test(`B72 E4 a key ${name}, in both headers' forms`, async () => {
        const value = Buffer.from(key).toString('latin1');
        assertUnauthenticated(dialect, await post({ authorization: `Bearer ${value}` }));
        assertUnauthenticated(dialect, await post({ 'x-api-key': value }));
      });
    }

    test('B72 E4 an empty key, no scheme, another scheme', async () => {
      assertUnauthenticated(dialect, await post({ authorization: 'Bearer ' }));
      assertUnauthenticated(dialect, await post({ authorization: clientKey }));
      assertUnauthenticated(dialect, await post({ authorization: `Basic ${clientKey}` }));
      assertUnauthenticated(dialect, await post({ 'x-api-key': '' }));
    });

    test('E4 the text is the same for every bad key', async () => {
      const texts = await Promise.all(
        Object.values(badKeys).map(async (key) => {
          const reply = await post({ 'x-api-key': Buffer.from(key).toString('latin1') });
          return reply.text.replace(/req_\w+/, '');
        }),
      );
      assert.equal(new Set(texts).size, 1, texts.join('\n'));
    });

    test('clients 2.3 either header opens the door, and both with the same key', async () => {
      for (const headers of [
        { authorization: `Bearer ${clientKey}` },
        { authorization: `bearer ${clientKey}` },
        { 'x-api-key': clientKey },
        { authorization: `Bearer ${clientKey}`, 'x-api-key': clientKey },
        { authorization: `Bearer ${clientKey}`, 'x-api-key': '' },
      ]) {
        const { model } = rig.play('chat', replying('chat', { text: 'Hello' }));
        const reply = await send(
          `${rig.gateway.url}${endpointOf[dialect]}`,
          requestBody(dialect, { model, stream: false }),
          { anonymous: true, headers },
        );
        assert.equal(reply.status, 200, `${JSON.stringify(headers)}: ${reply.text}`);
      }
    });

    test('B16 both headers with different values', async () => {
      const headers = {
        authorization: `Bearer ${clientKey}`,
        'x-api-key': 'another-key-0123456789',
      };
      assertUnauthenticated(dialect, await post(headers));
    });

    test('B15 a header that may stand once stands twice', async () => {
      const cases = [
        { auth: [`Authorization: Bearer ${clientKey}`, 'Authorization: Bearer other'] },
        { auth: [`x-api-key: ${clientKey}`, `x-api-key: ${clientKey}`] },
        { lines: ['Content-Type: text/plain'] },
      ];
      for (const more of cases) {
        const text = await rawPost(rig.gateway.url, {
          dialect,
          body: legalBody(dialect),
          contentType: 'application/json',
          ...more,
        });
        assert.match(text, /^HTTP\/1\.1 400 /, text);
      }
    });

    test('E7 another method: 405 with allow', async () => {
      for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
        const reply = await send(`${rig.gateway.url}${endpointOf[dialect]}`, undefined, { method });
        assert.equal(reply.status, 405, reply.text);
        assert.match(String(reply.headers.allow), /POST/);
        assertErrorBody(dialect, reply.json);
      }
    });

    test('B25 exact routes only', async () => {
      const path = endpointOf[dialect];
      const tricks = [
        `${path}/`,
        path.replace('/v1/', '/v1//'),
        path.replace('/v1', '/V1'),
        `${path};x`,
        `${path}%00`,
        path.replace('/v1/', '/v1/%2e%2e/v1/'),
        path.replace('/v1/', '/v1/../v1/'),
        path
          .replace('messages', 'Messages')
          .replace('chat', 'Chat')
          .replace('responses', 'Responses'),
      ];
      for (const trick of tricks) {
        const text = await sendRaw(
          rig.gateway.url,
          `POST ${trick} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${clientKey}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
        );
        assert.match(text, /^HTTP\/1\.1 404 /, `${trick}: ${text}`);
      }
    });
  });
}

describe('routes', () => {
  test('E4 every data route wants a key', async () => {
    for (const [method, path] of [
      ['POST', '/v1/chat/completions'],
      ['POST', '/v1/messages'],
      ['POST', '/v1/messages/count_tokens'],
      ['POST', '/v1/responses'],
      ['POST', '/v1/responses/input_tokens'],
      ['GET', '/v1/responses/resp_1'],
      ['DELETE', '/v1/responses/resp_1'],
      ['GET', '/v1/responses/resp_1/input_items'],
      ['POST', '/v1/responses/resp_1/cancel'],
      ['GET', '/v1/models'],
      ['GET', '/v1/models/local/tiny'],
    ] as const) {
      const reply = await send(`${rig.gateway.url}${path}`, method === 'POST' ? '{}' : undefined, {
        method,
        anonymous: true,
      });
      assert.equal(reply.status, 401, `${path}: ${reply.text}`);
    }
  });

  test('A8 HEAD / and GET / answer a probe without a key', async () => {
    const probe = await send(`${rig.gateway.url}/`, undefined, { method: 'HEAD', anonymous: true });
    assert.equal(probe.status, 200);
    assert.equal(probe.text, '');
    const root = await send(`${rig.gateway.url}/`, undefined, { anonymous: true });
    assert.equal(root.status, 200);
    assert.notDeepEqual(root.json, {});
  });

  test('E7 HEAD of what is read: the head of GET, without a body', async () => {
    for (const [path, status] of [
      ['/v1/models', 200],
      ['/v1/models/local/tiny', 200],
      ['/v1/models/local/none', 404],
      ['/v1/responses/resp_1', 404],
      ['/v1/chat/completions', 405],
    ] as const) {
      const url = `${rig.gateway.url}${path}`;
      const read = await send(url, undefined);
      const head = await send(url, undefined, { method: 'HEAD' });
      assert.equal(head.status, status, path);
      assert.equal(head.status, read.status, path);
      assert.equal(head.text, '', path);
      assert.equal(head.headers['content-type'], read.headers['content-type'], path);
      assert.equal(head.headers['allow'], read.headers['allow'], path);
      if (status === 200) {
        assert.equal(head.headers['content-length'], read.headers['content-length'], path);
      }
    }
    const other = await send(`${rig.gateway.url}/v1/models`, '{}', { method: 'POST' });
    assert.equal(other.status, 405);
    assert.equal(other.headers['allow'], 'GET, HEAD');
  });

  test('liveness and readiness', async () => {
    for (const path of ['/healthz', '/readyz']) {
      const reply = await send(`${rig.gateway.url}${path}`, undefined, { anonymous: true });
      assert.equal(reply.status, 200, path);
    }
  });

  test('E7 an unknown path, in the dialect of the client', async () => {
    const chat = await send(`${rig.gateway.url}/v1/nothing`, '{}');
    assert.equal(chat.status, 404);
    assert.equal(assertErrorBody('chat', chat.json)['code'], 'unknown_url');
    const messages = await send(`${rig.gateway.url}/v1/nothing`, '{}', {
      headers: { 'anthropic-version': '2023-06-01' },
    });
    assert.equal(messages.status, 404);
    assert.equal(assertErrorBody('messages', messages.json)['type'], 'not_found_error');
  });

  test('E7 a wrong method is named like an unknown path, with what is allowed', async () => {
    const reply = await send(`${rig.gateway.url}/v1/chat/completions`, undefined);
    assert.equal(reply.status, 405);
    assert.equal(reply.headers['allow'], 'POST');
    assert.equal(assertErrorBody('chat', reply.json)['code'], 'unknown_url');
  });

  test('B14 B22 no host and CONNECT are answered with JSON', async () => {
    const noHost = await sendRaw(
      rig.gateway.url,
      'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n',
    );
    assert.match(noHost, /^HTTP\/1\.1 400 /);
    assert.match(noHost, /"error"/);
    const proxied = await sendRaw(rig.gateway.url, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.match(proxied, /^HTTP\/1\.1 405 /);
    assert.match(proxied, /"error"/);
  });

  test('A11 the model list: one body that both SDKs read', async () => {
    const reply = await send(`${rig.gateway.url}/v1/models?limit=1000`, undefined);
    assert.equal(reply.status, 200);
    assert.equal(reply.json['object'], 'list');
    assert.equal(reply.json['has_more'], false);
    assert.ok(Array.isArray(reply.json['data']));
  });

  test('S9 the two planes do not take each other’s keys', async () => {
    const url = `${rig.gateway.adminUrl}/api/calls`;
    const withClientKey = await send(url, undefined);
    assert.equal(withClientKey.status, 401);
    const anonymous = await send(url, undefined, { anonymous: true });
    assert.equal(anonymous.status, 401);
    const proper = await send(url, undefined, {
      anonymous: true,
      headers: { authorization: `Bearer ${adminToken}` },
    });
    assert.equal(proper.status, 200);
    const models = await send(`${rig.gateway.url}/v1/models`, undefined, {
      anonymous: true,
      headers: { authorization: `Bearer ${adminToken}` },
    });
    assert.equal(models.status, 401);
  });

  test('every answer carries the request id twice over', async () => {
    for (const path of ['/v1/nothing', '/v1/models', '/v1/chat/completions']) {
      const reply = await send(`${rig.gateway.url}${path}`, undefined);
      assert.match(String(reply.headers['x-request-id']), /\S/, path);
      assert.equal(reply.headers['request-id'], reply.headers['x-request-id']);
    }
  });

  test('B30 a body that is longer or shorter than it says reaches no upstream', async () => {
    const before = rig.upstreams.chat.all.length;
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${clientKey}\r\nContent-Type: application/json\r\n`;
    const body = legalBody('chat');
    const tooLong = await sendRaw(
      rig.gateway.url,
      `${head}Connection: close\r\nContent-Length: ${body.length - 5}\r\n\r\n${body}`,
    );
    assert.match(tooLong, /^HTTP\/1\.1 400 /);
    assert.equal(rig.upstreams.chat.all.length, before);
  });

  test('B1 what is no HTTP is answered with a JSON 400', async () => {
    const text = await sendRaw(rig.gateway.url, 'nonsense\r\n\r\n');
    assert.match(text, /^HTTP\/1\.1 400 /);
    assert.match(text, /"error"/);
  });

  test('B11 B12 B13 what Node lets pass is refused', async () => {
    const auth = `Authorization: Bearer ${clientKey}\r\nContent-Type: application/json\r\nConnection: close\r\n`;
    const requests = [
      `POST /v1/messages HTTP/1.1\r\nHost: x\r\n${auth}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
      `POST /v1/messages HTTP/1.1\r\nHost: x\r\nHost: y\r\n${auth}Content-Length: 2\r\n\r\n{}`,
      `POST http://evil/v1/messages HTTP/1.1\r\nHost: x\r\n${auth}Content-Length: 2\r\n\r\n{}`,
      `POST //v1/messages HTTP/1.1\r\nHost: x\r\n${auth}Content-Length: 2\r\n\r\n{}`,
    ];
    for (const request of requests) {
      const text = await sendRaw(rig.gateway.url, request);
      assert.match(text, /^HTTP\/1\.1 400 /, request.slice(0, 40));
    }
  });
});
