/** The error table (reliability.md §0, translation.md §10) through all endpoints and all SDKs: H1–H6. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sendRaw, type Reply } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { assertErrorBody } from '../support/legality.ts';
import { type ClientDialect, clientDialects } from '../support/dialects.ts';
import { sampledTests } from '../support/depth.ts';
import { numberAt, objectAt, textAt } from '../support/reading.ts';
import { ask, impatientConfig, startRig, type Rig } from '../support/rig.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { allSdks } from '../support/sdks.ts';
import { errorIn, replying } from '../upstream/reply.ts';
import type { Answer } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig(impatientConfig, { random: () => 0 });
});
after(() => rig.stop());

interface Look {
  readonly status: number;
  readonly type: string;
  /** Not of messages. */
  readonly code?: string | null;
  /** The class that the SDKs raise. */
  readonly raised: string;
}

interface ErrorCase {
  readonly name: string;
  readonly looks: { readonly [D in ClientDialect]: Look };
  /** Whether another try can help; the SDKs must be told where the status alone misleads. */
  readonly hopeless: boolean;
}

interface UpstreamCase extends ErrorCase {
  readonly status: number;
}

/** The two dialects of OpenAI tell a failure alike. */
function looksOf(openai: Look, messages: Look): ErrorCase['looks'] {
  return { chat: openai, messages, responses: openai };
}

function upstreamCase(
  status: number,
  chat: Omit<Look, 'raised'>,
  messages: Omit<Look, 'raised'>,
  [raised, hopeless]: readonly [string, boolean],
): UpstreamCase {
  const looks = looksOf({ ...chat, raised }, { ...messages, raised });
  return { name: `upstream ${status}`, status, looks, hopeless };
}

const auth = { status: 400, type: 'invalid_request_error', code: 'upstream_auth' };
const refusedAuth = { status: 400, type: 'billing_error' };
const down = { status: 502, type: 'server_error', code: 'upstream_unavailable' };
const failed = { status: 502, type: 'api_error' };
const full = { status: 503, type: 'service_unavailable_error', code: 'server_is_overloaded' };
const overloaded = { status: 529, type: 'overloaded_error' };
const late = { status: 504, type: 'server_error', code: 'upstream_timeout' };

