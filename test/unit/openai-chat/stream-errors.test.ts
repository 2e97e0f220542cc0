import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError, type ErrorCode } from '../../../src/core/errors.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { chunk, errorOf, frame, framesOf, readAll, readChunks, role } from './answer-context.ts';

describe('errors in a stream', () => {
  const shapes: readonly (readonly [string, unknown, ErrorCode])[] = [
    [
      'OpenAI',
      { error: { message: 'slow', type: 'rate_limit_error', code: null } },
      'rate_limited',
    ],
    ['number code', { error: { code: 429, message: 'slow' } }, 'rate_limited'],
    ['string code', { error: { code: '503', message: 'busy' } }, 'overloaded'],
    ['a string', { error: 'out of memory' }, 'upstream_unavailable'],
    ['xAI', { code: 'invalid-argument', error: 'bad' }, 'upstream_unavailable'],
    [
      'vLLM',
      { object: 'error', message: 'boom', type: 'BadRequestError', code: 400 },
      'upstream_rejected',
    ],
    ['FastAPI', { detail: 'boom' }, 'upstream_unavailable'],
    [
      'OpenRouter',
      {
        id: 'x',
        choices: [{ index: 0, delta: {}, error: { code: 502, message: 'provider down' } }],
      },
      'upstream_unavailable',
    ],
    [
      'with empty choices',
      { choices: [], error: { message: 'Overloaded', type: 'overloaded_error' } },
      'overloaded',
    ],
    [
      'Groq',
      { choices: [], x_groq: { error: { message: 'over', status_code: 503 } } },
      'overloaded',
    ],
    ['credentials', { error: { code: 401, message: 'bad sk-abcdefgh1234' } }, 'upstream_auth'],
    [
      'overflow',
      { error: { message: "This model's maximum context length is 8 tokens", code: null } },
      'context_overflow',
    ],
  ];
  for (const [name, shape, code] of shapes) {
    test(`E5 F43 ${name} → ${code}`, () => {
      const events = readChunks([
        role,
        chunk({ content: 'x' }),
        shape,
        chunk({}, 'stop'),
        '[DONE]',
      ]);
      const error = errorOf(events);
      assert.equal(error.code, code);
      assert.equal(events.filter((event) => event.type === 'finish').length, 0);
      assert.ok(!error.message.includes('sk-abc'));
    });
  }

  test('E5 the real message is kept', () => {
    const events = readChunks([role, { error: { message: 'GPU 7 fell off the bus', code: 500 } }]);
    assert.equal(errorOf(events).message, 'GPU 7 fell off the bus');
  });

  test('an SSE event named error', () => {
    const [one] = framesOf('event: error\ndata: {"message":"slow down","type":"rate_limit"}\n\n');
    assert.ok(one !== undefined);
    assert.equal(errorOf(readAll([frame(role), one])).code, 'rate_limited');
  });

  test('F45 broken JSON fails the stream, nothing is skipped', () => {
    for (const data of ['{"id":', 'hello', '5', '"text"']) {
      const reader = openaiChatUpstream.streamReader(chatTraits);
      reader.read(frame(role));
      assert.throws(
        () => reader.read(frame(data)),
        (error) => error instanceof GatewayError && error.code === 'upstream_invalid',
      );
    }
  });
});
