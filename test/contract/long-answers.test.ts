/** G11: an answer of megabytes that is written in another dialect is written in steps, and says the same. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dialects, readDocument } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { answerIn } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const text = 'é"\\\n🦀 and so on. '.repeat(500_000);

for (const dialect of dialects) {
  const upstream = dialect === 'chat' ? 'messages' : 'chat';
  // A document is asked of a messages upstream as a stream.
  const answer = answerIn(upstream, { text }, upstream === 'messages');
  test(`G11 F35 a long answer for ${dialect} is written in pieces`, async (t) => {
    const { model } = rig.play(upstream, answer);
    const stringify = t.mock.method(JSON, 'stringify');
    const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
    const lengths = stringify.mock.calls.map(({ result }) => String(result).length);
    stringify.mock.restore();
    assert.equal(reply.status, 200);
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
