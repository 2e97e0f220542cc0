/** S14 S17: an upstream that puts what it got into every field of its errors and into its own headers. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { sampledTests } from '../support/depth.ts';
import { clientKey } from '../support/keys.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import type { Reply } from '../support/http.ts';
import { converseFrame } from '../upstream/converse.ts';
import { replying } from '../upstream/reply.ts';
import type { Received, Scripted } from '../upstream/scripted.ts';

/** As the rig configures them: no pattern of any vendor fits. */
const keys: { readonly [D in UpstreamDialect]: string } = {
  chat: 'upstream-chat-key',
  messages: 'upstream-messages-key',
  responses: 'upstream-responses-key',
  gemini: 'upstream-gemini-key',
  converse: 'upstream-converse-key',
};

let rig: Rig;
before(async () => {
  rig = await startRig({}, { random: () => 0 });
});
after(() => rig.stop());

/** Every place in which an error of any dialect has words, with all of the request in each. */
function echoing(said: string): JsonObject {
  const error = {
    message: said,
    type: said,
    code: said,
    param: said,
    detail: said,
    status: said,
    metadata: { raw: said, provider_name: said },
    innererror: { message: said },
  };
  return {
    type: 'error',
    error,
    request_id: said,
    message: said,
    detail: [{ loc: [said], msg: said }],
  };
}

function quote({ headerLines }: Received): string {
  return headerLines.map(([name, value]) => `${name}: ${value}`).join('; ');
}

const echoedHeaders = (request: Received): { readonly [name: string]: string } => ({
  'set-cookie': quote(request),
  server: quote(request),
  location: 'http://127.0.0.1/elsewhere',
  'access-control-allow-origin': '*',
  'x-request-id': quote(request),
  'request-id': quote(request),
  'www-authenticate': quote(request),
  'x-ratelimit-remaining-requests': '1',
  'anthropic-organization-id': 'organization-of-ours',
  'openai-organization': 'organization-of-ours',
  via: quote(request),
  'content-language': quote(request),
});

const statuses = [400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529];

type Words = (request: Received) => string;

/** The credential and nothing else: it looks like any other name of a field or code. */
const bare: Words = (request) =>
  request.header('x-api-key') ??
  request.header('x-goog-api-key') ??
  request.header('authorization')?.slice('Bearer '.length) ??
  '';

function failing(status: number, words: Words): Scripted {
  return (request) => ({
    status,
    headers: echoedHeaders(request),
    body: JSON.stringify(echoing(words(request))),
  });
}

/** Headers of an answer that the gateway may send; all others came from somewhere else. */
const ownHeaders: ReadonlySet<string> = new Set([
  'x-request-id',
  'request-id',
  'x-gateway-target',
  'x-gateway-mode',
  'x-gateway-attempts',
  'x-gateway-usage',
  'x-gateway-notes',
  'x-should-retry',
  'retry-after',
  'retry-after-ms',
  'content-type',
  'content-length',
  'cache-control',
  'x-accel-buffering',
  'transfer-encoding',
  'date',
  'connection',
  'keep-alive',
]);

function assertClean({ headers, text }: Reply, upstream: UpstreamDialect): void {
  const all = `${JSON.stringify(headers)}${text}`;
  assert.ok(!all.includes(keys[upstream]), all);
  assert.ok(!all.includes(clientKey), all);
  for (const name of Object.keys(headers)) assert.ok(ownHeaders.has(name), `header ${name}`);
  assert.match(String(headers['x-request-id']), /^[\w-]{8,64}$/);
  assert.equal(headers['request-id'], headers['x-request-id']);
}

/** `npm test` plays one in four of these. */
const cellTest = sampledTests(4);

