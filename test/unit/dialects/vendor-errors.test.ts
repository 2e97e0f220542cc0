/** How vendors word their failures: each row of the table reads an error that no other row of its meaning reads. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  isMissingApi,
  readError,
  vendorErrors,
} from '../../../src/dialects/shared/vendor-errors.ts';

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
  'Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, model: gemini-3-pro',
  'GenerateRequestsPerDayPerProjectPerModel-FreeTier',
  'This request requires more credits, or fewer max_tokens. You requested up to 4096 tokens, but can only afford 1200.',
  'overloaded_error',
  'slow_down',
  'UNAVAILABLE',
  'The system is currently experiencing high demand and cannot process your request.',
  'Resource exhausted. Please try again later. Please refer to the documentation.',
  'RESOURCE_EXHAUSTED',
  'DEADLINE_EXCEEDED',
  'invalid_request_error',
  'invalid_prompt',
  'invalid_image_format',
  'not_found_error',
  'The model `x` does not exist or you do not have access to it.',
  'OperationNotSupported',
  'Not Found',
  'The requested resource was not found',
  'Invalid URL',
  'Cannot POST',
  'unknown_url',
  'Not found: /v1/responses',
  'default backend - 404',
  'Unexpected endpoint or method. (POST /v1/responses)',
  'authentication_error',
  'API key not valid. Please pass a valid API key.',
  'FAILED_PRECONDITION',
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

/** As servers answer `POST /v1/responses` where they have no such address. */
const missing: readonly (readonly [status: number, body: string])[] = [
  [404, '{"error":{"message":"Invalid URL (POST /v1/responses)","type":"invalid_request_error"}}'],
  [404, '{"error":{"message":"Unknown request URL: POST /v1/responses.","code":"unknown_url"}}'],
  [404, '{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}'],
  [404, '{"error":{"code":"404","message":"Resource not found"}}'],
  [404, '{"detail":"Not Found"}'],
  [404, '{"type":"error","error":{"type":"not_found_error","message":"Not Found"}}'],
  [404, '{"message":"no Route matched with those values"}'],
  [404, '{"message":"Route POST:/v1/responses not found","error":"Not Found","statusCode":404}'],
  [404, '{"status":404,"error":"Not Found","path":"/v1/responses"}'],
  [404, '{"code":5,"message":"Not Found","details":[]}'],
  [404, '{"errors":[{"code":7000,"message":"No route for that URI"}],"success":false}'],
  [404, '{"error":"Unknown endpoint"}'],
  [404, '<!DOCTYPE html><pre>Cannot POST /v1/responses</pre>'],
  [404, '<html><body>All our models</body></html>'],
  [404, 'Cannot POST /v1/responses'],
  [404, '404 page not found'],
  [404, 'default backend - 404'],
  [404, ''],
  [404, '{}'],
  [405, '{"detail":"Method Not Allowed"}'],
  [501, '{"error":"Unsupported method"}'],
];

/** As servers answer it that have the address and not what the request names, or fail otherwise. */
const there: readonly (readonly [status: number, body: string])[] = [
  [404, '{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}'],
  [404, '{"error":{"code":"model_not_found"}}'],
  [404, '{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError"}'],
  [404, '{"error":{"message":"model \'x\' not found","type":"not_found_error"}}'],
  [404, '{"error":{"message":"This model is not supported in the v1/responses endpoint."}}'],
  [404, '{"error":{"code":"DeploymentNotFound","message":"The API deployment does not exist."}}'],
  [404, '{"error":{"message":"No endpoints found for a/b.","code":404}}'],
  [404, '{"error":{"message":"No endpoints found that support tool use."}}'],
  [404, '{"error":{"message":"Item with id \'rs_1\' not found.","param":"input"}}'],
  [404, '{"error":{"message":"Previous response with id \'resp_1\' not found."}}'],
  [404, '{"error":{"message":"Not found","param":"previous_response_id"}}'],
  [404, '{"error":{"message":"No such File object: file-1"}}'],
  [404, 'model not found'],
  [400, '{"detail":"Not Found"}'],
  [403, '{"message":"Missing Authentication Token"}'],
  [500, '<html>Internal Server Error</html>'],
];

describe('a server that lacks an API', () => {
  for (const [status, body] of missing) {
    test(`${status} ${body}`, () => assert.ok(isMissingApi(readError(status, body))));
  }
  for (const [status, body] of there) {
    test(`is not one that answers ${status} ${body}`, () =>
      assert.ok(!isMissingApi(readError(status, body))));
  }
});
