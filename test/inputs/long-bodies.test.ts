/** Bodies that are long enough to be translated in the worker thread arrive as short ones do (G2, G11). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { clientDialects, type UpstreamDialect } from '../support/dialects.ts';
import { listAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { replying } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const usage = { fresh: 9, cacheRead: 0, cacheWrite: 0, output: 3, reasoning: 0 };
/** By many values, and by many bytes. */
const talks: readonly (readonly [string, readonly string[]])[] = [
  ['12,000 turns', Array.from({ length: 12_000 }, (_, i) => `turn ${i}`)],
  ['three turns of 700 KB', ['a', 'b', 'é'].map((letter) => letter.repeat(700_000))],
];

/** Where each client's requests are translated to. */
const upstreams: { readonly [D in (typeof clientDialects)[number]]: UpstreamDialect } = {
  chat: 'messages',
  messages: 'responses',
  responses: 'chat',
};

for (const dialect of clientDialects) {
  for (const stream of [false, true]) {
    for (const [name, texts] of talks) {
      const form = stream ? 'stream' : 'document';
      test(`G11 ${name}, ${dialect}, translated, ${form}`, async () => {
        const upstream = upstreams[dialect];
        const { model, script } = rig.play(upstream, replying(upstream, { text: 'Good.', usage }));
        const messages = texts.map((content, i): JsonObject => {
          return { role: i % 2 === 0 ? 'user' : 'assistant', content };
        });
        if (messages.length % 2 === 0) messages.push({ role: 'user', content: 'last' });
        const body = requestBody(dialect, { model, stream, more: { messages } });
        const reply = await ask(rig, dialect, body);
        assert.equal(reply.status, 200, reply.text);
        const list = upstream === 'responses' ? 'input' : 'messages';
        const sent = listAt((await script.request(0)).json, list);
        assert.deepEqual(
          sent.map((message) => [message['role'], textOf(message['content'])]),
          messages.map(({ role, content }) => [role, content]),
        );
      });
    }
  }
}

function textOf(content: JsonObject['x']): unknown {
  if (!Array.isArray(content)) return content;
  const [first] = content;
  return typeof first === 'object' && first !== null && 'text' in first ? first['text'] : content;
}
