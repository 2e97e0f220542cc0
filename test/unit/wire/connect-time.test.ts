/** R7, G13: a connection that is not made is given up at its time, and not at the next beat of a slow clock. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guardedConnector } from '../../../src/wire/connect.ts';

const connectMs = 1100;

test('F2 R7 a connection that is not made in time is given up before a timer a little later', async () => {
  // Nobody ever says where it is.
  const connect = guardedConnector({ timeoutMs: connectMs, lookup: () => undefined });
  const order: string[] = [];
  const wanted = { hostname: 'nowhere.test', protocol: 'http:', port: '80' };
  const given = new Promise<Error | null>((resolve) => {
    connect(wanted, (...[error]) => {
      order.push('given up');
      resolve(error);
    });
  });
  const later = new Promise<void>((resolve) => {
    setTimeout(() => {
      order.push('later');
      resolve();
    }, connectMs + 100);
  });
  const error = await given;
  await later;
  assert.deepEqual(order, ['given up', 'later']);
  assert.ok(error !== null && 'code' in error);
  assert.equal(error.code, 'CONNECT_TIMEOUT');
});
