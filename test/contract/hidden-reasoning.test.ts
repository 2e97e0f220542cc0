/**
 * Claude Code asks for `display: "omitted"`. The text of reasoning is then not shown, yet an upstream
 * that wants it back must get it (requirements.md D1, D6).
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/core/conversation.ts';
import { tryParseObject } from '../../src/core/json.ts';
import { NoteList } from '../../src/core/notes.ts';
import { chatTraits } from '../../src/core/traits.ts';
import { anthropicMessagesClient } from '../../src/dialects/anthropic-messages/client.ts';
import { openaiChatUpstream } from '../../src/dialects/openai-chat/upstream.ts';
import { framesOf, listAt, objectAt, textAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { chatAnswer } from '../upstream/chat.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const thought = 'First the weather, 你好🦀, then the rest.';
const call = { id: 'call_1', name: 'f', arguments: '{}' };
const hidden = { thinking: { type: 'adaptive', display: 'omitted' } };

/** The thinking block that the client gets. */
async function hiddenThinking(stream: boolean): Promise<JsonObject> {
  const { model } = rig.play('chat', chatAnswer({ reasoning: thought, calls: [call] }, stream));
  const body = requestBody('messages', { model, stream, more: hidden });
  const reply = await ask(rig, 'messages', body);
  assert.ok(!reply.text.includes(thought));
  if (!stream) return listAt(reply.json, 'content')[0] ?? {};
  const deltas = framesOf(reply.text).map((frame) =>
    objectAt(tryParseObject(frame.data) ?? {}, 'delta'),
  );
  assert.ok(!deltas.some((delta) => delta['type'] === 'thinking_delta'));
  const signed = deltas.find((delta) => delta['type'] === 'signature_delta');
  return { type: 'thinking', thinking: '', signature: textAt(signed ?? {}, 'signature') };
}

for (const stream of [false, true]) {
  test(`D6 hidden reasoning goes back to the upstream that wants it, stream: ${stream}`, async () => {
    const block = await hiddenThinking(stream);
    assert.equal(block['thinking'], '');
    const notes = new NoteList();
    const conversation = anthropicMessagesClient.readRequest(
      {
        model: 'm',
        max_tokens: 5,
        messages: [
          { role: 'user', content: 'Hello' },
          {
            role: 'assistant',
            content: [block, { type: 'tool_use', id: call.id, name: call.name, input: {} }],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id }] },
        ],
      },
      notes,
    );
    const traits = { ...chatTraits, reasoningReplay: true };
    const newId = () => assert.fail('no random ids in requests');
    const asked = { model: 'm', stream: false, traits, newId };
    const written = openaiChatUpstream.writeRequest(conversation, asked, notes);
    assert.equal(listAt(written, 'messages')[1]?.['reasoning_content'], thought);
  });
}
