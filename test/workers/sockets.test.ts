/** Sockets that the parent binds for its workers and on which it never listens. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { reservePort } from '../../src/http/listen.ts';
import { canShareSockets, WorkerSockets } from '../../src/http/worker-sockets.ts';

for (const host of ['127.0.0.1', '::1', '::', 'localhost']) {
  test(`sockets of two workers are bound on one port of ${host}`, async () => {
    assert.equal(await canShareSockets(host), true);
    const sockets = await WorkerSockets.open({ host, port: 0 }, 2);
    assert.notEqual(sockets.port, 0);
    const fds = [...sockets.of(1), ...sockets.of(2)];
    assert.equal(new Set(fds).size, 64);
    assert.deepEqual(sockets.of(1), fds.slice(0, 32), 'a place keeps its sockets');
    await sockets.close();
    await (await reservePort({ host, port: sockets.port })).release();
  });
}

test('F92 a second gateway is refused before the workers of the first one listen', async (t) => {
  const first = await WorkerSockets.open({ host: '127.0.0.1', port: 0 }, 2);
  t.after(() => first.close());
  const address = { host: '127.0.0.1', port: first.port };
  await assert.rejects(WorkerSockets.open(address, 2), { code: 'EADDRINUSE' });
  await assert.rejects(reservePort(address), { code: 'EADDRINUSE' });
});

test('a place whose sockets were released gets new ones beside those that listen', async (t) => {
  const sockets = await WorkerSockets.open({ host: '127.0.0.1', port: 0 }, 2);
  await sockets.unguard();
  const listening = createServer();
  const address = { host: '127.0.0.1', port: sockets.port, reusePort: true };
  await new Promise<void>((resolve) => {
    listening.listen(address, resolve);
  });
  t.after(async () => {
    listening.close();
    await sockets.close();
  });
  sockets.release(2);
  assert.equal(sockets.of(2).length, 32);
});

test('a host on which nothing can listen is an error and no lack of the system', async () => {
  await assert.rejects(canShareSockets('192.0.2.1'), { code: 'EADDRNOTAVAIL' });
});
