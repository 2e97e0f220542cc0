/** issue 8.3: spans of calls as a collector sees them, over a real socket, by the GenAI conventions. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { begun, legalFrames, stream as streamOf } from '../faults/stream-pieces.ts';
import { Collector, type SeenSpan } from '../support/otlp.ts';
import { allDialects, type AnyDialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { answerIn, errorIn } from '../upstream/reply.ts';
import type { Answer } from '../upstream/scripted.ts';
import { assertConventions } from './conventions.ts';

const collector = new Collector();
let rig: Rig;
before(async () => {
  const endpoint = await collector.listen();
  rig = await startRig(
    ({ chat, messages }) => ({
      traces: { endpoint, service: 'gw-test', attributes: { 'deployment.environment.name': 'ci' } },
      providers: {
        told: {
          dialect: 'openai-chat',
          base_url: `http://127.0.0.1:${chat.port}/v1`,
          api_key: 'any-key',
          trace_context: true,
        },
        'late-a': {
          dialect: 'openai-chat',
          base_url: `http://127.0.0.1:${chat.port}/v1`,
          api_key: 'any-key',
        },
        'late-b': {
          dialect: 'anthropic-messages',
          base_url: `http://127.0.0.1:${messages.port}`,
          api_key: 'any-key',
        },
        told2: {
          dialect: 'anthropic-messages',
          base_url: `http://127.0.0.1:${messages.port}`,
          api_key: 'any-key',
          trace_context: true,
        },
      },
      models: {
        pair: { targets: ['up-chat/pair-a', 'up-messages/pair-b'] },
        again: { targets: ['up-chat/again'] },
        late: { targets: ['late-a/late-a', 'late-b/late-b'], hedge: { after: '20ms' } },
        hedged: { targets: ['told/hedged-a', 'told2/hedged-b'], hedge: { after: '20ms' } },
      } satisfies JsonObject,
    }),
    { random: () => 0, env: { OTEL_BSP_SCHEDULE_DELAY: '10' } },
  );
});
after(async () => {
  await rig.stop();
  collector.close();
});

function idOf(reply: { readonly headers: { readonly [name: string]: unknown } }): string {
  return String(reply.headers['x-request-id']);
}

function eventNames(span: SeenSpan | undefined): readonly string[] {
  return span?.events.map(({ name }) => name) ?? [];
}

async function spansOf(
  dialect: AnyDialect,
  body: JsonObject,
  headers: { readonly [name: string]: string } = {},
): Promise<readonly SeenSpan[]> {
  const reply = await ask(rig, dialect, body, { headers });
  const spans = await collector.ofCall(idOf(reply));
  for (const span of spans) assertConventions(span);
  return spans;
}

const endpoints = {
  chat: 'openai-chat',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
} as const;
const ends = { chat: 'stop', messages: 'end_turn', responses: 'completed' } as const;
const whole = { text: 'Hello there.' } as const;

for (const dialect of allDialects) {
  for (const upstream of allDialects) {
    for (const stream of [true, false]) {
      const shape = stream ? 'stream' : 'document';
      test(`issue 8.3 a call and its attempt: ${dialect} on ${upstream}, ${shape}`, async () => {
        const { model } = rig.play(upstream, answerIn(upstream, whole, stream));
        const more = { temperature: 0.5, max_tokens: 77 };
        const [call, attempt, ...rest] = await spansOf(
          dialect,
          requestBody(dialect, { model, stream, more }),
        );
        assert.ok(call !== undefined && attempt !== undefined && rest.length === 0);
        assert.equal(call.name, `chat ${model}`);
        assert.equal(call.kind, 2);
        assert.equal(call.parentId, '');
        assert.equal(attempt.kind, 3);
        assert.equal(attempt.name, `chat ${model.split('/')[1]}`);
        assert.equal(attempt.traceId, call.traceId);
        assert.deepEqual(
          [call.attributes['gateway.mode'], call.attributes['gateway.endpoint']],
          [dialect === upstream ? 'relay' : 'translate', endpoints[dialect]],
        );
        for (const span of [call, attempt]) {
          const { attributes } = span;
          assert.equal(attributes['gen_ai.request.temperature'], 0.5);
          assert.equal(attributes['gen_ai.request.max_tokens'], 77);
          assert.equal(attributes['gen_ai.request.stream'], stream ? true : undefined);
          assert.equal(attributes['gen_ai.usage.input_tokens'], 100);
          assert.equal(attributes['gen_ai.usage.cache_read.input_tokens'], 60);
          assert.equal(attributes['gen_ai.usage.output_tokens'], 7);
          assert.deepEqual(attributes['gen_ai.response.finish_reasons'], [ends[upstream]]);
          assert.equal(attributes['http.response.status_code'], 200);
          assert.equal(span.status, 0);
          assert.deepEqual(eventNames(span), ['gateway.first_token']);
          assert.equal(
            typeof attributes['gen_ai.response.time_to_first_chunk'],
            stream ? 'number' : 'undefined',
          );
          assert.ok(span.start <= span.end);
        }
        assert.ok(call.start <= attempt.start && attempt.end <= call.end + 1);
        assert.equal(attempt.attributes['server.address'], '127.0.0.1');
        assert.equal(attempt.attributes['server.port'], rig.upstreams[upstream].port);
        assert.equal(call.resource['service.name'], 'gw-test');
        assert.equal(call.resource['deployment.environment.name'], 'ci');
        assert.equal(call.scope, 'model-gateway');
      });
    }
  }
}

test('issue 8.3 an answer that must be JSON is reported as such, wherever the request says it', async () => {
  const schema = { type: 'object', properties: {}, additionalProperties: false };
  const format = { type: 'json_schema', schema };
  for (const [dialect, more] of [
    ['messages', { output_config: { format } }],
    ['chat', { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } }],
    ['responses', { text: { format: { ...format, name: 'a' } } }],
  ] as const) {
    const { model } = rig.play(dialect, answerIn(dialect, { text: '{}' }, false));
    const spans = await spansOf(dialect, requestBody(dialect, { model, stream: false, more }));
    assert.deepEqual(
      spans.map(({ attributes }) => attributes['gen_ai.output.type']),
      ['json', 'json'],
      dialect,
    );
  }
});

test('issue 8.3 the path and the content type are those of OTLP over HTTP', () => {
  assert.ok(collector.paths.every((path) => path === '/v1/traces'));
  assert.ok(
    collector.headers.every((headers) => headers['content-type'] === 'application/x-protobuf'),
  );
});

for (const dialect of allDialects) {
  test(`issue 8.3 a fallback is an event and two attempts: ${dialect}`, async () => {
    rig.upstreams.chat.script('pair-a', errorIn('chat', 500, 'broken'));
    rig.upstreams.messages.script('pair-b', answerIn('messages', whole, false));
    const body = requestBody(dialect, { model: 'pair', stream: false });
    const [call, first, second] = await spansOf(dialect, body);
    assert.ok(call !== undefined && first !== undefined && second !== undefined);
    assert.deepEqual(eventNames(call), ['gateway.fallback', 'gateway.first_token']);
    assert.deepEqual(call.events[0]?.attributes, {
      'gateway.from': 'up-chat/pair-a',
      'gateway.to': 'up-messages/pair-b',
      'error.type': 'upstream_unavailable',
    });
    assert.deepEqual(
      [first.status, first.message, first.attributes['error.type']],
      [2, 'upstream_unavailable', 'upstream_unavailable'],
    );
    assert.equal(first.attributes['http.response.status_code'], 500);
    assert.equal(first.attributes['gen_ai.usage.output_tokens'], undefined);
    assert.equal(second.status, 0);
    assert.equal(call.status, 0);
    assert.equal(call.attributes['gateway.target'], 'up-messages/pair-b');
    assert.equal(call.attributes['gateway.attempts'], 2);
  });
}

test('issue 8.3 a retry of the same target, and a failure that stays one', async () => {
  rig.upstreams.chat.script('again', errorIn('chat', 503, 'away'));
  const body = requestBody('chat', { model: 'again', stream: true });
  const [call, ...attempts] = await spansOf('chat', body);
  assert.ok(call !== undefined && attempts.length > 1);
  assert.ok(eventNames(call).every((name) => name === 'gateway.retry'));
  assert.equal(call.events.length, attempts.length - 1);
  assert.equal(call.status, 2);
  assert.equal(call.attributes['error.type'], call.message);
  assert.ok(attempts.every(({ status }) => status === 2));
  assert.equal(call.attributes['gen_ai.usage.input_tokens'], undefined);
});

test("issue 8.3 what the client did wrong is told and is no failure of the server's", async () => {
  const body = requestBody('chat', { model: 'nobody/knows', stream: false });
  const [call, ...attempts] = await spansOf('chat', body);
  assert.equal(attempts.length, 0);
  assert.equal(call?.name, 'chat nobody/knows');
  assert.equal(call.attributes['http.response.status_code'], 404);
  assert.equal(call.attributes['error.type'], 'model_not_found');
  assert.equal(call.status, 0);
});

for (const dialect of allDialects) {
  test(`issue 8.3 a stream that breaks off is cut and failed: ${dialect}`, async () => {
    const { model } = rig.play(dialect, { ...streamOf(begun(dialect)), ending: 'reset' });
    const [call, attempt] = await spansOf(dialect, requestBody(dialect, { model, stream: true }));
    assert.deepEqual(eventNames(call), ['gateway.first_token', 'gateway.cut']);
    assert.deepEqual(call?.events[1]?.attributes, { 'gateway.cut.reason': 'stream_interrupted' });
    assert.deepEqual([call.status, attempt?.status], [2, 2]);
  });

  test(`issue 8.3 a client that leaves is no error: ${dialect}`, async () => {
    const { model } = rig.play(dialect, { ...streamOf(begun(dialect)), ending: 'hang' });
    const abort = new AbortController();
    await ask(rig, dialect, requestBody(dialect, { model, stream: true }), {
      signal: abort.signal,
      onData: () => abort.abort(),
    }).catch(() => undefined);
    const [row] = await rig.gateway.callRows(model, 1);
    const [call, attempt] = await collector.ofCall(String(row?.['id']));
    assert.ok(call !== undefined && attempt !== undefined);
    assertConventions(call);
    assert.deepEqual([call.status, attempt.status], [0, 0]);
    assert.equal(call.attributes['gateway.outcome'], 'canceled');
    assert.equal(call.attributes['error.type'], undefined);
    assert.equal(call.events.at(-1)?.attributes['gateway.cut.reason'], 'client_left');
  });
}

test('issue 8.3 a hedge: both requests are attempts of one trace, and each is told its own span', async () => {
  const slow: Answer = { body: '', mute: true, ending: 'hang' };
  const one = rig.upstreams.chat.script('hedged-a', slow);
  const two = rig.upstreams.messages.script('hedged-b', answerIn('messages', whole, true));
  const body = requestBody('chat', { model: 'hedged', stream: true });
  const [call, first, second] = await spansOf('chat', body);
  assert.ok(call !== undefined && first !== undefined && second !== undefined);
  assert.equal(call.events[0]?.name, 'gateway.hedge');
  assert.deepEqual(
    [first.attributes['gateway.outcome'], second.attributes['gateway.outcome']],
    ['canceled', 'ok'],
  );
  const sent = [await one.request(0), await two.request(0)];
  assert.deepEqual(
    sent.map((request) => request.header('traceparent')?.split('-').slice(1, 3)),
    [first, second].map(({ traceId, spanId }) => [traceId, spanId]),
  );
});

test('issue 8.3 a hedge that the first request wins: the call shows its answer, not the other one', async () => {
  const two = rig.upstreams.messages.script('late-b', { body: '', mute: true, ending: 'hang' });
  const { body: bytes, ...answer } = answerIn('chat', whole, true);
  assert.ok(typeof bytes === 'string');
  rig.upstreams.chat.script('late-a', { ...answer, body: [two.request(0), bytes] });
  const body = requestBody('chat', { model: 'late', stream: true });
  const [call, first, second] = await spansOf('chat', body);
  assert.deepEqual(
    [first?.attributes['gateway.outcome'], second?.attributes['gateway.outcome']],
    ['ok', 'canceled'],
  );
  assert.deepEqual(call?.attributes['gen_ai.response.finish_reasons'], ['stop']);
  assert.equal(call.attributes['gen_ai.response.id'], first?.attributes['gen_ai.response.id']);
  assert.equal(typeof call.attributes['gen_ai.response.id'], 'string');
});

test("W3C a client's trace continues here; its state is passed on to providers that get the trace", async () => {
  const script = rig.upstreams.chat.script('state', answerIn('chat', whole, false));
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const [call, attempt] = await spansOf(
    'chat',
    requestBody('chat', { model: 'told/state', stream: false }),
    { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, tracestate: 'vendor=a:1,other=b' },
  );
  assert.deepEqual([call?.traceId, call?.parentId], [traceId, '00f067aa0ba902b7']);
  assert.equal(call?.state, 'vendor=a:1,other=b');
  const request = await script.request(0);
  assert.equal(request.header('traceparent'), `00-${traceId}-${attempt?.spanId}-01`);
  assert.equal(request.header('tracestate'), 'vendor=a:1,other=b');
});

test('W3C providers that are not to know are told nothing', async () => {
  const { model, script } = rig.play('chat', answerIn('chat', whole, false));
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  await spansOf('chat', requestBody('chat', { model, stream: false }), { traceparent });
  const request = await script.request(0);
  assert.equal(request.header('traceparent'), undefined);
});

test('W3C a trace that is not sampled sends no spans', async () => {
  const { model } = rig.play('chat', answerIn('chat', whole, false));
  const traceId = 'c'.repeat(32);
  const quiet = await ask(rig, 'chat', requestBody('chat', { model, stream: false }), {
    headers: { traceparent: `00-${traceId}-${'d'.repeat(16)}-00` },
  });
  assert.equal(quiet.status, 200);
  const refused = await ask(
    rig,
    'chat',
    requestBody('chat', { model: 'nobody/knows', stream: false }),
    {
      headers: { traceparent: `00-${traceId}-${'d'.repeat(16)}-00` },
    },
  );
  assert.equal(refused.status, 404, 'nor does one that is refused');
  // One that is sampled behind it has come: the first one would have, too.
  await spansOf('chat', requestBody('chat', { model, stream: false }));
  assert.ok(collector.spans.every((span) => span.traceId !== traceId));
});

test('S13 no word of prompt or answer, no key and no credential is in a span', async () => {
  const { model } = rig.play('chat', streamOf(...legalFrames('chat')));
  const secretPrompt = 'the-prompt-that-nobody-may-see';
  const messages = [{ role: 'user', content: secretPrompt }];
  await spansOf('chat', requestBody('chat', { model, stream: true, more: { messages } }));
  const all = JSON.stringify(collector.spans);
  for (const secret of [secretPrompt, 'upstream-chat-key', 'any-key', 'and good day']) {
    assert.ok(!all.includes(secret), secret);
  }
});
