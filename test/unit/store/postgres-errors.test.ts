import assert from 'node:assert/strict';
import { it } from 'node:test';
import { asPostgresError, isEnded } from '../../../src/store/postgres/pool.ts';

it('F88 a connection that ended is told from a server that is silent: only the first is worth many tries', () => {
  const ended = (error: Error): boolean => isEnded(asPostgresError(error, 'postgres://db'));
  assert.equal(ended(new Error('Connection terminated unexpectedly')), true);
  assert.equal(ended(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })), true);
  // pg-pool says so of a new connection that got no answer in two seconds.
  assert.equal(ended(new Error('Connection terminated due to connection timeout')), false);
  assert.equal(ended(new Error('timeout expired')), false);
});
