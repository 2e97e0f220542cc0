/** docs/network.md: either client may be chosen, and no third one is taken for one of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from '../../../src/config/config-error.ts';
import { readUpstreamClient } from '../../../src/config/upstream-client.ts';

test('MODEL_GATEWAY_UPSTREAM_CLIENT is one of two words', () => {
  assert.equal(readUpstreamClient({}), 'sockets');
  assert.equal(readUpstreamClient({ MODEL_GATEWAY_UPSTREAM_CLIENT: '' }), 'sockets');
  assert.equal(readUpstreamClient({ MODEL_GATEWAY_UPSTREAM_CLIENT: 'undici' }), 'undici');
  assert.throws(
    () => readUpstreamClient({ MODEL_GATEWAY_UPSTREAM_CLIENT: 'Undici' }),
    (error: unknown) => error instanceof ConfigError && error.message.includes('MODEL_GATEWAY'),
  );
});
