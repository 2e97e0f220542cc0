/** Clients whose connections meet the end of a worker: none is reset, whether it is new or kept (G14). */
import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { Instance } from '../cluster/instance.ts';
import { until } from '../support/postgres-store.ts';
import { crewed } from './crew.ts';

const renewals = 2;
const callersOfAKind = 48;

/** One call; the client does not repeat what fails. */
async function ask(url: string, agent: Agent): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = get(`${url}/healthz`, { agent }, (answer) => {
    text(answer).then((body) => resolve(`${answer.statusCode} ${body}`), reject);
  });
  request.on('error', (error) => {
    reject(new Error(`${error.message}, on a connection that was ${kindOf(request.reusedSocket)}`));
  });
  assert.match(await promise, /^200 /);
}

function kindOf(reused: boolean): 'kept' | 'new' {
  return reused ? 'kept' : 'new';
}

/** All workers are replaced once. */
async function renewed(gateway: Instance): Promise<void> {
  const rounds = (): number => gateway.log.split('"event":"workers_renewed"').length;
  const before = rounds();
  gateway.signal('SIGUSR2');
  await until(() => rounds() > before, 'all are replaced');
}

test('G14 under many new and many kept connections SIGUSR2 again and again resets none', async (t) => {
  const { gateway } = await crewed(t, 2);
  const kept = new Agent({ keepAlive: true });
  const fresh = new Agent({ keepAlive: false });
  const troubles: string[] = [];
  const calls = { kept: 0, new: 0 };
  const renewing = { over: false };
  t.after(() => {
    renewing.over = true;
    kept.destroy();
  });
  const callers = Array.from({ length: 2 * callersOfAKind }, async (_, i) => {
    const isKept = i % 2 === 0;
    while (!renewing.over) {
      try {
        await ask(gateway.url, isKept ? kept : fresh);
      } catch (error) {
        troubles.push(error instanceof Error ? error.message : String(error));
      }
      calls[kindOf(isKept)] += 1;
    }
  });
  for (let round = 0; round < renewals; round += 1) await renewed(gateway);
  renewing.over = true;
  await Promise.all(callers);
  t.diagnostic(`${calls.kept} calls on kept connections, ${calls.new} on new ones`);
  assert.deepEqual([...new Set(troubles)], []);
  assert.equal(await gateway.stop(), 0);
});
