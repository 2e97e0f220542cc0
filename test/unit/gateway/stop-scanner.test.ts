/** §1.4: the scanner against an oracle that looks at the text one character at a time. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collect, replay, type GenerationEvent } from '../../../src/core/generation.ts';
import type { Part } from '../../../src/core/conversation.ts';
import { StopScanner } from '../../../src/gateway/answer/translated-turn.ts';
import { check } from '../../support/checking.ts';

const finish = { type: 'finish', reason: { kind: 'stop' } } as const;
const start = { type: 'start', id: 'a', model: 'm' } as const;

function scan(stops: readonly string[], events: readonly GenerationEvent[]): GenerationEvent[] {
  const scanner = new StopScanner(stops);
  return events.flatMap((event) => [...scanner.push(event)]);
}

/** A text part in pieces. */
function pieces(index: number, texts: readonly string[]): GenerationEvent[] {
  return [
    { type: 'part-start', index, part: { type: 'text', text: '' } },
    ...texts.map((delta) => ({ type: 'part-delta', index, field: 'text', delta }) as const),
    { type: 'part-end', index },
  ];
}

function textOf(events: readonly GenerationEvent[]): string {
  const parts = collect(events)?.parts ?? [];
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function reasonOf(events: readonly GenerationEvent[]): unknown {
  return events.findLast((event) => event.type === 'finish')?.reason;
}

/** What a provider does that looks for the sequences itself, character by character. */
function oracle(text: string, stops: readonly string[]): { text: string; stop?: string } {
  for (let end = 1; end <= text.length; end++) {
    const before = text.slice(0, end);
    const found = stops.filter((stop) => before.endsWith(stop));
    const longest = found.toSorted((a, b) => b.length - a.length)[0];
    if (longest !== undefined) return { text: text.slice(0, end - longest.length), stop: longest };
  }
  return { text };
}

/** Each part starts once before its deltas and ends once; nothing follows the finish. */
function assertLegal(events: readonly GenerationEvent[]): void {
  const open = new Set<number>();
  const seen = new Set<number>();
  events.forEach((event, at) => {
    if (event.type === 'part-start') {
      assert.ok(!seen.has(event.index), `part ${event.index} starts once`);
      seen.add(event.index);
      open.add(event.index);
    } else if (event.type === 'part-delta' || event.type === 'part-citation') {
      assert.ok(open.has(event.index), `part ${event.index} is open`);
    } else if (event.type === 'part-end') {
      assert.ok(open.delete(event.index), `part ${event.index} ends once`);
    } else if (event.type === 'finish') {
      assert.equal(at, events.length - 1);
      assert.equal(open.size, 0, 'all parts are ended before the finish');
    }
  });
}

test('§1.4: text before the sequence stays, the sequence and what follows goes', () => {
  const events = scan(['\n\n'], [start, ...pieces(0, ['one\n', '\ntwo', '\n\nthree']), finish]);
  assertLegal(events);
  assert.equal(textOf(events), 'one');
  assert.deepEqual(reasonOf(events), { kind: 'stop-sequence', sequence: '\n\n' });
});

test('§1.4: only what may yet become a sequence is held back, and it is given out at the end', () => {
  const scanner = new StopScanner(['\n\n\n']);
  const [begin, delta, end] = pieces(0, ['abc\n\n']);
  assert.ok(begin !== undefined && delta !== undefined && end !== undefined);
  assert.deepEqual(scanner.push(begin), [], 'a part begins with its text');
  assert.deepEqual(scanner.push(delta), [
    begin,
    { type: 'part-delta', index: 0, field: 'text', delta: 'abc' },
  ]);
  assert.deepEqual(scanner.push(end), []);
  assert.deepEqual(scanner.push(finish), [
    { type: 'part-delta', index: 0, field: 'text', delta: '\n\n' },
    end,
    finish,
  ]);
});

test('§1.4: of overlapping sequences the one that is complete first ends the answer', () => {
  const events = scan(['abcX', 'bc'], [start, ...pieces(0, ['..ab', 'cX..']), finish]);
  assert.equal(textOf(events), '..a');
  assert.deepEqual(reasonOf(events), { kind: 'stop-sequence', sequence: 'bc' });
});

test('§1.4: a sequence reaches across text blocks, as the client sees their text joined', () => {
  const events = scan(['xy'], [start, ...pieces(0, ['ax']), ...pieces(1, ['yb']), finish]);
  assertLegal(events);
  assert.equal(textOf(events), 'a');
});

test('§1.4: reasoning and tool arguments are not looked at, and part text from text', () => {
  const call: Part = { type: 'tool-call', id: 'c', name: 'f', argumentsJson: '' };
  const events: GenerationEvent[] = [
    start,
    { type: 'part-start', index: 0, part: { type: 'reasoning', text: 'x\n\n' } },
    { type: 'part-delta', index: 0, field: 'text', delta: 'y\n\nz' },
    { type: 'part-end', index: 0 },
    ...pieces(1, ['text\n']),
    { type: 'part-start', index: 2, part: call },
    { type: 'part-delta', index: 2, field: 'arguments', delta: '{"a":\n\n1}' },
    { type: 'part-end', index: 2 },
    ...pieces(3, ['\nmore']),
    finish,
  ];
  const scanned = scan(['\n\n'], events);
  assertLegal(scanned);
  assert.deepEqual(collect(scanned), collect(events));
});

test('§1.4: a part that would hold no text is not begun', () => {
  const events = scan([' '], [start, ...pieces(0, [' x']), finish]);
  assert.deepEqual(collect(events)?.parts, []);
});

test('§1.4: the answer of an upstream that sends whole parts is cut alike', () => {
  const whole = replay({
    id: 'a',
    model: 'm',
    parts: [{ type: 'text', text: 'one|two' }],
    finish: { kind: 'stop' },
  });
  const events = scan(['|'], whole);
  assertLegal(events);
  assert.equal(textOf(events), 'one');
});

const letters = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 30 });
const stopList = fc.array(
  fc.string({ unit: fc.constantFrom('a', 'b', '\n'), minLength: 1, maxLength: 4 }),
  { minLength: 1, maxLength: 4 },
);

