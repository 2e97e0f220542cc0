/** `limits.streams`: above the cap calls are refused at once, and served again when there is room (G2). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { send, type Reply } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { clientDialects } from '../support/dialects.ts';
import { objectAt } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { errorTable, lookOf } from './fault-row.ts';

let rig: Rig;
before(async () => {
  rig = await startRig({ limits: { streams: 1 } });
});
after(() => rig.stop());

for (const dialect of clientDialects) {
  test(`G2 E10 the call above the cap, ${dialect}`, async () => {
    const held = rig.play('chat', { body: '', mute: true, ending: 'hang' });
    const leaving = new AbortController();
    const first = ask(rig, dialect, requestBody(dialect, { model: held.model, stream: false }), {
      signal: leaving.signal,
    }).catch(() => undefined);
    const request = await held.script.request(0);
    const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
    const body = requestBody(dialect, { model, stream: false });
    const refused = await ask(rig, dialect, body);
    assert.equal(refused.status, lookOf(errorTable.e10, dialect).status, refused.text);
    assert.match(String(refused.headers['retry-after']), /^\d+$/);
    assert.match(String(objectAt(refused.json, 'error')['type']), /overloaded|unavailable/);
    leaving.abort();
    await first;
    await request.closed;
    assert.equal((await ask(rig, dialect, body)).status, 200);
  });
}

test('G2 the list of models takes a place, and gives it back', async () => {
  const held = rig.play('chat', { body: '', mute: true, ending: 'hang' });
  const leaving = new AbortController();
  const first = ask(rig, 'chat', requestBody('chat', { model: held.model, stream: false }), {
    signal: leaving.signal,
  }).catch(() => undefined);
  const request = await held.script.request(0);
  const list = (path: string): Promise<Reply> =>
    send(rig.gateway.url + path, undefined, { headers: { authorization: `Bearer ${clientKey}` } });
  for (const path of ['/v1/models', '/v1/models/none']) {
    const refused = await list(path);
    assert.equal(refused.status, 503, refused.text);
    assert.match(String(refused.headers['retry-after']), /^\d+$/);
  }
  leaving.abort();
  await first;
  await request.closed;
  for (let i = 0; i < 3; i++) assert.equal((await list('/v1/models')).status, 200);
  assert.equal((await list('/v1/models/none')).status, 404);
  assert.equal((await list('/v1/models')).status, 200);
});
