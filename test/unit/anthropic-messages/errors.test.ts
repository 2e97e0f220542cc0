import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import { GatewayError, invalidRequest, type ErrorCode } from '../../../src/core/errors.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { errorTable } from '../../../src/dialects/anthropic-messages/errors.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { eventsOf } from './legal-stream.ts';

const { writeError, writeStreamError, keepAlive } = anthropicMessagesClient;
const { readError } = anthropicMessagesUpstream;

function messageOf(error: GatewayError): string {
  const written = writeError(error, 'req_1').body['error'];
  return isObject(written) ? String(written['message']) : '';
}

describe('writing', () => {
  const rows: readonly (readonly [ErrorCode, number, string])[] = [
    ['invalid_request', 400, 'invalid_request_error'],
    ['too_large', 413, 'request_too_large'],
    ['unsupported_media_type', 415, 'invalid_request_error'],
    ['unauthenticated', 401, 'authentication_error'],
    ['forbidden', 403, 'permission_error'],
    ['model_not_found', 404, 'not_found_error'],
    ['route_not_found', 404, 'not_found_error'],
    ['method_not_allowed', 405, 'not_found_error'],
    ['rate_limited', 429, 'rate_limit_error'],
    ['budget_exhausted', 402, 'billing_error'],
    ['overloaded', 529, 'overloaded_error'],
    ['upstream_unavailable', 502, 'api_error'],
    ['upstream_invalid', 502, 'api_error'],
    ['timeout', 504, 'timeout_error'],
    ['context_overflow', 400, 'invalid_request_error'],
    ['upstream_auth', 400, 'billing_error'],
    ['internal', 500, 'api_error'],
    ['store_unavailable', 529, 'overloaded_error'],
    ['shutting_down', 529, 'overloaded_error'],
  ];
  for (const [code, status, type] of rows) {
    test(`H1 ${code} → ${status} ${type}`, () => {
      const written = writeError(new GatewayError(code, 'what happened'), 'req_9');
      assert.equal(written.status, status);
      assert.deepEqual(Object.keys(written.body), ['type', 'error', 'request_id']);
      assert.equal(written.body['type'], 'error');
      assert.equal(written.body['request_id'], 'req_9');
      const error = written.body['error'];
      assert.ok(isObject(error));
      assert.equal(error['type'], type);
      assert.ok(String(error['message']).includes('what happened'));
      assert.equal(errorTable[code].status, status);
    });
  }

  test('the path stands at the start of the message', () => {
    const error = invalidRequest('Field required', ['messages', 3, 'content', 0]);
    assert.equal(messageOf(error), 'messages.3.content.0: Field required');
  });

  test('E14 what the upstream refused keeps its status and gets the type of it', () => {
    const shown = (status: number): unknown => {
      const error = new GatewayError('upstream_rejected', 'x', { status });
      const written = writeError(error, 'r');
      return [written.status, isObject(written.body['error']) && written.body['error']['type']];
    };
    assert.deepEqual(shown(400), [400, 'invalid_request_error']);
    assert.deepEqual(shown(404), [404, 'not_found_error']);
    assert.deepEqual(shown(413), [413, 'request_too_large']);
    assert.deepEqual(shown(422), [422, 'invalid_request_error']);
  });

  const overflows: readonly (readonly [told: string, shown: string])[] = [
    [
      'prompt is too long: 250000 tokens > 200000 maximum',
      'prompt is too long: 250000 tokens > 200000 maximum',
    ],
    [
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
      'prompt is too long: 9000 tokens > 8192 maximum',
    ],
    [
      "This model's maximum context length is 128000 tokens. However, you requested 130,500 tokens (130000 in the messages, 500 in the completion).",
      'prompt is too long: 130500 tokens > 128000 maximum',
    ],
    [
      'the request exceeds the available context size (4096 tokens)',
      'prompt is too long: the request exceeds the available context size (4096 tokens)',
    ],
    ['Too big.', 'prompt is too long: Too big.'],
  ];
  for (const [told, shown] of overflows) {
    test(`F11 clients 2.10 ${told.slice(0, 50)}`, () => {
      assert.equal(messageOf(new GatewayError('context_overflow', told)), shown);
    });
  }

  test('EM one error event, with the id of the request', () => {
    const text = writeStreamError(new GatewayError('overloaded', 'Overloaded'), 'req_1');
    assert.deepEqual(eventsOf(text), [
      {
        name: 'error',
        data: {
          type: 'error',
          error: {
            type: 'overloaded_error',
            message:
              'Connection lost: provider returned error (premature close of the stream). Overloaded',
          },
          request_id: 'req_1',
        },
      },
    ]);
  });

  test('E2 silence: a comment before the start, a ping after it', () => {
    assert.equal(keepAlive(false), ': keep-alive\n\n');
    assert.deepEqual(eventsOf(keepAlive(true)), [{ name: 'ping', data: { type: 'ping' } }]);
  });
});

