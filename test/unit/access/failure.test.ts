import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError, invalidRequest } from '../../../src/core/errors.ts';
import { attemptFailureOf, failureOf } from '../../../src/core/faults.ts';
import { LimitError } from '../../../src/core/policy.ts';

const upstream = { status: 503, body: '' };

test("A4 own limits, client's faults and providers' faults are distinguished, whatever the code", () => {
  const limit = 'key:a:requests';
  const own = failureOf(
    new LimitError('rate_limited', 'Limit of this key (a).', { standings: {}, limit }),
  );
  assert.deepEqual(own, { fault: 'limit', message: 'Limit of this key (a).', limit });
  const fault = (error: GatewayError): string => failureOf(error).fault;
  assert.equal(fault(new GatewayError('rate_limited', 'Slow down.', { upstream })), 'provider');
  assert.equal(fault(invalidRequest('No price.', ['model'], 'price_unknown')), 'limit');
  assert.equal(fault(invalidRequest('No model.', ['model'])), 'client');
  assert.equal(fault(new GatewayError('overloaded', 'Full.')), 'gateway');
  assert.equal(fault(new GatewayError('overloaded', 'Full.', { upstream })), 'provider');
  assert.equal(fault(new GatewayError('model_not_found', 'No such model.')), 'client');
  assert.equal(fault(new GatewayError('model_not_found', 'No such.', { upstream })), 'provider');
});

test("A4 an attempt has the provider's words, a call what its client was told; one line of 500 characters", () => {
  const detail = `The provider said: ${'no money\n\u0000'.repeat(100)}`;
  const error = new GatewayError('upstream_auth', 'Only the operator can fix this.', { detail });
  assert.equal(failureOf(error).message, 'Only the operator can fix this.');
  const { message } = attemptFailureOf(error);
  assert.match(message, /^The provider said: no money no money /);
  assert.equal(message.length, 500);
  assert.ok(!message.includes('\n') && !message.includes('\0'));
});
