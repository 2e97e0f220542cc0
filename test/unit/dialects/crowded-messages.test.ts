/** G11: what counts for a step is all that stands in a message, not the messages: few may hold very much. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, Part } from '../../../src/core/conversation.ts';
import type { Generation } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { perStep, type Steps } from '../../../src/core/steps.ts';
import { answerContext, ask, halves } from '../../property/dialect-halves.ts';
import type { Dialect } from '../../support/reading.ts';

const list = <T>(length: number, make: (i: number) => T): readonly T[] =>
  Array.from({ length }, (_, i) => make(i));
const texts = (count: number): readonly JsonObject[] =>
  list(count, (j) => ({ type: 'text', text: `part ${j}` }));
const uses = (count: number): JsonObject => ({
  role: 'assistant',
  content: list(count, (i) => ({ type: 'tool_use', id: `t${i}`, name: 'f', input: { a: i } })),
});
const results = (count: number, content: JsonObject['x']): JsonObject => ({
  role: 'user',
  content: list(count, (i) => ({
    type: 'tool_result',
    tool_use_id: `t${i}`,
    ...(content === undefined ? {} : { content }),
  })),
});
const calls = (count: number): JsonObject => ({
  role: 'assistant',
  content: null,
  tool_calls: list(count, (i) => ({
    type: 'function',
    id: `t${i}`,
    function: { name: 'f', arguments: '{"a":1}' },
  })),
});
const talk = (count: number, content: JsonObject['x']): readonly JsonObject[] =>
  list(count, (i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    ...(content === undefined ? {} : { content }),
  }));

interface Shape {
  readonly name: string;
  readonly from: Dialect;
  readonly messages: readonly JsonObject[];
  /** How much there is to be read, and to be written. */
  readonly pieces: readonly [number, number];
}

const hello: JsonObject = { role: 'user', content: 'hello' };
const shapes: readonly Shape[] = [
  {
    name: '100 results of 100 parts in one message',
    from: 'messages',
    messages: [hello, uses(100), results(100, texts(100))],
    pieces: [10_000, 10_000],
  },
  {
    name: '101 messages of 100 parts',
    from: 'messages',
    messages: talk(101, texts(100)),
    pieces: [10_000, 5000],
  },
  {
    name: '101 messages of 100 parts',
    from: 'chat',
    messages: talk(101, texts(100)),
    pieces: [10_000, 10_000],
  },
  {
    name: '100 results of 100 parts',
    from: 'chat',
    messages: [
      hello,
      calls(100),
      ...list(100, (i) => ({ role: 'tool', tool_call_id: `t${i}`, content: texts(100) })),
    ],
    pieces: [10_000, 10_000],
  },
  {
    name: '10,000 parts of one result',
    from: 'messages',
    messages: [hello, uses(1), results(1, texts(10_000))],
    pieces: [10_000, 10_000],
  },
  {
    name: '10,000 parts of one result',
    from: 'chat',
    messages: [hello, calls(1), { role: 'tool', tool_call_id: 't0', content: texts(10_000) }],
    pieces: [10_000, 10_000],
  },
  {
    name: '5,000 calls in one message',
    from: 'messages',
    messages: [hello, uses(5000), results(5000, 'x')],
    pieces: [10_000, 20_000],
  },
  {
    name: '10,000 parts in one message',
    from: 'chat',
    messages: [{ role: 'user', content: texts(10_000) }],
    pieces: [10_000, 10_000],
  },
];

function counted<T>(steps: Steps<T>): { readonly value: T; readonly count: number } {
  for (let count = 1; ; count += 1) {
    const step = steps.next();
    if (step.done === true) return { value: step.value, count };
  }
}

function textsIn(body: JsonObject): readonly string[] | null {
  return JSON.stringify(body).match(/part \d+/g);
}

