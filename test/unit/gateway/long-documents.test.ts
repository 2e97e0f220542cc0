/** G11 F35: a long document of an upstream is read as a short one is, and not in one go. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/core/conversation.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { isObject } from '../../../src/core/json.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { AnswerBody } from '../../../src/gateway/answer-body.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import { answerContext, halves } from '../../property/dialect-halves.ts';
import { chatDocument } from '../../upstream/chat.ts';

const provider = createHttpProvider({ id: 'p', dialect: 'openai-chat', baseUrl: 'http://h/v1' });

function read(text: string | Buffer) {
  const body = new AnswerBody();
  body.add(Buffer.from(text));
  return body.document(provider, chatTraits);
}

/** 4 MB of what stands beside the answer, with what readers could get wrong. */
const beside = Array.from({ length: 4000 }, (_, i): JsonObject => {
  return { id: i, text: `"${'é'.repeat(500)}\\`, odd: ['a,b', '}', { '': [] }], long: i / 3 };
});
const document: JsonObject = { ...chatDocument({ text: 'Hello' }), beside };
const whole = 1_000_000;

test('G11 a document of 4 MB is parsed in parts, and is what it says', async (t) => {
  const text = JSON.stringify(document);
  const parse = t.mock.method(JSON, 'parse');
  const answer = await read(text);
  const lengths = parse.mock.calls.map(({ arguments: [part] }) => part.length);
  parse.mock.restore();
  assert.ok(Math.max(...lengths) < whole, `${Math.max(...lengths)} characters at once`);
  assert.deepEqual(answer.body, JSON.parse(text));
  assert.deepEqual(
    answer.generation,
    (await read(JSON.stringify(chatDocument({ text: 'Hello' })))).generation,
  );
});

test('G11 a document that is one string is parsed in pieces, and is what it says', async (t) => {
  for (const shift of ['', 'x']) {
    const text = `${shift}é"\\\n🦀\u0001 and so on`.repeat(200_000);
    const written = JSON.stringify(chatDocument({ text: `${text}\ud83e` }));
    const parse = t.mock.method(JSON, 'parse');
    const answer = await read(written);
    const lengths = parse.mock.calls.map(({ arguments: [part] }) => part.length);
    parse.mock.restore();
    assert.ok(Math.max(...lengths) < 2 * whole, `${Math.max(...lengths)} characters at once`);
    const [part] = answer.generation.parts;
    assert.ok(part?.type === 'text' && part.text === `${text}\ud83e`);
  }
});

test('G11 a document with more values than are parsed in parts is read all the same', async () => {
  const many = `${JSON.stringify(chatDocument({ text: 'Hello' })).slice(0, -1)},"x":[${'1,'.repeat(600_000)}1]}`;
  const answer = await read(many);
  assert.deepEqual(answer.body, JSON.parse(many));
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
    test(`G11 F55 a long ${dialect} document whose usage is ${usage} is relayed without parsing or writing it again`, async (t) => {
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
      const answer = await body.document(from, { ...chatTraits, ...traits });
      const parse = t.mock.method(JSON, 'parse');
      const stringify = t.mock.method(JSON, 'stringify');
      const counted = { freshInputTokens: 3, outputTokens: 4 };
      const relayed = client.answerRelay(answerContext('alias')).document(answer, counted);
      const parsed = parse.mock.callCount();
      const lengths = stringify.mock.calls.map(({ result }) => String(result).length);
      t.mock.restoreAll();
      assert.equal(parsed, 0);
      assert.ok(Math.max(...lengths) < 1000, `${Math.max(...lengths)} characters written`);
      const { usage: told, ...others } = JSON.parse(relayed.toString());
      assert.ok(isObject(told) && Object.values(told).includes(4), JSON.stringify(told));
      const { usage: _none, ...same } = long;
      assert.deepEqual(others, { ...same, model: 'alias' });
    });
  }
}
