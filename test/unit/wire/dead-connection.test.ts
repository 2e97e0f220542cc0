/** F7: a kept connection that its server closed meanwhile is not seen; a fresh one that breaks is (F6). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import { HttpClient } from '../../../src/wire/http-client.ts';
import { ScriptedUpstream, type Answer } from '../../upstream/scripted.ts';

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
function send(model: string): Promise<GatewayError | undefined> {
  return new Promise((resolve) => {
    const origin = `http://127.0.0.1:${upstream.port}`;
    client.send(
      {
        endpoint: { origin, path: '/x', headers: [] },
        method: 'POST',
        headers: [],
        body: Buffer.from(JSON.stringify({ model })),
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
