/** Streams that turn out to be broken only when they end: by a close, a reset, or a timer (F45, F46, F59). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { clientDialects } from '../support/dialects.ts';
import { endingOf } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { chatChunk, chatFrame } from '../upstream/chat.ts';
import type { Answer } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const endings = ['proper', 'reset', 'hang'] as const;
const pause = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 100));

/** A call whose arguments break off, and a finish; never a word about usage. */
const brokenCall = [
  chatChunk({
    role: 'assistant',
    tool_calls: [
      { index: 0, id: 'call_a', type: 'function', function: { name: 'f', arguments: '{"x":' } },
    ],
  }),
  chatChunk({}, 'tool_calls'),
].map((chunk) => chatFrame(chunk));

const finished = [chatChunk({ role: 'assistant', content: 'Hi' }), chatChunk({}, 'stop')].map(
  (chunk) => chatFrame(chunk),
);

for (const ending of endings) {
  describe(`the upstream ends by ${ending}`, () => {
    test('F59 tool arguments that are no object end a translated stream in an error', async () => {
      const answer: Answer = { body: [...brokenCall, pause()], framing: 'chunked', ending };
      const { model } = rig.play('chat', answer);
      const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: true }));
      assert.equal(endingOf('messages', reply.text), 'error', reply.text);
      const [row] = await rig.gateway.callRows(model, 1);
      assert.equal(row?.['outcome'], 'failed');
    });

    for (const dialect of clientDialects) {
      test(`F46 bytes behind the finish that are no text, ${dialect}`, async () => {
        const body = [...finished, Buffer.from([0x64, 0xff, 0xfe]), pause()];
        const { model } = rig.play('chat', { body, framing: 'chunked', ending });
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
        assert.equal(endingOf(dialect, reply.text), 'error', reply.text);
        const rows = await rig.gateway.callRows(model, 1);
        assert.deepEqual(
          rows.map((row) => row['outcome']),
          ['failed'],
        );
      });
    }
  });
}
