/** `limits.streams`: above the cap calls are refused at once, and served again when there is room (G2). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dialects, objectAt } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig({ limits: { streams: 1 } });
});
after(() => rig.stop());

for (const dialect of dialects) {
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
    assert.equal(refused.status, dialect === 'chat' ? 503 : 529, refused.text);
    assert.match(String(refused.headers['retry-after']), /^\d+$/);
    assert.match(String(objectAt(refused.json, 'error')['type']), /overloaded|unavailable/);
    leaving.abort();
    await first;
    await request.closed;
    assert.equal((await ask(rig, dialect, body)).status, 200);
  });
}
