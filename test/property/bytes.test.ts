/** Bytes: SSE frames of any split, and members spliced into a body that is otherwise untouched. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Frame } from '../../src/core/dialect.ts';
import { parseBody } from '../../src/core/client-body.ts';
import { spliceMembers } from '../../src/json/edit.ts';
import { SseSplitter } from '../../src/wire/sse.ts';
import { json, text } from './arbitraries.ts';
import { check } from './checking.ts';
import { framesIn, pieces } from './frames.ts';

const line = fc.oneof(
  text.map((value) => `data: ${value.replace(/[\r\n]/g, ' ')}`),
  fc.constantFrom(
    'data',
    'data:',
    ': comment',
    'event: ping',
    'event: pings',
    'id: 1',
    'retry: 5',
    'junk',
    '',
  ),
);
const stream = fc
  .array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 25 })
  .map((lines) => Buffer.from(lines.map((parts) => parts.join('')).join('')));
const places = fc.array(fc.nat({ max: 2000 }), { maxLength: 30 });

function meaning(frames: readonly Frame[]): readonly unknown[] {
  return frames
    .filter((frame) => frame.data !== undefined)
    .map(({ event, data }) => ({ event, data }));
}

test('E1 F47 frames of any byte split mean the same', (context) => {
  check(context, fc.tuple(stream, places), ([bytes, cuts]) => {
    assert.deepEqual(meaning(framesIn(bytes, cuts)), meaning(framesIn(bytes, [])));
  });
});

/** Line ends are line feeds, as nearly all servers write them, and events often have the name of the one before. */
const usual = fc
  .array(fc.tuple(fc.constantFrom('event: a\n', 'event: b\n', ''), line), { maxLength: 12 })
  .map((frames) => frames.map(([event, data]) => `${event}${data}\n\n`).join(''));

test('G1 frames of the usual shapes, alone in a read or not, are read as all others are', (context) => {
  check(context, fc.tuple(usual, places), ([text, cuts]) => {
    const quick = meaning(framesIn(Buffer.from(text), cuts));
    // Behind a carriage return everything is split into lines.
    assert.deepEqual(quick, meaning(framesIn(Buffer.from(`:\r\n\r\n${text}`), [])));
  });
});

test('frames of any byte split concatenate to the input', (context) => {
  check(context, fc.tuple(stream, places), ([bytes, cuts]) => {
    const frames = framesIn(bytes, cuts).map((frame) => frame.bytes);
    assert.ok(Buffer.concat(frames).equals(bytes));
  });
});

test('a frame is reported as soon as its blank line is there', (context) => {
  check(context, fc.tuple(text, places), ([value, cuts]) => {
    const bytes = Buffer.from(`data: ${value.replace(/[\r\n]/g, ' ')}\n\n`);
    const splitter = new SseSplitter();
    const found = pieces(bytes, cuts).map((piece) => splitter.push(piece).length);
    assert.equal(
      found.reduce((sum, count) => sum + count, 0),
      1,
    );
  });
});

const space = fc.constantFrom('', ' ', '\n', '\t ', '\r\n');
const key = fc.oneof(fc.constantFrom('model', 'stream', '10', '9', '__proto__', 'é'), text);
const member = fc.tuple(space, key, space, space, json, space);

/** A body with white space of all kinds, keys in any order, and numbers as people write them. */
const body = fc
  .uniqueArray(member, { selector: (parts) => parts[1], maxLength: 6 })
  .map((members) =>
    members.map(([a, name, b, c, value, d]) => ({
      name,
      before: `${a}${JSON.stringify(name)}${b}:${c}`,
      value: JSON.stringify(value),
      behind: d,
    })),
  );

test('G2 splicing changes the spliced spans and no other byte', (context) => {
  check(context, fc.tuple(body, json), ([members, replacement]) => {
    const write = (model: string | undefined): string =>
      `{${members
        .map(({ name, before, value, behind }) =>
          name === 'model' && model !== undefined
            ? before + model + behind
            : before + value + behind,
        )
        .join(',')}}`;
    const model = JSON.stringify(replacement);
    const source = parseBody(Buffer.from(write(undefined)), new Set());
    const spliced = spliceMembers(source, { model, stream: undefined }).toString();
    if (members.some(({ name }) => name === 'model')) assert.equal(spliced, write(model));
    else
      assert.equal(
        spliced,
        `{"model":${model}${members.length === 0 ? '' : ','}${write(undefined).slice(1)}`,
      );
  });
});

test('digits, spellings and order of a spliced body stay', () => {
  const original =
    '{ "b":1.0, "10":1e2,"9": 12345678901234567890 , "model" : "x" ,"a":"\\u00e9\\/"}';
  const source = parseBody(Buffer.from(original), new Set());
  assert.equal(spliceMembers(source, { model: '"y"' }).toString(), original.replace('"x"', '"y"'));
});