describe('reading', () => {
  const body = (type: string, message: string): string =>
    JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_up' });

  const rows: readonly (readonly [status: number, type: string, code: ErrorCode])[] = [
    [400, 'invalid_request_error', 'upstream_rejected'],
    [401, 'authentication_error', 'upstream_auth'],
    [402, 'billing_error', 'upstream_auth'],
    [403, 'permission_error', 'upstream_auth'],
    [404, 'not_found_error', 'model_not_found'],
    [408, 'x', 'timeout'],
    [409, 'conflict_error', 'upstream_unavailable'],
    [413, 'request_too_large', 'upstream_rejected'],
    [422, 'x', 'upstream_rejected'],
    [429, 'rate_limit_error', 'rate_limited'],
    [500, 'api_error', 'upstream_unavailable'],
    [500, 'overloaded_error', 'overloaded'],
    [502, 'x', 'upstream_unavailable'],
    [503, 'x', 'overloaded'],
    [504, 'timeout_error', 'timeout'],
    [529, 'overloaded_error', 'overloaded'],
    [418, 'x', 'upstream_invalid'],
  ];
  // Of its own trouble the upstream's words help no client (F-7).
  const tells: ReadonlySet<ErrorCode> = new Set([
    'upstream_rejected',
    'model_not_found',
    'rate_limited',
  ]);
  for (const [status, type, code] of rows) {
    test(`F10–F20 ${status} ${type} → ${code}`, () => {
      const error = readError(status, body(type, 'no luck'));
      assert.equal(error.code, code);
      assert.equal(error.upstream?.status, status);
      assert.equal(error.message.includes('no luck'), tells.has(code), error.message);
    });
  }

  test('F11 F17 the words decide where the status does not', () => {
    const code = (status: number, message: string): string =>
      readError(status, body('invalid_request_error', message)).code;
    assert.equal(code(400, 'prompt is too long: 5 tokens > 4 maximum'), 'context_overflow');
    assert.equal(
      code(400, 'input length and `max_tokens` exceed context limit: 1 + 2 > 2'),
      'context_overflow',
    );
    assert.equal(code(400, 'Your credit balance is too low'), 'upstream_auth');
    assert.equal(code(400, 'max_tokens: 500000 > 8192'), 'upstream_rejected');
  });

  const shapes: readonly (readonly [name: string, body: string, message: string])[] = [
    ['error text', '{"error":"model is loading"}', 'model is loading'],
    ['message', '{"object":"error","message":"bad","type":"BadRequestError"}', 'bad'],
    ['detail', '{"detail":"nope"}', 'nope'],
    [
      'FastAPI',
      '{"detail":[{"loc":["body","messages"],"msg":"field required"}]}',
      'body.messages: field required',
    ],
    ['a list', '[{"error":{"message":"listed"}}]', 'listed'],
  ];
  for (const [name, text, message] of shapes) {
    test(`6.2 ${name}`, () => assert.equal(readError(422, text).message, message));
  }

  test('F19 S14 no page, no secret and no novel reaches the client', () => {
    const html = '<html><body>nginx secret-host</body></html>';
    assert.ok(!readError(502, html).message.includes('nginx'));
    assert.ok(!readError(400, html).message.includes('nginx'));
    assert.equal(readError(404, html).code, 'upstream_invalid');
    const echoed = readError(400, body('x', 'bad header x-api-key: sk-ant-abc123def456'));
    assert.ok(!echoed.message.includes('abc123'));
    assert.ok(readError(400, body('x', 'y'.repeat(10_000))).message.length <= 2048);
  });

  test('S20 S22 only the beginning of an error is judged by its words', () => {
    const said = (message: string) => readError(400, body('x', message)).code;
    assert.equal(said(`${'x '.repeat(4000)}prompt is too long`), 'context_overflow');
    assert.equal(said(`${'x '.repeat(4096)}prompt is too long`), 'upstream_rejected');
    const type = `${'x '.repeat(4096)}prompt is too long`;
    assert.equal(readError(400, body(type, 'no')).code, 'upstream_rejected');
  });

  test('any bytes are read without a throw', () => {
    for (const text of ['', 'null', '[]', '[null]', '{}', '{"error":null}', '{"error":[]}', '5']) {
      for (const status of [400, 404, 500]) {
        const error: JsonObject = { message: readError(status, text).message };
        assert.notEqual(error['message'], '');
      }
    }
  });
});
