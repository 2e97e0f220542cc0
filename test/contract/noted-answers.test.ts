/** D3: what of an answer no other API can show is noted where the answer is translated, and only there. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { chatChunk, chatDocument, chatDone, chatFrame } from '../upstream/chat.ts';
import type { Answer } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const document: JsonObject = { ...chatDocument({ text: 'Hello' }), made_up: { a: 1 } };
const note = 'made_up: dropped, only its provider knows it';

/** The unknown member is in the last chunk. */
const streamed: Answer = {
  body: [
    chatFrame(chatChunk({ role: 'assistant', content: 'Hello' })),
    chatFrame({ ...chatChunk({}, 'stop'), made_up: { a: 1 } }),
    chatDone,
  ],
  framing: 'chunked',
};

for (const client of ['chat', 'messages', 'responses'] as const) {
  const isRelayed = client === 'chat';

  test(`D3 a document to a ${client} client`, async () => {
    const { model } = rig.play('chat', { body: JSON.stringify(document) });
    const reply = await ask(rig, client, requestBody(client, { model, stream: false }));
    assert.equal(reply.headers['x-gateway-notes'], isRelayed ? undefined : note);
    assert.equal(reply.text.includes('made_up'), isRelayed);
  });

  test(`D3 a document of 2 MiB to a ${client} client, which a thread reads`, async () => {
    const long = { ...document, made_up: 'x'.repeat(2 * 1024 * 1024) };
    const { model } = rig.play('chat', { body: JSON.stringify(long) });
    const reply = await ask(rig, client, requestBody(client, { model, stream: false }));
    assert.equal(reply.headers['x-gateway-notes'], isRelayed ? undefined : note);
  });

  test(`D3 a stream to a ${client} client: the record of the call has the note`, async () => {
    const { model } = rig.play('chat', streamed);
    const reply = await ask(rig, client, requestBody(client, { model, stream: true }));
    const call = await rig.gateway.callRow(String(reply.headers['x-request-id']));
    const expected = 'made_up: dropped, only its provider knows it';
    assert.equal(call['notes'] ?? '', isRelayed ? '' : expected);
    assert.equal(reply.text.includes('made_up'), isRelayed);
  });

  test(`D3 a stream that a ${client} client gets as a document`, async () => {
    const { model } = rig.play('chat', streamed);
    const reply = await ask(rig, client, requestBody(client, { model, stream: false }));
    assert.equal(reply.headers['x-gateway-notes'], note);
  });
}
