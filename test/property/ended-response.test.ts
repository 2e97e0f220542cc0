/** The end of an answer that is kept is read in its bytes; a parse finds the same in all spellings of JSON. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  answered,
  readInBytes,
  readParsed,
} from '../../src/dialects/openai-responses/ended-response.ts';
import { eventFrame } from '../../src/dialects/openai-responses/answer/lifecycle.ts';
import { json, text } from './arbitraries.ts';
import { check } from './checking.ts';

const spaces = fc.constantFrom('', ' ', '\t');
const ids = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/),
  fc.constantFrom('é', 'a\\b', 'q"q', ''),
);
const odd = fc.constantFrom('1', 'null', '"\\u0069d"', '[]', '{}');

/** A JSON string with its first letter as an escape, which says the same. */
function escaped(value: string): string {
  const written = JSON.stringify(value);
  const first = value.charCodeAt(0);
  if (Number.isNaN(first) || written[1] === '\\') return written;
  return `"\\u${first.toString(16).padStart(4, '0')}${written.slice(2)}`;
}

const spelled = (value: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(value, fc.nat({ max: 9 }))
    .map(([each, n]) => (n === 0 ? escaped(each) : JSON.stringify(each)));

type Member = readonly [key: string, value: string];

/** An object of these members and others, in any order and with white space; rarely a member stands twice. */
function objectOf(members: readonly fc.Arbitrary<Member>[]): fc.Arbitrary<string> {
  const other = fc.tuple(
    fc.oneof(fc.constantFrom('"usage"', '"id2"', '"outpu"'), spelled(text)),
    json.map((value) => JSON.stringify(value)),
  );
  return fc
    .tuple(fc.tuple(...members), fc.array(other, { maxLength: 3 }), fc.nat({ max: 19 }), spaces)
    .chain(([own, more, twice, space]) => {
      const all = [...own, ...more, ...(twice === 0 ? own.slice(0, 1) : [])];
      return fc.shuffledSubarray(all, { minLength: all.length }).map((shuffled) => {
        const texts = shuffled.map(([key, value]) => `${key}${space}:${space}${value}${space}`);
        return `{${space}${texts.join(`,${space}`)}}`;
      });
    });
}

function member(key: string, value: fc.Arbitrary<string>): fc.Arbitrary<Member> {
  return fc.tuple(spelled(fc.constant(key)), fc.oneof({ weight: 9, arbitrary: value }, odd));
}

const item = objectOf([member('id', spelled(ids))]);
const output = fc
  .array(fc.oneof({ weight: 9, arbitrary: item }, odd), { maxLength: 3 })
  .map((items) => `[${items.join(' , ')}]`);
const status = fc.constantFrom('completed', 'incomplete', 'failed', 'in_progress');
const response = objectOf([
  member('id', spelled(ids)),
  member('status', spelled(status)),
  member('output', output),
]);
const event = objectOf([
  member('type', spelled(fc.constantFrom('response.completed', 'response.incomplete', 'error'))),
  member('response', response),
]);
const last = fc.oneof(
  response,
  fc
    .tuple(event, fc.constantFrom('\n\n', '', '\n\ndata: [DONE]\n\n'))
    .map(([data, end]) => `event: x\ndata: {"delta":"\\ndata: "}\n\nevent: y\ndata: ${data}${end}`),
);

test('ST1 what is read in the bytes of a response is what a parse finds', (context) => {
  check(context, last, (written) => {
    const bytes = Buffer.from(written);
    const quick = readInBytes(bytes);
    if (quick !== undefined) assert.deepEqual(quick, readParsed(bytes), written);
    assert.deepEqual(answered(bytes), readParsed(bytes), written);
  });
});

test('ST1 a response as the gateway writes it is read without a parse', (context) => {
  const plain = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/);
  const cases = fc.record({
    id: plain,
    items: fc.array(plain, { maxLength: 4 }),
    text,
    rest: json,
  });
  check(context, cases, ({ id, items, text: said, rest }) => {
    const output = items.map((each) => ({ type: 'message', said, id: each }));
    const whole = { id, status: 'completed', output, rest, metadata: { said } };
    const found = { id, items, response: Buffer.from(JSON.stringify(whole)) };
    assert.deepEqual(readInBytes(found.response), found);
    const type = 'response.completed';
    const frame = eventFrame(type, { type, sequence_number: 7, response: whole });
    assert.deepEqual(readInBytes(Buffer.from(`: ping\n\n${frame}`)), found);
  });
});
