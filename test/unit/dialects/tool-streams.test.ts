import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { tryParse } from '../../../src/json/parse.ts';
import { assertLegalStream } from '../../support/legality.ts';
import { eventsOf, streamed, translate } from './translating.ts';

const asked = translate('messages', { messages: [{ role: 'user', content: 'hi' }] });
const chunk = (delta: JsonObject, finish: string | null = null): JsonObject => ({
  id: 'c',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const calls = (...list: readonly JsonObject[]): JsonObject => chunk({ tool_calls: list });
const named = (index: number, name: string, args = ''): JsonObject => ({
  index,
  id: `call_${name}`,
  type: 'function',
  function: { name, arguments: args },
});
const more = (index: number, args: string): JsonObject => ({
  index,
  function: { arguments: args },
});
const end = chunk({}, 'tool_calls');

interface Block {
  readonly type: Json | undefined;
  readonly name?: Json | undefined;
  readonly text: string;
}

/** The blocks of a stream with what their deltas say together. */
function blocksOf(stream: string): readonly Block[] {
  const blocks: { type: Json | undefined; name?: Json | undefined; text: string }[] = [];
  for (const event of eventsOf(stream)) {
    const { content_block: block, delta } = event;
    if (isObject(block)) {
      const name = block['name'];
      blocks.push({ type: block['type'], ...(name === undefined ? {} : { name }), text: '' });
    }
    const last = blocks.at(-1);
    if (event['type'] !== 'content_block_delta' || !isObject(delta) || last === undefined) continue;
    const piece = delta['text'] ?? delta['partial_json'] ?? delta['thinking'];
    if (typeof piece === 'string') last.text += piece;
  }
  return blocks;
}

function play(
  frames: readonly JsonObject[],
  traits: Parameters<typeof streamed>[3] = {},
): readonly Block[] {
  const stream = streamed('messages', asked, frames, traits);
  assertLegalStream('messages', stream, false);
  return blocksOf(stream);
}

const tool = (name: string, text: string): Block => ({ type: 'tool_use', name, text });
const said = (text: string): Block => ({ type: 'text', text });

describe('streams of calls for messages clients', () => {
  const rows: readonly (readonly [string, readonly JsonObject[], readonly Block[]])[] = [
    [
      'B1 fragments of two calls by turns',
      [
        calls(named(0, 'a', '{"x"'), named(1, 'b', '{"y"')),
        calls(more(0, ':1'), more(1, ':2')),
        calls(more(1, '}'), more(0, '}')),
        end,
      ],
      [tool('a', '{"x":1}'), tool('b', '{"y":2}')],
    ],
    [
      'B6 the id in each delta',
      [calls(named(0, 'a', '{"x":')), calls({ ...more(0, '1}'), id: 'call_a' }), end],
      [tool('a', '{"x":1}')],
    ],
    [
      'B6 another id in each delta, without a name',
      [
        calls(named(0, 'a', '{"x":')),
        calls({ ...more(0, '1'), id: 'call_r1' }),
        calls({ ...more(0, '}'), id: 'call_r2' }),
        end,
      ],
      [tool('a', '{"x":1}')],
    ],
    [
      'B10 two calls at index 0, arguments as objects, finish stop',
      [
        chunk({
          tool_calls: [
            { index: 0, id: '1', function: { name: 'a', arguments: { x: 1 } } },
            { index: 0, id: '2', function: { name: 'b', arguments: { y: 2 } } },
          ],
        }),
        chunk({}, 'stop'),
      ],
      [tool('a', '{"x":1}'), tool('b', '{"y":2}')],
    ],
    [
      'C2 a line break between calls is no block',
      [
        calls(named(0, 'a', '{}')),
        chunk({ content: '\n' }),
        chunk({ content: '\n' }),
        calls(named(1, 'b', '{}')),
        end,
      ],
      [tool('a', '{}'), tool('b', '{}')],
    ],
    [
      'C2 text between calls is one, with the line breaks before it',
      [
        calls(named(0, 'a', '{}')),
        chunk({ content: '\n' }),
        chunk({ content: 'and' }),
        calls(named(1, 'b', '{}')),
        end,
      ],
      [tool('a', '{}'), said('\nand'), tool('b', '{}')],
    ],
    [
      'C1 the first delta in the chunk that opens, text → call → text',
      [chunk({ content: 'A' }), calls(named(0, 'a', '{"x":1}')), chunk({ content: 'B' }), end],
      [said('A'), tool('a', '{"x":1}'), said('B')],
    ],
    [
      'C3 text while a call is open waits for its end',
      [calls(named(0, 'a', '{"x"')), chunk({ content: 'B' }), calls(more(0, ':1}')), end],
      [tool('a', '{"x":1}'), said('B')],
    ],
    ['no arguments at all are an empty object', [calls(named(0, 'a')), end], [tool('a', '')]],
    [
      'white space before the arguments',
      [calls(named(0, 'a', ' \n')), calls(more(0, ' {"x"')), calls(more(0, ':1}')), end],
      [tool('a', ' \n {"x":1}')],
    ],
    [
      '§3.6 arguments that are another value are held and wrapped',
      [calls(named(0, 'a', '[1')), calls(more(0, ',2]')), end],
      [tool('a', '{"value":[1,2]}')],
    ],
  ];
  for (const [what, frames, blocks] of rows) {
    test(what, () => assert.deepEqual(play(frames), blocks));
  }

  const buffered: readonly (readonly [string, string, string])[] = [
    ['whole', '{"x": 1}', '{"x": 1}'],
    ['broken', '{"x": 1', '{"_raw":"{\\"x\\": 1"}'],
    ['no object', '7', '{"value":7}'],
    ['none', '', ''],
  ];
  for (const [what, sent, shown] of buffered) {
    test(`§3.6 bufferToolArguments: ${what}`, () => {
      const pieces = [...sent].map((piece) => calls(more(0, piece)));
      const frames = [calls(named(0, 'a')), ...pieces, end];
      assert.deepEqual(play(frames, { bufferToolArguments: true }), [tool('a', shown)]);
    });
  }

  test('§3.6 bufferToolArguments: cut off by the limit stays as it is', () => {
    const frames = [calls(named(0, 'a', '{"x": 1')), chunk({}, 'length')];
    const stream = streamed('messages', asked, frames, { bufferToolArguments: true });
    assert.deepEqual(blocksOf(stream), [tool('a', '{"x": 1')]);
    assert.match(stream, /"stop_reason":"max_tokens"/);
  });

  test('B1, C1–C3 any order of fragments gives each call its own arguments', () => {
    const value = fc.record({ x: fc.string(), y: fc.integer() }, { noNullPrototype: true });
    const plan = fc.tuple(
      fc.array(value, { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat({ max: 3 }), { maxLength: 60 }),
      fc.boolean(),
    );
    fc.assert(
      fc.property(plan, ([values, order, bufferToolArguments]) => {
        const rest = values.map((each) => JSON.stringify(each));
        const frames = values.map((_, i) => calls(named(i, `t${i}`)));
        const give = (i: number, length: number): void => {
          const text = rest[i] ?? '';
          if (text === '') return;
          frames.push(calls(more(i, text.slice(0, length))));
          rest[i] = text.slice(length);
        };
        for (const turn of order) give(turn % values.length, 2);
        values.forEach((_, i) => give(i, Infinity));
        const blocks = play([...frames, end], { bufferToolArguments });
        assert.deepEqual(
          blocks.map(({ name, text }) => [name, tryParse(text)]),
          values.map((each, i) => [`t${i}`, each]),
        );
      }),
      { numRuns: 200 },
    );
  });
});
