/** G11: requests and answers of megabytes are read and written in the worker thread, and say the same. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { halves } from '../property/dialect-halves.ts';
import { clientDialects } from '../support/dialects.ts';
import { readDocument } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { answerIn, replying } from '../upstream/reply.ts';

type Given = Parameters<Worker['postMessage']>;

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const text = 'é"\\\n🦀 and so on. '.repeat(500_000);

for (const dialect of clientDialects) {
  test(`G11 B51 a long ${dialect} request is looked at off the event loop, a short one on it`, async (t) => {
    const head = t.mock.method(halves[dialect].client, 'readHead');
    for (const [content, calls] of [
      ['Hello', 1],
      ['Hello '.repeat(200_000), 1],
    ] as const) {
      const { model } = rig.play(dialect, replying(dialect, { text: 'Hi' }));
      const messages = [{ role: 'user', content }];
      const body = requestBody(dialect, { model, stream: false, more: { messages } });
      assert.equal((await ask(rig, dialect, body)).status, 200);
      assert.equal(head.mock.callCount(), calls);
    }
  });

  const upstream = dialect === 'chat' ? 'messages' : 'chat';
  // A document is asked of a messages upstream as a stream.
  const answer = answerIn(upstream, { text }, upstream === 'messages');
  test(`G11 F35 a long answer for ${dialect} is written off the event loop`, async (t) => {
    const { model } = rig.play(upstream, answer);
    const whole = t.mock.method(halves[dialect].client, 'writeResponse');
    const stringify = t.mock.method(JSON, 'stringify');
    const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
    const lengths = stringify.mock.calls.map(({ result }) => String(result).length);
    stringify.mock.restore();
    assert.equal(reply.status, 200);
    assert.equal(whole.mock.callCount(), 0, 'written here');
    assert.ok(readDocument(dialect, reply.json).text === text);
    assert.ok(Math.max(...lengths) < 2_000_000, `${Math.max(...lengths)} characters at once`);
  });

  test(`G11 F72 a client that leaves while a long answer for ${dialect} is written has canceled it`, async (t) => {
    const { model } = rig.play(upstream, answer);
    const body = JSON.stringify(requestBody(dialect, { model, stream: false }));
    const abort = new AbortController();
    const { postMessage } = Worker.prototype;
    t.mock.method(Worker.prototype, 'postMessage', function post(this: Worker, ...given: Given) {
      const [message] = given;
      if (Reflect.get(message, 'name') === 'answer') abort.abort();
      postMessage.apply(this, given);
    });
    await ask(rig, dialect, body, { signal: abort.signal }).catch(() => undefined);
    const [row] = await rig.gateway.callRows(model, 1);
    assert.equal(row?.['outcome'], 'canceled');
  });
}