for (const upstream of upstreamDialects) {
  for (const dialect of clientDialects) {
    for (const stream of [false, true]) {
      const way = `${dialect} on ${upstream}, ${stream ? 'stream' : 'document'}`;
      cellTest()(`S14 S17 errors of every status, ${way}`, async () => {
        for (const [status, words] of statuses.flatMap(
          (each) =>
            [
              [each, quote],
              [each, bare],
            ] as const,
        )) {
          const { model } = rig.play(upstream, failing(status, words));
          const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }));
          assert.ok(reply.status >= 400, String(status));
          assert.notEqual(reply.status, 401, 'it would say that the client has a bad key (E15)');
          assertClean(reply, upstream);
        }
      });

      cellTest()(`S14 an error object in an answer with status 200, ${way}`, async () => {
        const { model } = rig.play(upstream, (request) => {
          const value = JSON.stringify(echoing(quote(request)));
          const headers = echoedHeaders(request);
          if (!stream) return { headers, body: value };
          if (upstream === 'converse') {
            return {
              headers,
              body: [converseFrame({ __type: bare(request), ...echoing(quote(request)) })],
            };
          }
          const event = ['chat', 'gemini'].includes(upstream) ? '' : 'event: error\n';
          return {
            headers: { ...headers, 'content-type': 'text/event-stream' },
            body: [`${event}data: ${value}\n\n`],
          };
        });
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }));
        assertClean(reply, upstream);
      });

      cellTest()(`S17 a good answer brings none of the upstream's headers, ${way}`, async () => {
        const good = replying(upstream, { text: 'Hello' });
        const { model, script } = rig.play(upstream, (request) => {
          const answer = typeof good === 'function' ? good(request) : good;
          const { location, ...headers } = echoedHeaders(request);
          assert.ok(location);
          return { ...answer, headers: { ...headers, ...answer.headers } };
        });
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }), {
          headers: clientHeaders,
        });
        assert.equal(reply.status, 200, reply.text);
        assertClean(reply, upstream);
        assertBuilt(await script.request(0), { upstream, relayed: upstream === dialect });
      });
    }
  }
}

/** What a client or a proxy before the gateway may send along. */
const clientHeaders = {
  cookie: 'session=client-secret',
  'proxy-authorization': 'Basic client-secret',
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-host': 'inside.example',
  'x-forwarded-proto': 'https',
  forwarded: 'for=203.0.113.7',
  'x-real-ip': '203.0.113.7',
  via: '1.1 somebody',
  origin: 'https://evil.example',
  referer: 'https://evil.example/page',
  'user-agent': 'SomeClient/1.0',
  'accept-language': 'de',
  'x-stainless-lang': 'js',
  'openai-organization': 'org-of-the-client',
  'openai-project': 'project-of-the-client',
  'x-api-key': clientKey,
  'api-key': 'client-secret',
  'x-goog-api-key': 'client-secret',
  'anthropic-version': '2023-06-01',
  'anthropic-beta': 'some-beta-2026-01-01',
  'anthropic-dangerous-direct-browser-access': 'true',
  'x-request-id': 'chosen-by-the-client',
  'x-gateway-tags': 'client-tag',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
} as const;

interface Way {
  readonly upstream: UpstreamDialect;
  readonly relayed: boolean;
}

/** The whole list of what goes up: nothing is taken over, all of it is written. */
function assertBuilt(request: Received, { upstream, relayed }: Way): void {
  const sent = new Map(request.headerLines.map(([name, value]) => [name.toLowerCase(), value]));
  assert.equal(sent.size, request.headerLines.length, 'no header stands twice');
  const expected = new Map<string, string | RegExp>([
    ['host', /^127\.0\.0\.1:\d+$/],
    ['connection', 'keep-alive'],
    ['content-type', 'application/json'],
    ['accept-encoding', 'identity'],
    ['content-length', String(request.body.length)],
    ...(['chat', 'responses', 'converse'].includes(upstream)
      ? ([['authorization', `Bearer ${keys[upstream]}`]] as const)
      : []),
    ...(upstream === 'gemini' ? ([['x-goog-api-key', keys.gemini]] as const) : []),
    ...(upstream === 'messages'
      ? ([
          ['x-api-key', keys.messages],
          ['anthropic-version', '2023-06-01'],
          // The one list of the dialect itself; a client of another dialect cannot speak it.
          ...(relayed ? ([['anthropic-beta', 'some-beta-2026-01-01']] as const) : []),
        ] as const)
      : []),
  ]);
  assert.deepEqual([...sent.keys()].sort(), [...expected.keys()].sort());
  for (const [name, value] of expected) {
    if (typeof value === 'string') assert.equal(sent.get(name), value, name);
    else assert.match(sent.get(name) ?? '', value, name);
  }
}