test('§1.4 property: any text, any sequences, cut anywhere, equals looking at each character', (t) => {
  const cuts = fc.array(fc.nat(30), { maxLength: 8 });
  check(t, fc.record({ text: letters, stops: stopList, cuts, blocks: fc.boolean() }), (given) => {
    const { text, stops } = given;
    const at = [0, ...given.cuts.filter((cut) => cut < text.length), text.length];
    at.sort((a, b) => a - b);
    const texts = at.slice(1).map((end, i) => text.slice(at[i], end));
    const body = given.blocks
      ? texts.flatMap((each, index) => pieces(index, [each]))
      : pieces(0, texts);
    const events = scan(stops, [start, ...body, finish]);
    assertLegal(events);
    const expected = oracle(text, stops);
    assert.equal(textOf(events), expected.text);
    assert.deepEqual(
      reasonOf(events),
      expected.stop === undefined
        ? finish.reason
        : { kind: 'stop-sequence', sequence: expected.stop },
    );
  });
});

test('§1.4 property: what is passed on is never more than a sequence behind the text', (t) => {
  check(t, fc.record({ text: letters, stops: stopList }), ({ text, stops }) => {
    const scanner = new StopScanner(stops);
    const longest = Math.max(...stops.map((stop) => stop.length));
    let given = 0;
    let shown = 0;
    for (const event of pieces(0, [...text])) {
      if (event.type === 'part-end') break;
      if (event.type === 'part-delta') given += event.delta.length;
      for (const out of scanner.push(event)) {
        if (out.type === 'part-delta') shown += out.delta.length;
      }
      if (scanner.matched !== undefined) return;
      assert.ok(given - shown <= longest - 1);
    }
  });
});
