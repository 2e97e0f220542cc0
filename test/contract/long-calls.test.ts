/** G11: requests and answers of megabytes are looked at and written in steps, and say the same. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { halves } from '../property/dialect-halves.ts';
import { dialects, readDocument } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { answerIn, replying } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const text = 'é"\\\n🦀 and so on. '.repeat(500_000);

for (const dialect of dialects) {
  test(`G11 B51 a long ${dialect} request is looked at in steps, a short one at once`, async (t) => {
    const { client } = halves[dialect];
    const [whole, steps] = [
      t.mock.method(client, 'readHead'),
      t.mock.method(client, 'headReading'),
    ];
    for (const [content, stepped] of [
      ['Hello', 0],
      ['Hello '.repeat(200_000), 1],
    ] as const) {
      const { model } = rig.play(dialect, replying(dialect, { text: 'Hi' }));
      const messages = [{ role: 'user', content }];
      const body = requestBody(dialect, { model, stream: false, more: { messages } });
      assert.equal((await ask(rig, dialect, body)).status, 200);
      assert.deepEqual([whole.mock.callCount(), steps.mock.callCount()], [1, stepped]);
    }
  });

  const upstream = dialect === 'chat' ? 'messages' : 'chat';
  // A document is asked of a messages upstream as a stream.
  const answer = answerIn(upstream, { text }, upstream === 'messages');
  test(`G11 F35 a long answer for ${dialect} is written in pieces`, async (t) => {
    const { model } = rig.play(upstream, answer);
    const whole = t.mock.method(halves[dialect].client, 'writeResponse');
    const stringify = t.mock.method(JSON, 'stringify');
    const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
    const lengths = stringify.mock.calls.map(({ result }) => String(result).length);
    stringify.mock.restore();
    assert.equal(reply.status, 200);
    assert.equal(whole.mock.callCount(), 0, 'written in one go');
    assert.ok(readDocument(dialect, reply.json).text === text);
    assert.ok(Math.max(...lengths) < 2_000_000, `${Math.max(...lengths)} characters at once`);
  });

  test(`G11 F72 who leaves while a long answer for ${dialect} is written has canceled it`, async (t) => {
    const { model } = rig.play(upstream, answer);
    const body = JSON.stringify(requestBody(dialect, { model, stream: false }));
    const abort = new AbortController();
    const stringify = JSON.stringify;
    const piece = 400_000;
    t.mock.method(JSON, 'stringify', (value: unknown) => {
      if (typeof value === 'string' && value.length > piece) abort.abort();
      return stringify(value);
    });
    await ask(rig, dialect, body, { signal: abort.signal }).catch(() => undefined);
    const [row] = await rig.gateway.callRows(model, 1);
    assert.equal(row?.['outcome'], 'canceled');
  });
}
