import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError, invalidRequest, type ErrorCode } from '../../../src/core/errors.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { errorTable } from '../../../src/dialects/openai-chat/errors.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';

const { readError } = openaiChatUpstream;
const { writeError, writeStreamError } = openaiChatClient;

test('F12 a 402 that says what there is money for is about this request only', () => {
  const said = (message: string): boolean =>
    readError(402, JSON.stringify({ error: { message, code: 402 } })).ofRequest;
  const fewer =
    'This request requires more credits, or fewer max_tokens. You requested up to 4096 tokens, but can only afford 1200.';
  assert.equal(said(fewer), true);
  assert.equal(
    said('Insufficient credits. Add more using https://openrouter.ai/settings/credits'),
    false,
  );
});

describe('writing', () => {
  const rows: readonly (readonly [ErrorCode, number, string, string | null])[] = [
    ['invalid_request', 400, 'invalid_request_error', null],
    ['too_large', 413, 'invalid_request_error', 'request_too_large'],
    ['unsupported_media_type', 415, 'invalid_request_error', 'unsupported_media_type'],
    ['unauthenticated', 401, 'invalid_request_error', 'invalid_api_key'],
    ['forbidden', 403, 'invalid_request_error', 'permission_denied'],
    ['model_not_found', 404, 'invalid_request_error', 'model_not_found'],
    ['route_not_found', 404, 'invalid_request_error', 'unknown_url'],
    ['method_not_allowed', 405, 'invalid_request_error', 'unknown_url'],
    ['rate_limited', 429, 'rate_limit_error', 'rate_limit_exceeded'],
    ['budget_exhausted', 429, 'insufficient_quota', 'insufficient_quota'],
    ['overloaded', 503, 'service_unavailable_error', 'server_is_overloaded'],
    ['upstream_unavailable', 502, 'server_error', 'upstream_unavailable'],
    ['upstream_invalid', 502, 'server_error', 'upstream_invalid_response'],
    ['timeout', 504, 'server_error', 'upstream_timeout'],
    ['context_overflow', 400, 'invalid_request_error', 'context_length_exceeded'],
    ['upstream_auth', 400, 'invalid_request_error', 'upstream_auth'],
    ['internal', 500, 'server_error', 'internal_error'],
    ['store_unavailable', 503, 'service_unavailable_error', 'store_unavailable'],
  ];
  for (const [code, status, type, word] of rows) {
    test(`H1 ${code} → ${status} ${type} ${String(word)}`, () => {
      const written = writeError(new GatewayError(code, 'what happened'), 'req_9');
      assert.equal(written.status, status);
      const error = written.body['error'];
      assert.deepEqual(Object.keys(Object(error)), ['message', 'type', 'param', 'code']);
      assert.deepEqual(
        [Reflect.get(Object(error), 'type'), Reflect.get(Object(error), 'code')],
        [type, word],
      );
    });
  }

  test('E6 an unknown model names its field', () => {
    const { body } = writeError(new GatewayError('model_not_found', 'no such model'), 'r');
    assert.equal(Reflect.get(Object(body['error']), 'param'), 'model');
  });

  test('param is spelled as a path, reason is the code', () => {
    const error = invalidRequest('bad', ['messages', 3, 'content', 0, 'text'], 'invalid_value');
    assert.deepEqual(writeError(error, 'r').body, {
      error: {
        message: 'bad',
        type: 'invalid_request_error',
        param: 'messages[3].content[0].text',
        code: 'invalid_value',
      },
    });
  });

  test('E14 a rejection keeps its status', () => {
    const error = new GatewayError('upstream_rejected', 'no', { status: 422 });
    assert.equal(writeError(error, 'r').status, 422);
  });

  test('E16 an internal error names the request', () => {
    const { body } = writeError(new GatewayError('internal', 'It broke.'), 'req_9');
    assert.match(JSON.stringify(body), /req_9/);
  });

  test('EM one frame with all four keys and no [DONE]', () => {
    const text = writeStreamError(new GatewayError('stream_interrupted', 'cut'), 'r');
    assert.match(text, /^data: \{.*\}\n\n$/);
    assert.deepEqual(tryParseObject(text.slice(6)), {
      error: {
        message: 'Connection lost: provider returned error (premature close of the stream). cut',
        type: 'server_error',
        param: null,
        code: 'upstream_stream_interrupted',
      },
    });
  });

  test('every code has a form', () => {
    for (const form of Object.values(errorTable)) assert.ok(form.status >= 400 && form.type !== '');
  });
});

