/** Errors of AWS, over HTTP and in streams (wire/bedrock.md §11; §13: 16, 20, 52, 53). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { anthropicMessagesUpstream } from '../../src/dialects/anthropic-messages/upstream.ts';
import { readAwsError } from '../../src/providers/clouds/aws/errors.ts';
import { EventFrames } from '../../src/providers/clouds/aws/event-frames.ts';
import type { GatewayError } from '../../src/core/errors.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { eventMessage, exceptionMessage } from '../upstream/aws.ts';

const { readError } = anthropicMessagesUpstream;

/** Type, status, sentence or body, code. */
const overHttp: readonly (readonly [string, number, string | JsonObject, string])[] = [
  [
    'ValidationException',
    400,
    'Malformed input request: #: extraneous key [x]',
    'upstream_rejected',
  ],
  ['ValidationException', 400, 'Input is too long for requested model.', 'context_overflow'],
  [
    'ValidationException',
    400,
    'prompt is too long: 210000 tokens > 200000 maximum',
    'context_overflow',
  ],
  ['ValidationException', 400, 'The provided model identifier is invalid.', 'model_not_found'],
  ['ServiceQuotaExceededException', 400, 'Your request exceeds the quota.', 'rate_limited'],
  ['ConflictException', 400, 'Conflict.', 'upstream_unavailable'],
  ['AccessDeniedException', 403, "You don't have access to the model", 'upstream_auth'],
  [
    'UnrecognizedClientException',
    403,
    'The security token included in the request is invalid.',
    'upstream_auth',
  ],
  [
    '',
    403,
    { Message: 'Authentication failed: Please make sure your API Key is valid.' },
    'upstream_auth',
  ],
  [
    'ResourceNotFoundException',
    404,
    'This version has reached the end of its life.',
    'model_not_found',
  ],
  ['ModelTimeoutException', 408, 'Model timed out.', 'timeout'],
  ['ModelErrorException', 424, { message: 'no', originalStatusCode: 429 }, 'rate_limited'],
  ['ModelErrorException', 424, { message: 'no', originalStatusCode: 500 }, 'upstream_unavailable'],
  ['ModelErrorException', 424, { message: 'no' }, 'upstream_unavailable'],
  ['ThrottlingException', 429, 'Too many tokens, please wait before trying again.', 'rate_limited'],
  ['ModelNotReadyException', 429, 'The model is not ready.', 'overloaded'],
  ['InternalServerException', 500, 'Internal.', 'upstream_unavailable'],
  ['ServiceUnavailableException', 503, 'Unavailable.', 'overloaded'],
];

describe('bedrock 53: errors over HTTP', () => {
  for (const [type, status, said, code] of overHttp) {
    it(`${type || 'no type'} ${status} ${JSON.stringify(said)}: ${code}`, () => {
      const body = JSON.stringify(typeof said === 'string' ? { message: said } : said);
      const named = type === '' ? undefined : `${type}:http://internal.amazon.com/coral/`;
      assert.equal(readAwsError({ status, type: named, body }, readError).code, code);
      if (type === '') return;
      // The type stands in the body where a proxy drops headers.
      const parsed = JSON.parse(body) as JsonObject;
      const inBody = JSON.stringify({ __type: `com.amazon.coral#${type}`, ...parsed });
      assert.equal(readAwsError({ status, body: inBody }, readError).code, code);
    });
  }

  it("Anthropic's own envelope", () => {
    const error = { type: 'invalid_request_error', message: 'max_tokens: must be at least 1' };
    const read = readAwsError(
      { status: 400, body: JSON.stringify({ type: 'error', error }) },
      readError,
    );
    assert.equal(read.code, 'upstream_rejected');
    assert.equal(read.message, error.message);
  });

  it('a guardrail that the account forces says what the operator can do', () => {
    const body = JSON.stringify({
      message: 'Guardrail was enabled but input is in incorrect format.',
    });
    const error = readAwsError({ status: 400, type: 'ValidationException', body }, readError);
    assert.equal(error.code, 'upstream_rejected');
    assert.match(error.message, /incorrect format\. The operator can .* \(door: converse\)\.$/);
  });

  it('bedrock 52: a model that only profiles can call says what to do', () => {
    const message =
      'Invocation of model ID anthropic.claude-sonnet-4-5-20250929-v1:0 with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.';
    const read = readAwsError(
      { status: 400, type: 'ValidationException', body: JSON.stringify({ message }) },
      readError,
    );
    assert.equal(read.code, 'model_not_found');
    assert.match(read.message, /us\., eu\./);
    assert.equal(read.retryable, true);
  });
});

/** Type, payload, code. */
const inStreams: readonly (readonly [string, JsonObject, string])[] = [
  ['throttlingException', {}, 'rate_limited'],
  ['serviceUnavailableException', {}, 'overloaded'],
  ['internalServerException', {}, 'upstream_unavailable'],
  ['modelStreamErrorException', {}, 'upstream_unavailable'],
  ['modelStreamErrorException', { originalStatusCode: 429 }, 'rate_limited'],
  ['modelStreamErrorException', { originalStatusCode: 400 }, 'upstream_rejected'],
  ['modelTimeoutException', {}, 'timeout'],
  ['validationException', {}, 'upstream_rejected'],
  [
    'validationException',
    { message: 'Input is too long for requested model.' },
    'context_overflow',
  ],
  ['somethingNew', {}, 'upstream_unavailable'],
];

function failureOf(bytes: Buffer): GatewayError | undefined {
  const frames = new EventFrames((type, body) =>
    readAwsError({ status: 200, type, body }, readError),
  );
  return frames.push(bytes)[0]?.failure;
}

describe('bedrock 20: exceptions in streams', () => {
  for (const [type, payload, code] of inStreams) {
    it(`${type} ${JSON.stringify(payload)}: ${code}`, () => {
      const failure = failureOf(exceptionMessage(type, { message: 'Words.', ...payload }));
      assert.equal(failure?.code, code);
    });
  }

  it('bedrock 16: an error message tells itself in headers', () => {
    const headers = {
      ':message-type': 'error',
      ':error-code': 'InternalFailure',
      ':error-message': 'Words.',
    };
    assert.equal(failureOf(eventMessage(headers, ''))?.code, 'upstream_unavailable');
  });

  it('bedrock 18: a message without a kind is an event', () => {
    const event = { type: 'ping' };
    const bytes = Buffer.from(JSON.stringify(event)).toString('base64');
    const frames = new EventFrames(() => assert.fail('no exception came'));
    const [frame] = frames.push(
      eventMessage({ ':event-type': 'chunk' }, JSON.stringify({ bytes })),
    );
    assert.equal(frame?.bytes.toString(), 'event: ping\ndata: {"type":"ping"}\n\n');
  });

  it('bedrock 17: lengths that no message has, and headers of no known type', () => {
    const spoiled = (change: (bytes: Buffer) => void): string | undefined => {
      const bytes = eventMessage({ ':event-type': 'chunk' }, '{}');
      change(bytes);
      return failureOf(bytes)?.code;
    };
    assert.equal(
      spoiled((bytes) => bytes.writeUInt32BE(15, 0)),
      'upstream_invalid',
    );
    assert.equal(
      spoiled((bytes) => bytes.writeUInt32BE(2 ** 30, 0)),
      'upstream_invalid',
    );
    assert.equal(
      spoiled((bytes) => bytes.writeUInt32BE(2 ** 20, 4)),
      'upstream_invalid',
    );
    assert.equal(
      spoiled((bytes) => bytes.writeUInt8(12, 12 + 12)),
      'upstream_invalid',
    );
  });
});
