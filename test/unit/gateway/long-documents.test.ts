/** G11 F35: a long document of an upstream is read as a short one is, in the worker thread. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { AnswerBody } from '../../../src/gateway/answer/answer-body.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import { answerContext, halves } from '../../property/dialect-halves.ts';
import { chatDocument } from '../../upstream/chat.ts';
import { writeLongAnswer } from '../../../src/gateway/handle.ts';
import { InlineBodies } from '../../support/inline-bodies.ts';

const provider = createHttpProvider({ id: 'p', dialect: 'openai-chat', baseUrl: 'http://h/v1' });

const bodies = new InlineBodies();
const reading = { bodies, wanted: () => true };

function read(text: string | Buffer) {
  const body = new AnswerBody();
  body.add(Buffer.from(text));
  return body.document(provider, chatTraits, reading);
}

/** 4 MB of what stands beside the answer, with what readers could get wrong. */
const beside = Array.from({ length: 4000 }, (_, i): JsonObject => {
  return { id: i, text: `"${'é'.repeat(500)}\\`, odd: ['a,b', '}', { '': [] }], long: i / 3 };
});
const document: JsonObject = { ...chatDocument({ text: 'Hello' }), beside };
test('G11 a document of 4 MB is a job of the thread, and says what it says', async (t) => {
  const run = t.mock.method(bodies, 'run');
  const answer = await read(JSON.stringify(document));
  assert.deepEqual(
    run.mock.calls.map(({ arguments: [name] }) => name),
    ['read'],
  );
  assert.equal(answer.body, undefined);
  assert.deepEqual(
    answer.generation,
    (await read(JSON.stringify(chatDocument({ text: 'Hello' })))).generation,
  );
});

test('G11 a document that is one string is what it says', async () => {
  const text = `é"\\\n🦀\u0001 and so on`.repeat(200_000);
  const answer = await read(JSON.stringify(chatDocument({ text: `${text}\ud83e` })));
  const [part] = answer.generation.parts;
  assert.ok(part?.type === 'text' && part.text === `${text}\ud83e`);
});

test('G11 a document with more values than any request is read nevertheless', async () => {
  const many = `${JSON.stringify(chatDocument({ text: 'Hello' })).slice(0, -1)},"x":[${'1,'.repeat(600_000)}1]}`;
  const answer = await read(many);
  assert.equal(answer.generation.parts.length, 1);
});

test('F25 F46 a long document that is none is refused', async () => {
  const text = JSON.stringify(document);
  const wrong = [
    text.slice(0, -1),
    `[${text}]`,
    `${text}x`,
    Buffer.from(text.replace('é', '\xff'), 'latin1'),
  ];
  for (const each of wrong) {
    await assert.rejects(
      async () => read(each),
      (error) => error instanceof GatewayError && error.code === 'upstream_invalid',
    );
  }
});

for (const dialect of ['chat', 'messages'] as const) {
  for (const usage of [undefined, null]) {
    test(`G11 F55 a long ${dialect} document whose usage is ${usage} is relayed with a usage, and everything else as it was`, async () => {
      const { client, traits } = halves[dialect];
      const generation = { id: 'x', model: 'own', parts: [], finish: { kind: 'stop' } } as const;
      const { usage: _usage, ...rest } = client.writeResponse(generation, answerContext());
      const long = { ...rest, model: 'own', beside, ...(usage === null ? { usage } : {}) };
      const from = createHttpProvider({
        id: 'p',
        dialect: dialect === 'chat' ? 'openai-chat' : 'anthropic-messages',
        baseUrl: 'http://h/v1',
      });
      const body = new AnswerBody();
      body.add(Buffer.from(JSON.stringify(long)));
      const { bytes } = await body.document(from, { ...chatTraits, ...traits }, reading);
      const relayed = await writeLongAnswer(bodies, {
        client: client.id,
        context: answerContext('alias'),
        document: bytes,
        make: { from: 'relay', gap: { freshInputTokens: 3, outputTokens: 4 } },
      });
      const { usage: told, ...others } = JSON.parse(relayed.toString());
      assert.ok(isObject(told) && Object.values(told).includes(4), JSON.stringify(told));
      const { usage: _none, ...same } = long;
      assert.deepEqual(others, { ...same, model: 'alias' });
    });
  }
}
