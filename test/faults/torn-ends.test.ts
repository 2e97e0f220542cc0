/** F46, F52: what is torn off behind the answer, and bytes that are no text in a document. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dialects, endingOf } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatChunk, chatDocument, chatFrame, chatFrames } from '../upstream/chat.ts';
import {
  blockDelta,
  messagesDocument,
  messagesFrame,
  messagesFrames,
} from '../upstream/messages.ts';
import { begun, stream } from './stream-pieces.ts';

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

  for (const upstream of dialects) {
    const mode = dialect === upstream ? 'relay' : 'translate';
    test(`F45 ${dialect}, ${mode}: what one read brought before a broken event is the client's`, async () => {
      const seen = Promise.withResolvers<void>();
      const more =
        upstream === 'chat'
          ? chatFrame(chatChunk({ content: 'And more.' }))
          : messagesFrame(blockDelta(0, { type: 'text_delta', text: 'And more.' }));
      const { model } = rig.play(
        upstream,
        stream(begun(upstream), seen.promise, `${more}data: {\n\n`),
      );
      const body = requestBody(dialect, { model, stream: true });
      const reply = await ask(rig, dialect, body, { onData: () => seen.resolve() });
      assert.ok(reply.text.includes('And more.'), reply.text);
      assert.equal(endingOf(dialect, reply.text), 'error', reply.text);
    });
  }

  test(`F46 ${dialect}: a document whose bytes are no UTF-8 is not passed on`, async () => {
    const text = 'Good \u00ff day.';
    const document = dialect === 'chat' ? chatDocument({ text }) : messagesDocument({ text });
    const body = Buffer.from(JSON.stringify(document), 'latin1');
    const { model } = rig.play(dialect, { body });
    const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false }));
    assert.equal(reply.status, 502, reply.text);
  });
}
