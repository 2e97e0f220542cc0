/**
 * Claude Code asks for `display: "omitted"`. The text of reasoning is then not shown, yet an upstream
 * that wants it back must get it (requirements.md D1, D6).
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { send } from '../support/http.ts';
import { framesOf, listAt, objectAt, textAt } from '../support/reading.ts';
import { endpointOf } from '../support/requests.ts';
import { chatAnswer } from '../upstream/chat.ts';
import { messagesBody, question } from './histories.ts';
import { startStage, type Stage } from './stage.ts';

let stage: Stage;
before(async () => {
  stage = await startStage();
});
after(() => stage.stop());

const thought = 'First the weather, 你好🦀, then the rest.';
const call = { id: 'call_1', name: 'f', arguments: '{}' };

/** The thinking block that the client gets. */
async function hiddenThinking(body: JsonObject): Promise<JsonObject> {
  const reply = await send(stage.url() + endpointOf.messages, body);
  assert.ok(!reply.text.includes(thought));
  if (body['stream'] !== true) return listAt(reply.json, 'content')[0] ?? {};
  const deltas = framesOf(reply.text).map((frame) =>
    objectAt(tryParseObject(frame.data) ?? {}, 'delta'),
  );
  assert.ok(!deltas.some((delta) => delta['type'] === 'thinking_delta'));
  const signed = deltas.find((delta) => delta['type'] === 'signature_delta');
  return { type: 'thinking', thinking: '', signature: textAt(signed ?? {}, 'signature') };
}

for (const stream of [false, true]) {
  for (const restarted of [false, true]) {
    test(`D6 hidden reasoning goes back to the upstream that wants it, stream: ${stream}, restarted: ${restarted}`, async () => {
      const name = `hidden-${stream}-${restarted}`;
      const first = chatAnswer({ reasoning: thought, calls: [call] }, stream);
      const script = stage.chat.script(name, first, chatAnswer({ text: 'ok' }, false));
      const model = `deepseek/${name}`;
      const thinking = { type: 'adaptive', display: 'omitted' };
      const asked = { ...messagesBody(model), thinking };
      const block = await hiddenThinking(stream ? { ...asked, stream } : asked);
      assert.equal(block['thinking'], '');
      if (restarted) await stage.restart();
      const used = { type: 'tool_use', id: call.id, name: call.name, input: {} };
      const result = { type: 'tool_result', tool_use_id: call.id, content: 'noon' };
      const messages = [
        question,
        { role: 'assistant', content: [block, used] },
        { role: 'user', content: [result] },
      ];
      const reply = await send(stage.url() + endpointOf.messages, { ...asked, messages });
      assert.equal(reply.status, 200, reply.text);
      const sent = listAt(script.requests[1]?.json ?? {}, 'messages');
      assert.equal(sent[1]?.['reasoning_content'], thought);
    });
  }
}
