/** R2, R3: failures that no scripted upstream brings about. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError, type Repeat } from '../../../src/core/errors.ts';
import { mayFallBack, repeatOf } from '../../../src/gateway/targets/retries.ts';

const cause = (code: string): { readonly cause: unknown } => ({ cause: { code } });
const unsent = { status: 0, streamed: true };

const connections: readonly (readonly [string, GatewayError, Repeat])[] = [
  ['F1', new GatewayError('upstream_unavailable', '', cause('ECONNREFUSED')), 'may'],
  ['F2', new GatewayError('timeout', '', cause('CONNECT_TIMEOUT')), 'never'],
  ['F3', new GatewayError('upstream_unavailable', '', cause('ENOTFOUND')), 'may'],
  ['F5', new GatewayError('upstream_unavailable', '', cause('EPIPE')), 'may'],
  ...[
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'ERR_SSL_WRONG_VERSION_NUMBER',
  ].map((code): [string, GatewayError, Repeat] => [
    `F4 ${code}`,
    new GatewayError('upstream_unavailable', '', cause(code)),
    'never',
  ]),
];

for (const [id, error, expected] of connections) {
  test(`${id} is asked again: ${expected}; another target may be`, () => {
    assert.equal(repeatOf(error, unsent), expected);
    assert.ok(mayFallBack(error));
  });
}

test('R1 a stream that broke before its content goes to another target only', () => {
  const broken = new GatewayError('upstream_unavailable', '', cause('ECONNRESET'));
  assert.equal(repeatOf(broken, { status: 200, streamed: true }), 'never');
});

test('F8 F9 a document that takes too long is not asked for again, a stream is, once', () => {
  const late = new GatewayError('timeout', '');
  assert.equal(repeatOf(late, { status: 0, streamed: false }), 'never');
  assert.equal(repeatOf(late, { status: 0, streamed: true }), 'once');
});

test('R7 what ends the call itself is not tried again anywhere', () => {
  for (const code of ['shutting_down', 'unauthenticated', 'canceled', 'internal'] as const) {
    const error = new GatewayError(code, '');
    assert.equal(repeatOf(error, unsent), 'never');
    assert.equal(mayFallBack(error), false);
  }
  assert.equal(mayFallBack(new GatewayError('timeout', '', { retryable: false })), false);
});
