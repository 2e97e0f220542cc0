/** F46, F52: what is torn off behind the answer, and bytes that are no text in a document. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dialects } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatDocument, chatFrames } from '../upstream/chat.ts';
import { messagesDocument, messagesFrames } from '../upstream/messages.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const terminators = { chat: 'data: [DONE]\n\n', messages: 'event: message_stop\n' } as const;

for (const dialect of dialects) {
  test(`F52 ${dialect}: an upstream that is cut within the name of its last line has ended well`, async () => {
    const frames = (dialect === 'chat' ? chatFrames : messagesFrames)({ text: 'Good day.' });
    for (const torn of ['da', 'data', 'event', 'event: mess', ':']) {
      const body = frames.slice(0, -1).join('') + torn;
      const headers = { 'content-type': 'text/event-stream' };
      const { model } = rig.play(dialect, { body, headers, framing: 'close' });
      const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
      assert.ok(reply.text.includes(`\n\n${terminators[dialect]}`), `${torn}: ${reply.text}`);
    }
  });

  test(`F46 ${dialect}: a document whose bytes are no UTF-8 is not passed on`, async () => {
    const text = 'Good \u00ff day.';
    const document = dialect === 'chat' ? chatDocument({ text }) : messagesDocument({ text });
    const body = Buffer.from(JSON.stringify(document), 'latin1');
    const { model } = rig.play(dialect, { body });
    const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
    assert.equal(reply.status, 502, reply.text);
  });
}