for (const from of ['chat', 'messages'] as const) {
  test(`G11 a ${from} request of 10,000 messages is looked at in steps, and refused as at once`, () => {
    const { client } = halves[from];
    const body = { model: 'm', max_tokens: 9, messages: talk(10_000, 'x') };
    const looked = counted(client.headReading(body));
    assert.deepEqual(looked.value, client.readHead(body));
    assert.ok(looked.count > 10_000 / (2 * perStep), `in ${looked.count} steps`);
    const wrong = { ...body, messages: [...body.messages, { role: 'nobody' }], tools: 'none' };
    let refusal: unknown;
    assert.throws(
      () => client.readHead(wrong),
      (error) => (refusal = error) !== undefined,
    );
    assert.throws(
      () => counted(client.headReading(wrong)),
      (error) => {
        assert.deepEqual(error, refusal);
        return true;
      },
    );
  });
}

/** A document that is made of blocks, where those stand in a result, too. */
const documents: Shape = {
  name: '10,000 parts of a document in a result',
  from: 'messages',
  messages: [
    hello,
    uses(1),
    results(1, [{ type: 'document', source: { type: 'content', content: texts(10_000) } }]),
  ],
  pieces: [10_000, 0],
};

/** The same messages with a fault at the end of what is longest in them. */
function faulty(messages: readonly JsonObject[]): readonly JsonObject[] {
  const text = JSON.stringify(messages);
  const at = text.lastIndexOf('"text":"part ');
  if (at === -1) return [...messages, { role: 'nobody' }];
  const end = text.indexOf('}', at);
  const broken = JSON.parse(`[${text.slice(0, at)}"text":7${text.slice(end)}]`);
  return broken[0];
}

function refusal(look: () => unknown): unknown {
  try {
    look();
  } catch (error) {
    return error;
  }
  return assert.fail('it was not refused');
}

for (const { name, from, messages, pieces } of [...shapes, documents]) {
  test(`G11 ${name}, ${from}, are looked at in as many steps as they hold, and refused as at once`, () => {
    const { client } = halves[from];
    const body = { model: 'm', max_tokens: 9, messages };
    const looked = counted(client.headReading(body));
    assert.deepEqual(looked.value, client.readHead(body));
    assert.ok(looked.count >= Math.floor(pieces[0] / (2 * perStep)), `in ${looked.count} steps`);
    const wrong = { ...body, messages: faulty(messages) };
    assert.deepEqual(
      refusal(() => counted(client.headReading(wrong))),
      refusal(() => client.readHead(wrong)),
    );
  });
}

for (const { name, from, messages, pieces } of shapes) {
  test(`G11 ${name}, ${from}, are read and written in as many steps as they hold`, () => {
    const to = halves[from === 'chat' ? 'messages' : 'chat'];
    const body = { model: 'm', max_tokens: 9, messages };
    const notes = new NoteList();
    const read = counted(halves[from].client.requestReading(body, notes));
    const written = counted(to.upstream.requestWriting(read.value, ask(to), notes));
    const [most, mostWritten] = pieces.map((count) => Math.floor(count / (2 * perStep)));
    assert.ok(read.count >= (most ?? 0), `read in ${read.count} steps`);
    assert.ok(written.count >= (mostWritten ?? 0), `written in ${written.count} steps`);
    assert.deepEqual(textsIn(written.value), textsIn(body), 'all of it, in its order');
  });
}

for (const to of ['messages', 'chat'] as const) {
  test(`G11 the arguments of 500 calls of an answer are read and written in steps for ${to}, and the same`, () => {
    const from = to === 'chat' ? 'messages' : 'chat';
    const { upstream, traits } = halves[from];
    const input = Object.fromEntries(list(100, (i) => [`member ${i}`, i]));
    const parts = list(500, (i): Part => {
      const argumentsJson = JSON.stringify({ ...input, i });
      return { type: 'tool-call', id: `t${i}`, name: 'f', argumentsJson };
    });
    const finish = { kind: 'tool-calls' } as const;
    const generation: Generation = { id: 'x', model: 'm', parts, finish };
    const body = halves[from].client.writeResponse(generation, answerContext());
    const read = counted(upstream.responseReading(body, traits));
    assert.deepEqual(read.value, upstream.readResponse(body, traits));
    const written = counted(halves[to].client.responseWriting(read.value, answerContext()));
    assert.deepEqual(written.value, halves[to].client.writeResponse(read.value, answerContext()));
    for (const count of [read.count, written.count]) assert.ok(count >= 8, `in ${count} steps`);
  });
}
