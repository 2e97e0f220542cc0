import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { reportOutages } from '../../../src/store/counters/redis-client.ts';
import type { Log } from '../../../src/core/runtime.ts';

test('a Redis that refuses or is away is one line an outage, with the reason and what to check', () => {
  const lines: unknown[] = [];
  const note =
    (level: string): Log['info'] =>
    (event, fields) =>
      void lines.push([level, event, fields?.['server'], fields?.['reason']]);
  const log: Log = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
  };
  const client = new EventEmitter();
  reportOutages(client as never, { host: 'cache.internal', port: 6379 }, log);
  client.emit('ready');
  client.emit('error', new Error('WRONGPASS invalid username-password pair'));
  client.emit('error', new Error('WRONGPASS invalid username-password pair'));
  client.emit('ready');
  client.emit('error', new Error('connect ECONNREFUSED 10.0.0.1:6379'));
  client.emit('ready');
  const each = ['connect ECONNREFUSED ::1:6379', 'connect ECONNREFUSED 127.0.0.1:6379'];
  client.emit('error', new AggregateError(each.map((text) => new Error(text))));
  const server = 'cache.internal:6379';
  const checked = '(check user and password of the Redis address)';
  assert.deepEqual(lines, [
    ['error', 'redis_unavailable', server, `WRONGPASS invalid username-password pair ${checked}`],
    ['warn', 'redis_available', server, undefined],
    ['error', 'redis_unavailable', server, 'connect ECONNREFUSED 10.0.0.1:6379'],
    ['warn', 'redis_available', server, undefined],
    ['error', 'redis_unavailable', server, each.join(', ')],
  ]);
});
