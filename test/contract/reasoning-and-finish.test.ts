/** Reasoning that must come back byte for byte (requirements.md D). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { listAt, objectAt, textAt } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { chatDocument } from '../upstream/chat.ts';
import { messagesAnswer, messagesDocument, messagesFrames } from '../upstream/messages.ts';
import { replying } from '../upstream/reply.ts';
import { chatText } from './sent.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const user = { role: 'user', content: 'Hello' } as const;

describe('signatures', () => {
  const thought = {
    thinking: 'Let me think.',
    signature: 'c2lnbmF0dXJlIG9mIHRoZSB0aG91Z2h0Kys=',
  } as const;

  test('D1 a chat client that sends reasoning_details back returns them byte for byte', async () => {
    for (const stream of [false, true]) {
      const { model, script } = rig.play(
        'messages',
        messagesAnswer({ text: 'So.', ...thought }, stream),
        replying('messages', { text: 'ok' }),
      );
      const first = await ask(rig, 'chat', requestBody('chat', { model, stream }));
      const details = stream
        ? joinedDetails(first.text)
        : listAt(objectAt(listAt(first.json, 'choices')[0] ?? {}, 'message'), 'reasoning_details');
      assert.equal(details.length, 1, first.text);
      await ask(rig, 'chat', {
        model,
        messages: [user, { role: 'assistant', content: 'So.', reasoning_details: details }, user],
      });
      const turn = listAt(script.requests[1]?.json ?? {}, 'messages')[1] ?? {};
      assert.deepEqual(listAt(turn, 'content')[0], { type: 'thinking', ...thought });
    }
  });

  test('D1 D2 a messages client gets the signature as it was, also without text', async () => {
    for (const thinking of [thought.thinking, '']) {
      const { model } = rig.play('messages', {
        body: messagesFrames({ text: 'So.', thinking, signature: thought.signature }),
      });
      const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: true }));
      assert.ok(reply.text.includes(JSON.stringify(thought.signature)));
    }
  });

  test('D1 reasoning of a chat upstream gets a signature that comes back unharmed', async () => {
    const { model, script } = rig.play(
      'chat',
      { body: JSON.stringify(chatDocument({ text: 'So.', reasoning: 'Hm.' })) },
      replying('chat', { text: 'ok' }),
    );
    const first = await ask(rig, 'messages', requestBody('messages', { model, stream: false }));
    const content = listAt(first.json, 'content');
    assert.equal(content[0]?.['thinking'], 'Hm.');
    assert.ok(textAt(content[0] ?? {}, 'signature') !== '');
    const second = await ask(rig, 'messages', {
      ...requestBody('messages', { model, stream: false }),
      messages: [user, { role: 'assistant', content }, user],
    });
    assert.equal(second.status, 200, second.text);
    for (const message of listAt(script.requests[1]?.json ?? {}, 'messages')) {
      assert.ok(!chatText(message).includes('Hm.'));
    }
  });

  test('§5.4 a signature that the gateway made never reaches a messages upstream', async () => {
    const { model } = rig.play('chat', {
      body: JSON.stringify(chatDocument({ text: 'So.', reasoning: 'Hm.' })),
    });
    const first = await ask(rig, 'messages', requestBody('messages', { model, stream: false }));
    const signature = textAt(listAt(first.json, 'content')[0] ?? {}, 'signature');
    const further = rig.play('messages', {
      body: JSON.stringify(messagesDocument({ text: 'ok' })),
    });
    const reply = await ask(rig, 'messages', {
      ...requestBody('messages', { model: further.model, stream: false }),
      messages: [user, { role: 'assistant', content: first.json['content'] }, user],
    });
    assert.equal(reply.status, 200, reply.text);
    assert.ok(!(further.script.requests[0]?.body.toString() ?? '').includes(signature));
  });
});

/** The entries of `reasoning_details` over a stream, joined by index as clients do. */
function joinedDetails(text: string): readonly JsonObject[] {
  const entries: JsonObject[] = [];
  for (const line of text.split('\n')) {
    const chunk = tryParseObject(line.replace(/^data: /, ''));
    const delta = objectAt(listAt(chunk ?? {}, 'choices')[0] ?? {}, 'delta');
    for (const entry of listAt(delta, 'reasoning_details')) {
      const index = Number(entry['index']);
      const known = entries[index] ?? {};
      entries[index] = { ...known, ...entry, text: textAt(known, 'text') + textAt(entry, 'text') };
    }
  }
  return entries;
}
