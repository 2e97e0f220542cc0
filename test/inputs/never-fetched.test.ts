/**
 * B61–B63, S16 a: the gateway connects to nothing that a client names. A server really listens, and a name leads to it
 * that nothing is wrong with; who fetched the address, or only looked the name up, would be seen.
 */
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { syncBuiltinESMExports } from 'node:module';
import { after, afterEach, before, describe, test, mock } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import {
  pairs,
  upstreamDialects,
  type ClientDialect,
  type UpstreamDialect,
} from '../support/dialects.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { send } from '../support/http.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { messagesWith, tool } from './bad-row.ts';

const name = 'pictures.example.net';
let rig: Rig;
let trap: Server;
let connections = 0;
const lookedUp: string[] = [];

const realLookup = dns.lookup;

/** Leads the name to this machine, and notes who asks; all else is looked up as ever. */
const leadingLookup: typeof realLookup = Object.assign(
  (...args: Parameters<typeof realLookup>): void => {
    const [hostname, ...rest] = args;
    if (hostname === name) lookedUp.push(hostname);
    realLookup(hostname === name ? '127.0.0.1' : hostname, ...rest);
  },
  realLookup,
);

before(async () => {
  trap = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
  });
  await once(trap.listen(0, '127.0.0.1'), 'listening');
  // Before the gateway makes its client: that one takes the look-up of the system.
  mock.method(dns, 'lookup', leadingLookup);
  syncBuiltinESMExports();
  rig = await startRig();
});
after(async () => {
  await rig.stop();
  mock.restoreAll();
  syncBuiltinESMExports();
  trap.close();
  await once(trap, 'close');
});
afterEach(() => {
  connections = 0;
  lookedUp.length = 0;
});

function trapUrl(host: string, file: string): string {
  const { port } = trap.address() as AddressInfo;
  return `http://${host}:${port}/${file}`;
}

/** What a client may say with an address in it. */
interface Place {
  readonly what: string;
  /** These dialects have no such thing: refused there (docs/user/translation.md). */
  readonly refusedBy?: readonly UpstreamDialect[];
  /** Left out there, with a note. */
  readonly lostAt?: readonly UpstreamDialect[];
  body(url: string): JsonObject;
}

const image = (url: string): JsonObject => ({ type: 'image', source: { type: 'url', url } });
const document = (url: string): JsonObject => ({ type: 'document', source: { type: 'url', url } });

const places: { readonly [D in ClientDialect]: readonly Place[] } = {
  chat: [
    {
      what: 'an image',
      refusedBy: ['converse'],
      body: (url) =>
        messagesWith({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }),
    },
  ],
  messages: [
    {
      what: 'an image',
      refusedBy: ['converse'],
      body: (url) => messagesWith({ role: 'user', content: [image(url)] }),
    },
    {
      what: 'a document',
      refusedBy: ['chat', 'converse'],
      body: (url) => messagesWith({ role: 'user', content: [document(url)] }),
    },
    {
      what: 'an image in the result of a tool',
      lostAt: ['converse'],
      body: (url) => ({
        tools: [tool('messages', 'f', { type: 'object', properties: {} })],
        ...messagesWith(
          { role: 'user', content: 'x' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 'a', content: [image(url)] }],
          },
        ),
      }),
    },
  ],
  responses: [
    {
      what: 'an image',
      refusedBy: ['converse'],
      body: (url) =>
        messagesWith({ role: 'user', content: [{ type: 'input_image', image_url: url }] }),
    },
    {
      what: 'a file',
      refusedBy: ['chat', 'converse'],
      body: (url) =>
        messagesWith({ role: 'user', content: [{ type: 'input_file', file_url: url }] }),
    },
    {
      what: 'an image in the result of a tool',
      lostAt: ['converse'],
      body: (url) => ({
        tools: [tool('responses', 'f', { type: 'object', properties: {} })],
        ...messagesWith(
          { role: 'user', content: 'x' },
          { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
          {
            type: 'function_call_output',
            call_id: 'a',
            output: [{ type: 'input_image', image_url: url }],
          },
        ),
      }),
    },
  ],
};

function assertUntouched(): void {
  assert.equal(connections, 0, 'nothing connected to it');
  assert.ok(!lookedUp.includes(name), 'nobody looked the name up');
}

test('B61 B62 the trap works: who fetches the address is seen', async () => {
  const reply = await send(trapUrl(name, 'a.png'), undefined);
  assert.equal(reply.status, 404);
  assert.equal(connections, 1);
  assert.deepEqual(lookedUp, [name]);
});

test('B61 B62 the trap works: the gateway is seen where the config leads it there', async (t) => {
  const there = { dialect: 'openai-chat', base_url: trapUrl(name, 'v1'), api_key: 'a-key' };
  const led = await startRig({ providers: { there } });
  t.after(() => led.stop());
  await ask(led, 'chat', requestBody('chat', { model: 'there/m', stream: false }));
  assert.ok(connections > 0);
  assert.ok(lookedUp.includes(name));
});

for (const { client: dialect, upstream } of pairs) {
  describe(`${dialect} on ${upstream}`, () => {
    for (const { what, refusedBy = [], lostAt = [], body } of places[dialect]) {
      test(`B62 B63 ${what}: the address is passed on as text, or is refused or noted, and is not fetched`, async () => {
        const url = trapUrl(name, 'a.png');
        const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
        const more = body(url);
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false, more }));
        const isRefused = refusedBy.includes(upstream);
        assert.equal(reply.status, isRefused ? 400 : 200, reply.text);
        assert.equal(script.requests.length, isRefused ? 0 : 1);
        const isLost = lostAt.includes(upstream);
        const sent = script.requests[0]?.body.includes(url) ?? false;
        assert.equal(sent, !isRefused && !isLost, 'it goes on as it is');
        const noted = /: (dropped|changed)/.test(String(reply.headers['x-gateway-notes'] ?? ''));
        if (isLost) assert.ok(noted, 'the client is told');
        assertUntouched();
      });

      test(`B61 ${what}: an address of this machine is refused without a look at it`, async () => {
        const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
        const more = body(trapUrl('127.0.0.1', 'a.png'));
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false, more }));
        assert.equal(reply.status, 400, reply.text);
        assert.equal(script.requests.length, 0);
        assertUntouched();
      });
    }

    test('B62 a provider that sends elsewhere is not followed', async () => {
      const location = trapUrl(name, 'v1');
      const { model } = rig.play(upstream, { status: 307, headers: { location }, body: '{}' });
      const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
      assert.ok(reply.status >= 500, reply.text);
      assertUntouched();
    });
  });
}

for (const upstream of upstreamDialects) {
  for (const { what, body } of places.messages) {
    test(`B62 B63 counting ${what} for a model of ${upstream} fetches nothing`, async () => {
      const { model } = rig.play(upstream, {
        body: JSON.stringify({ input_tokens: 7 }),
      });
      const more = body(trapUrl(name, 'a.png'));
      const { max_tokens: _, ...asked } = requestBody('messages', { model, stream: false, more });
      const reply = await send(`${rig.gateway.url}/v1/messages/count_tokens`, asked);
      assert.ok(reply.status === 200 || reply.status === 400, reply.text);
      assertUntouched();
    });
  }
}