describe('reading', () => {
  const rows: readonly (readonly [string, number, unknown, ErrorCode, string?])[] = [
    [
      'OpenAI 400',
      400,
      { error: { message: 'bad value', type: 'invalid_request_error', param: 'x', code: null } },
      'upstream_rejected',
      'bad value',
    ],
    [
      'error string',
      400,
      { code: 'Client specified an invalid argument', error: 'bad value' },
      'upstream_rejected',
      'bad value',
    ],
    [
      'message',
      422,
      { object: 'error', message: 'bad value', type: 'x', code: 1 },
      'upstream_rejected',
      'bad value',
    ],
    ['detail text', 400, { detail: 'bad value' }, 'upstream_rejected', 'bad value'],
    [
      'detail list',
      422,
      { detail: [{ loc: ['body', 'x'], msg: 'wrong' }, { msg: 'again' }] },
      'upstream_rejected',
      'body.x: wrong; again',
    ],
    [
      'array body',
      400,
      [{ error: { message: 'bad value', status: 'INVALID_ARGUMENT' } }],
      'upstream_rejected',
      'bad value',
    ],
    ['413', 413, { error: { message: 'too big' } }, 'upstream_rejected', 'too big'],
    [
      '401',
      401,
      { error: { message: 'Incorrect API key provided: sk-abc123abc' } },
      'upstream_auth',
    ],
    ['402', 402, { error: { message: 'no balance' } }, 'upstream_auth'],
    ['403', 403, { error: { message: 'region' } }, 'upstream_auth'],
    [
      'Gemini bad key',
      400,
      [
        {
          error: {
            code: 400,
            message: 'API key not valid. Please pass a valid API key.',
            status: 'INVALID_ARGUMENT',
          },
        },
      ],
      'upstream_auth',
    ],
    [
      'F13 404 model',
      404,
      { error: { message: 'The model `x` does not exist', code: 'model_not_found' } },
      'model_not_found',
    ],
    ['404 path', 404, '<html>nginx</html>', 'upstream_invalid'],
    ['408', 408, '', 'timeout'],
    ['409', 409, '', 'upstream_unavailable'],
    [
      'F15 429',
      429,
      { error: { message: 'slow down', type: 'requests', code: 'rate_limit_exceeded' } },
      'rate_limited',
    ],
    [
      'F17 quota',
      429,
      {
        error: {
          message: 'You exceeded your current quota',
          type: 'insufficient_quota',
          code: 'insufficient_quota',
        },
      },
      'upstream_auth',
    ],
    ['498 flex', 498, { error: { message: 'capacity' } }, 'overloaded'],
    ['500', 500, { error: { message: 'internal' } }, 'upstream_unavailable'],
    ['500 overloaded', 500, { error: { message: 'x', type: 'overloaded_error' } }, 'overloaded'],
    [
      '501',
      501,
      { error: { code: 501, message: 'not supported', type: 'not_supported_error' } },
      'upstream_rejected',
      'not supported',
    ],
    ['F19 502 page', 502, '<html><h1>Bad gateway</h1></html>', 'upstream_unavailable'],
    [
      '503',
      503,
      { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
      'overloaded',
    ],
    ['504', 504, 'upstream request timeout', 'timeout'],
    [
      'F20 529',
      529,
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      'overloaded',
    ],
    ['418', 418, '{}', 'upstream_invalid'],
  ];
  for (const [name, status, body, code, message] of rows) {
    test(`F10–F20 ${name} → ${code}`, () => {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const error = readError(status, text);
      assert.equal(error.code, code);
      assert.deepEqual(error.upstream, { status, body: text });
      if (message !== undefined) assert.equal(error.message, message);
      assert.ok(!/sk-abc|<h|html/.test(error.message), error.message);
      const shown = writeError(error, 'r');
      assert.notEqual(shown.status, 401);
      if (code === 'upstream_rejected') assert.equal(shown.status, status === 501 ? 400 : status);
    });
  }

  const overflows: readonly (readonly [number, string])[] = [
    [
      400,
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    ],
    [400, 'prompt is too long: 250000 tokens > 200000 maximum'],
    [400, 'the request exceeds the available context size (4096 tokens), try increasing it'],
    [400, 'Your input exceeds the context window of this model.'],
    [
      400,
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    ],
    [400, "This model's maximum prompt length is 131072 but the request contains 200000 tokens."],
    [400, 'Please reduce the length of the messages or completion.'],
    [400, 'Invalid request: Your request exceeded model token limit: 131072'],
    [
      400,
      'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    ],
    [422, 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097.'],
    [413, 'Input is too long for requested model.'],
    [500, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."],
  ];
  for (const [status, message] of overflows) {
    test(`F11 overflow: ${message.slice(0, 50)}`, () => {
      const error = readError(status, JSON.stringify({ error: { message } }));
      assert.equal(error.code, 'context_overflow');
      assert.equal(error.message, message);
      assert.equal(writeError(error, 'r').status, 400);
    });
  }

  test('F11 overflow by its code alone', () => {
    const error = readError(400, '{"error":{"message":"no","code":"context_length_exceeded"}}');
    assert.equal(error.code, 'context_overflow');
  });

  test('a cap on the output is no overflow of the context', () => {
    const message =
      'max_tokens is too large: 100000. This model supports at most 16384 completion tokens.';
    assert.equal(readError(400, JSON.stringify({ error: { message } })).code, 'upstream_rejected');
  });

  test('E14 the code of a rejection is kept, a number is not', () => {
    const named = readError(400, '{"error":{"message":"m","code":"content_filter"}}');
    assert.equal(named.reason, 'content_filter');
    assert.equal(readError(400, '{"error":{"message":"m","code":"400"}}').reason, undefined);
    assert.equal(readError(400, '{"error":{"message":"m","code":400}}').reason, undefined);
  });

  test('E14 the parameter that the upstream named is reported', () => {
    const error = readError(400, '{"error":{"message":"m","param":"messages[2].content"}}');
    const { body } = writeError(error, 'r');
    assert.equal(Reflect.get(Object(body['error']), 'param'), 'messages[2].content');
  });

  test('S14 long texts are cut and keys masked', () => {
    const message = `key sk-proj-AAAABBBBCCCC and Bearer abc.def ${'x'.repeat(5000)}`;
    const error = readError(400, JSON.stringify({ error: { message } }));
    assert.ok(error.message.length <= 2100);
    assert.ok(!/AAAA|abc\.def/.test(error.message), error.message.slice(0, 80));
  });

  test('F16 the wait that Google names in the body', () => {
    const details = [{ '@type': 'x' }, { retryDelay: '34.4s' }];
    const body = JSON.stringify({
      error: { code: 429, message: 'm', status: 'RESOURCE_EXHAUSTED', details },
    });
    const error = readError(429, body);
    assert.equal(error.code, 'rate_limited');
    assert.equal(error.retryAfterMs, 34_400);
  });

  test('S20 S22 only the beginning of an error is judged by its words', () => {
    const said = (message: string) => readError(400, JSON.stringify({ error: { message } })).code;
    const phrase = 'maximum context length is 5';
    assert.equal(said('x '.repeat(4000) + phrase), 'context_overflow');
    assert.equal(said('x '.repeat(4096) + phrase), 'upstream_rejected');
    assert.equal(
      readError(400, JSON.stringify('x '.repeat(4096) + phrase)).code,
      'upstream_rejected',
    );
    const type = 'x '.repeat(4096) + 'exceed_context_size';
    assert.equal(readError(400, JSON.stringify({ error: { type } })).code, 'upstream_rejected');
  });

  test('R3 a model that this provider lacks may be tried elsewhere', () => {
    assert.equal(readError(404, '{"error":{"message":"model not found"}}').retryable, true);
    assert.equal(readError(400, '{"error":{"message":"bad"}}').retryable, false);
  });
});
