/** F7: a kept connection that its server closed meanwhile is not seen; a fresh one that breaks is (F6). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import { Pieces } from '../../../src/json/pieces.ts';
import { HttpClient } from '../../../src/wire/http-client.ts';
import { ScriptedUpstream, type Answer } from '../../upstream/scripted.ts';
import { looked } from './http1/seen.ts';

let upstream: ScriptedUpstream;
let client: HttpClient;
before(async () => {
  upstream = await ScriptedUpstream.start();
  client = new HttpClient();
});
after(async () => {
  await client.close();
  await upstream.close();
});

const good: Answer = { body: '{}' };
const reset: Answer = { body: '', mute: true, ending: 'reset' };

/** Sends one request; `undefined` when it was answered. */
async function send(model: string): Promise<GatewayError | undefined> {
  const failure = await sent(model);
  await looked();
  return failure;
}

function sent(model: string): Promise<GatewayError | undefined> {
  return new Promise((resolve) => {
    const origin = `http://127.0.0.1:${upstream.port}`;
    client.send(
      {
        endpoint: { origin, path: '/x', headers: [] },
        method: 'POST',
        headers: [],
        body: Pieces.of(Buffer.from(JSON.stringify({ model }))),
        connectMs: 2000,
      },
      {
        head: () => undefined,
        data: () => undefined,
        end: () => resolve(undefined),
        failed: resolve,
      },
    );
  });
}

test('F6 F7 only what may have been a dead connection is sent again, once', async () => {
  const first = upstream.script('first', reset, good);
  assert.equal((await send('first'))?.code, 'upstream_unavailable');
  assert.equal(first.requests.length, 1, 'nothing was kept yet');

  assert.equal(await send('first'), undefined);
  const race = upstream.script('race', reset, good);
  assert.equal(await send('race'), undefined);
  assert.equal(race.requests.length, 2, 'the race is not seen');

  const gone = upstream.script('gone', reset);
  assert.equal((await send('gone'))?.code, 'upstream_unavailable');
  assert.equal(gone.requests.length, 2);
  assert.equal((await send('gone'))?.code, 'upstream_unavailable');
  assert.equal(gone.requests.length, 3, 'nothing is kept any more');
});

test('G12 connections that are closed by now excuse no request that breaks on a fresh one', async () => {
  const calls = 10;
  const all = <T>(what: () => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: calls }, what));
  upstream.script('closing', { body: '{}', headers: { connection: 'close' }, framing: 'close' });
  assert.deepEqual(new Set(await all(() => send('closing'))), new Set([undefined]));
  while (upstream.connections > 0) await new Promise((resolve) => setImmediate(resolve));

  const down = upstream.script('down', reset);
  for (const error of await all(() => send('down'))) {
    assert.equal(error?.code, 'upstream_unavailable');
  }
  assert.equal(down.requests.length, calls);
});

test('F7 as many requests are sent again as there were kept connections', async () => {
  const calls = 10;
  const all = <T>(what: () => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: calls }, what));
  const held = Promise.withResolvers<void>();
  const warm = upstream.script('warm', { body: ['{', held.promise, '}'], framing: 'chunked' });
  const answers = all(() => send('warm'));
  await warm.request(calls - 1);
  held.resolve();
  assert.deepEqual(new Set(await answers), new Set([undefined]));

  const race = upstream.script('races', ...Array.from({ length: calls }, () => reset), good);
  assert.deepEqual(new Set(await all(() => send('races'))), new Set([undefined]));
  assert.equal(race.requests.length, 2 * calls);
});
