/** How vendors word their failures: each row of the table reads an error that no other row of its meaning reads. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { vendorErrors } from '../../../src/dialects/shared/vendor-errors.ts';

/** In the order of the table. */
const errors: readonly string[] = [
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
  'context_length_exceeded',
  'the request exceeds the available context size (4096 tokens), try increasing it',
  'The prompt has 9000 tokens, the context window is 8192 tokens',
  'exceed_context_size_error',
  "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
  'prompt is too long: 250000 tokens > 200000 maximum',
  "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
  'Input is too long for requested model.',
  'input length and `max_tokens` exceed the limit: 190000 + 20000 > 200000',
  'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
  'too many input tokens: 9000',
  'Invalid request: Your request exceeded model token limit: 131072',
  'Range of input length should be [1, 30720]',
  'Please reduce the length of the messages or completion.',
  'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097.',
  'insufficient_quota',
  'billing_hard_limit_reached',
  'Your credit balance is too low to access the API.',
  'This request requires more credits, or fewer max_tokens. You requested up to 4096 tokens, but can only afford 1200.',
  'overloaded_error',
  'slow_down',
  'UNAVAILABLE',
  'The system is currently experiencing high demand and cannot process your request.',
  'RESOURCE_EXHAUSTED',
  'DEADLINE_EXCEEDED',
  'invalid_request_error',
  'invalid_prompt',
  'invalid_image_format',
  'not_found_error',
  'The model `x` does not exist or you do not have access to it.',
  'OperationNotSupported',
  'authentication_error',
  'API key not valid. Please pass a valid API key.',
  'upstream_auth',
];

describe('B9 F11 how vendors word their failures', () => {
  test('each row has an error', () => assert.equal(errors.length, vendorErrors.length));

  for (const [i, row] of vendorErrors.entries()) {
    const error = errors[i] ?? '';
    test(`${row.means}: ${error}`, () => {
      const readers = vendorErrors.filter(
        ({ means, match }) => means === row.means && match.test(error),
      );
      assert.deepEqual(readers, [row]);
    });
  }
});
