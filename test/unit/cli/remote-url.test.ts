import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { runningUrl } from '../../../src/compose/commands/find-gateway.ts';

test('the address of a gateway on another machine has the host by which commands reach it', async (t) => {
  let own = '';
  const admin = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ url: own }));
  });
  await new Promise<void>((resolve) => void admin.listen(0, '127.0.0.1', resolve));
  t.after(() => admin.close());
  const { port } = admin.address() as AddressInfo;
  const env = {
    MODEL_GATEWAY_ADMIN_LISTEN: `http://localhost:${port}`,
    MODEL_GATEWAY_ADMIN_TOKEN: 'the-token-of-the-other-machine',
  };
  for (const [said, reached] of [
    ['http://0.0.0.0:8686', 'http://localhost:8686'],
    ['https://[::]:8686', 'https://localhost:8686'],
    ['http://127.0.0.1:8686', 'http://localhost:8686'],
    ['https://models.example/v1', 'https://models.example/v1'],
  ] as const) {
    own = said;
    assert.equal(await runningUrl(env, import.meta.dirname), reached);
  }
});