const upstreamCases: readonly UpstreamCase[] = [
  upstreamCase(
    400,
    { status: 400, type: 'invalid_request_error', code: null },
    { status: 400, type: 'invalid_request_error' },
    ['BadRequestError', true],
  ),
  upstreamCase(401, auth, refusedAuth, ['BadRequestError', true]),
  upstreamCase(403, auth, refusedAuth, ['BadRequestError', true]),
  upstreamCase(
    404,
    { status: 404, type: 'invalid_request_error', code: 'model_not_found' },
    { status: 404, type: 'not_found_error' },
    ['NotFoundError', true],
  ),
  upstreamCase(
    413,
    { status: 413, type: 'invalid_request_error', code: 'request_too_large' },
    { status: 413, type: 'request_too_large' },
    ['APIError', true],
  ),
  upstreamCase(
    422,
    { status: 422, type: 'invalid_request_error', code: null },
    { status: 422, type: 'invalid_request_error' },
    ['UnprocessableEntityError', true],
  ),
  upstreamCase(
    429,
    { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
    { status: 429, type: 'rate_limit_error' },
    ['RateLimitError', false],
  ),
  upstreamCase(500, down, failed, ['InternalServerError', false]),
  upstreamCase(503, full, overloaded, ['InternalServerError', false]),
  upstreamCase(529, full, overloaded, ['InternalServerError', false]),
];

function assertLook(dialect: ClientDialect, { looks, hopeless }: ErrorCase, reply: Reply): void {
  const { status, type, code } = looks[dialect];
  assert.equal(reply.status, status, reply.text);
  assert.match(String(reply.headers['content-type']), /^application\/json/);
  const error = assertErrorBody(dialect, reply.json);
  assert.equal(error['type'], type, reply.text);
  if (dialect !== 'messages') assert.equal(error['code'], code ?? null, reply.text);
  else assert.equal(reply.json['request_id'], reply.headers['request-id']);
  assert.equal(reply.headers['x-request-id'], reply.headers['request-id']);
  if (hopeless) assert.equal(reply.headers['x-should-retry'], 'false', 'H4');
  else assert.equal(reply.headers['x-should-retry'], undefined, 'H4: retryable');
}

/** The SDK throws at once, and what its callers expect. */
async function assertRaised(
  dialect: ClientDialect,
  error: ErrorCase,
  model: string,
): Promise<void> {
  const { raised, status } = error.looks[dialect];
  for (const sdk of allSdks.filter((each) => each.dialect === dialect)) {
    const client = sdk.connect({ url: rig.gateway.url });
    for (const way of ['plain', 'final'] as const) {
      const thrown = await client[way]({ model, text: 'Hi' }).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      assert.ok(thrown instanceof Error, `${sdk.name} ${way} succeeded`);
      assert.ok(
        classNames(thrown).includes(raised),
        `${sdk.name}: ${classNames(thrown).join(' < ')}`,
      );
      assert.equal(Reflect.get(thrown, 'status'), status, sdk.name);
    }
  }
}

function classNames(error: Error): readonly string[] {
  const names: string[] = [];
  for (let at: object | null = Object.getPrototypeOf(error); at !== null;) {
    names.push(String(Reflect.get(Reflect.get(at, 'constructor'), 'name')));
    at = Object.getPrototypeOf(at);
  }
  return names;
}

/** `npm test` plays one in four of these. */
const cellTest = sampledTests(4);

for (const dialect of clientDialects) {
  for (const upstream of clientDialects) {
    describe(`${dialect} client, ${upstream} upstream`, () => {
      for (const row of upstreamCases) {
        cellTest()(`H1 H3 H4 upstream ${row.status}`, async () => {
          const { model } = rig.play(upstream, errorIn(upstream, row.status, 'no such luck'));
          for (const stream of [true, false]) {
            const reply = await ask(rig, dialect, requestBody(dialect, { model, stream }));
            assertLook(dialect, row, reply);
          }
          await assertRaised(dialect, row, model);
        });
      }

      cellTest()('H1 E13 an upstream that does not answer in time', async () => {
        const { model } = rig.playImpatient(upstream, { body: '', mute: true, ending: 'hang' });
        const row: ErrorCase = {
          name: 'timeout',
          looks: looksOf(
            { ...late, raised: 'InternalServerError' },
            { status: 504, type: 'timeout_error', raised: 'InternalServerError' },
          ),
          hopeless: false,
        };
        assertLook(
          dialect,
          row,
          await ask(rig, dialect, requestBody(dialect, { model, stream: true })),
        );
        await assertRaised(dialect, row, model);
      });

      test('H2 retry-after: 17 comes through', async () => {
        const { model } = rig.play(
          upstream,
          errorIn(upstream, 429, 'slow down', { 'retry-after': '17' }),
        );
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
        assert.equal(reply.status, 429);
        assert.equal(reply.headers['retry-after'], '17');
        assert.equal(reply.headers['retry-after-ms'], '17000');
      });

      test('H2 a limit without a word of waiting gets one', async () => {
        const { model } = rig.play(upstream, errorIn(upstream, 429, 'slow down'));
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
        const seconds = Number(reply.headers['retry-after']);
        assert.ok(seconds >= 1 && seconds <= 60, String(reply.headers['retry-after']));
      });

      test('A12 H4 what the upstream refuses costs nothing', async () => {
        const { model } = rig.play(upstream, errorIn(upstream, 400, 'no'));
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
        const row = await rig.gateway.callRow(String(reply.headers['x-request-id']));
        const charged = objectAt(row, 'charged');
        assert.equal(row['outcome'], 'failed');
        assert.equal(
          numberAt(charged, 'fresh_input_tokens') + numberAt(charged, 'output_tokens'),
          0,
        );
      });

      // Once for each client and each upstream is enough: such bodies take long.
      test('H6 a body of 31 MB reaches the upstream', { skip: dialect !== upstream }, async () => {
        const { model, script } = rig.play(upstream, replying(upstream, { text: 'seen' }));
        const content = 'x'.repeat(31_000_000);
        const body = requestBody(dialect, {
          model,
          stream: false,
          more: { messages: [{ role: 'user', content }] },
        });
        const reply = await ask(rig, dialect, body);
        assert.equal(reply.status, 200, reply.text.slice(0, 300));
        assert.ok((script.requests[0]?.body.length ?? 0) > 31_000_000);
      });
    });
  }

  describe(`${dialect} client, refused by the gateway`, () => {
    const cases: readonly (ErrorCase & { readonly body: string; readonly key?: string })[] = [
      {
        name: '400',
        body: '{"model":"up-chat/x","messages":7,"max_tokens":5}',
        hopeless: true,
        looks: looksOf(
          { status: 400, type: 'invalid_request_error', code: null, raised: '' },
          { status: 400, type: 'invalid_request_error', raised: '' },
        ),
      },
      {
        name: '404',
        body: JSON.stringify(requestBody(dialect, { model: 'nobody/knows', stream: true })),
        hopeless: true,
        looks: looksOf(
          { status: 404, type: 'invalid_request_error', code: 'model_not_found', raised: '' },
          { status: 404, type: 'not_found_error', raised: '' },
        ),
      },
      {
        name: '401',
        key: 'mg-wrong',
        body: JSON.stringify(requestBody(dialect, { model: 'up-chat/x', stream: true })),
        hopeless: false,
        looks: looksOf(
          { status: 401, type: 'invalid_request_error', code: 'invalid_api_key', raised: '' },
          { status: 401, type: 'authentication_error', raised: '' },
        ),
      },
    ];
    for (const row of cases) {
      test(`H1 gateway ${row.name}`, async () => {
        const headers =
          row.key === undefined ? {} : { headers: { authorization: `Bearer ${row.key}` } };
        const reply = await ask(rig, dialect, row.body, headers);
        const { code, ...looks } = row.looks[dialect];
        const expected =
          dialect === 'messages'
            ? looks
            : {
                ...looks,
                code:
                  reply.status === 400
                    ? textAt(objectAt(reply.json, 'error'), 'code') || null
                    : (code ?? null),
              };
        assertLook(dialect, { ...row, looks: { ...row.looks, [dialect]: expected } }, reply);
      });
    }

    test('H5 an unknown model: its name, and nothing of the gateway', async () => {
      const body = requestBody(dialect, { model: 'nobody/knows', stream: false });
      const reply = await ask(rig, dialect, body);
      const message = textAt(objectAt(reply.json, 'error'), 'message');
      assert.match(message, /nobody\/knows/);
      assert.doesNotMatch(
        reply.text,
        /\bat .*:\d+:\d+|node_modules|\/src\/|\.ts\b|9223372036854775807|undefined|NaN/,
      );
    });

    test('H6 E2 more than the cap is refused before it is all there', async () => {
      // The length alone decides: not a byte of the body is sent.
      const head = [
        `POST ${endpointOf[dialect]} HTTP/1.1`,
        'Host: gateway',
        `Authorization: Bearer ${clientKey}`,
        'Content-Type: application/json',
        `Content-Length: ${40 * 1024 * 1024}`,
      ];
      const answer = await sendRaw(rig.gateway.url, `${head.join('\r\n')}\r\n\r\n`);
      assert.match(answer, /^HTTP\/1\.1 413 /);
      assert.match(answer, /connection: close/i);
      assert.match(
        answer,
        dialect === 'messages' ? /"type":"request_too_large"/ : /"code":"request_too_large"/,
      );
    });
  });
}

/** Overload in all the words that upstreams have for it (translation.md §10.1). */
const overloads: { readonly [name: string]: readonly [upstream: ClientDialect, answer: Answer] } = {
  'chat, a code in a 500': [
    'chat',
    {
      status: 500,
      body: '{"error":{"message":"x","type":"server_error","code":"server_overloaded"}}',
    },
  ],
  'chat, engine_overloaded': [
    'chat',
    { status: 503, body: '{"error":{"message":"x","code":"engine_overloaded"}}' },
  ],
  'chat, UNAVAILABLE': [
    'chat',
    {
      status: 503,
      body: '{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}',
    },
  ],
  'messages, in a 200 stream': [
    'messages',
    {
      body: 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
      framing: 'chunked',
    },
  ],
};

for (const dialect of clientDialects) {
  for (const [name, [upstream, answer]] of Object.entries(overloads)) {
    test(`H3 overload, ${name}: ${dialect} client`, async () => {
      const { model } = rig.play(upstream, answer);
      const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
      assert.equal(reply.status, dialect === 'messages' ? 529 : 503, reply.text);
      const error = assertErrorBody(dialect, reply.json);
      assert.equal(
        error['type'],
        dialect === 'messages' ? 'overloaded_error' : 'service_unavailable_error',
      );
      assert.ok(Number(reply.headers['retry-after']) >= 1, 'H2');
    });
  }
}
