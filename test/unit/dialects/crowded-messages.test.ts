/** Messages of very many parts, calls and results are translated whole. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { ask, halves } from '../../property/dialect-halves.ts';
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
}

const hello: JsonObject = { role: 'user', content: 'hello' };
const shapes: readonly Shape[] = [
  {
    name: '100 results of 100 parts in one message',
    from: 'messages',
    messages: [hello, uses(100), results(100, texts(100))],
  },
  {
    name: '101 messages of 100 parts',
    from: 'messages',
    messages: talk(101, texts(100)),
  },
  {
    name: '101 messages of 100 parts',
    from: 'chat',
    messages: talk(101, texts(100)),
  },
  {
    name: '100 results of 100 parts',
    from: 'chat',
    messages: [
      hello,
      calls(100),
      ...list(100, (i) => ({ role: 'tool', tool_call_id: `t${i}`, content: texts(100) })),
    ],
  },
  {
    name: '10,000 parts of one result',
    from: 'messages',
    messages: [hello, uses(1), results(1, texts(10_000))],
  },
  {
    name: '10,000 parts of one result',
    from: 'chat',
    messages: [hello, calls(1), { role: 'tool', tool_call_id: 't0', content: texts(10_000) }],
  },
  {
    name: '5,000 calls in one message',
    from: 'messages',
    messages: [hello, uses(5000), results(5000, 'x')],
  },
  {
    name: '10,000 parts in one message',
    from: 'chat',
    messages: [{ role: 'user', content: texts(10_000) }],
  },
];

function textsIn(body: JsonObject): readonly string[] | null {
  return JSON.stringify(body).match(/part \d+/g);
}

for (const { name, from, messages } of shapes) {
  test(`${name}, ${from}, are read and written, all of them and in their order`, () => {
    const to = halves[from === 'chat' ? 'messages' : 'chat'];
    const body = { model: 'm', max_tokens: 9, messages };
    const notes = new NoteList();
    assert.equal(halves[from].client.readHead(body).model, 'm');
    const read = halves[from].client.readRequest(body, notes);
    const written = to.upstream.writeRequest(read, ask(to), notes);
    assert.deepEqual(textsIn(written), textsIn(body));
  });
}
