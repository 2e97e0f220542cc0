import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { GatewayError } from '../../../src/core/errors.ts';
import { maxFrameBytes, SseSplitter } from '../../../src/wire/sse.ts';
import { assertLinear } from '../../support/linear.ts';

interface Seen {
  readonly bytes: string;
  readonly fields: (readonly [string | undefined, string | undefined])[];
}

function split(chunks: readonly Buffer[]): Seen {
  const splitter = new SseSplitter();
  const frames = chunks.flatMap((chunk) => [...splitter.push(chunk)]);
  const last = splitter.end();
  if (last !== undefined) frames.push(last);
  return {
    bytes: Buffer.concat(frames.map((frame) => frame.bytes)).toString('latin1'),
    fields: frames
      .filter((frame) => frame.data !== undefined || frame.event !== undefined)
      .map((frame) => [frame.event, frame.data] as const),
  };
}

function cut(bytes: Buffer, points: readonly number[]): Buffer[] {
  const at = [...new Set(points.map((point) => point % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, i) => bytes.subarray(from, at[i] ?? bytes.length));
}

test('F50: data lines are joined, F49: comments, ids and retries carry nothing', () => {
  const seen = split([
    Buffer.from(': hi\n\nid: 7\nretry: 10\ndata: a\ndata:b\n\nevent: ping\n\ndata: [DONE]\n\n'),
  ]);
  assert.deepEqual(seen.fields, [
    [undefined, 'a\nb'],
    ['ping', undefined],
    [undefined, '[DONE]'],
  ]);
});

test('F50 G1: frames of the usual shapes are read as all others are', () => {
  const shapes = [
    'event: a\ndata: {"x":1}',
    'event:a\ndata:{"x":1}',
    'event:  a\ndata:  b ',
    'event: ä\ndata: ö',
    'event:\ndata:',
    'event\ndata: a',
    'event: a\ndata',
    'event: a\ndata: b\ndata: c',
    'event: a\ndata: b\nid: 1',
    'event: a\nid: 1\ndata: b',
    'data: b\nevent: a',
    'event: a',
    'events: a\ndata: b',
    'event: a\nevent: b\ndata: c',
    ': a\ndata: b',
    'data: b',
    'data:',
  ];
  for (const shape of shapes) {
    const quick = new SseSplitter().push(Buffer.from(`${shape}\n\n`));
    // Behind a carriage return everything is split into lines.
    const [, ...split] = new SseSplitter().push(Buffer.from(`:\r\n\r\n${shape}\n\n`));
    assert.deepEqual(quick, split, JSON.stringify(shape));
    const splitter = new SseSplitter();
    splitter.push(Buffer.from(shape));
    const last = splitter.end();
    assert.deepEqual([last?.event, last?.data], [split[0]?.event, split[0]?.data]);
  }
});

test('G1: each event has its own name, whatever that of the one before was', () => {
  const names = ['ping', 'ping', 'pin', 'pings', 'ä', 'ä', 'ping', 'x'.repeat(200), 'ping'];
  const text = names.map((name, i) => `event: ${name}\ndata: ${i}\n\n`).join('');
  const expected = names.map((name, i) => [name, String(i)]);
  assert.deepEqual(split([Buffer.from(text)]).fields, expected);
  assert.deepEqual(
    split(names.map((name, i) => Buffer.from(`event: ${name}\ndata: ${i}\n\n`))).fields,
    expected,
  );
  const splitter = new SseSplitter();
  splitter.push(Buffer.from('event: a\ndata: 1\n\n'));
  assert.deepEqual(splitter.push(Buffer.from('event: a\n\n'))[0]?.data, undefined);
  assert.deepEqual(splitter.push(Buffer.from('event: a\ndata: 2\ndata: 3\n\n'))[0]?.data, '2\n3');
  splitter.push(Buffer.from('event: a\ndata: 4\n'));
  assert.deepEqual(splitter.end()?.data, '4');
});

test('F51: a last event without its blank line is still given', () => {
  assert.deepEqual(split([Buffer.from('data: {"a":1}\n')]).fields, [[undefined, '{"a":1}']]);
});

test('F46: bytes that are not UTF-8 fail', () => {
  assert.throws(
    () => split([Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0x0a, 0x0a])]),
    GatewayError,
  );
});

test('F35: an event without an end is refused at 8 MiB', () => {
  const splitter = new SseSplitter();
  splitter.push(Buffer.from('data: '));
  assert.throws(() => splitter.push(Buffer.alloc(maxFrameBytes, 0x61)), GatewayError);
});

test('E1, F47, F48: any byte split of any line ends gives the same events, and all bytes', () => {
  const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
  const line = fc.oneof(
    fc.constantFrom(
      'data: 你好🦀',
      'data:{"x":"é"}',
      'event: delta',
      ': comment',
      'id: 1',
      'data',
      '',
    ),
    fc.string({ maxLength: 8 }).map((text) => `data: ${text.replace(/[\r\n]/g, '')}`),
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(line, lineEnd), { maxLength: 30 }),
      fc.array(fc.nat({ max: 500 }), { maxLength: 12 }),
      fc.boolean(),
      (lines, points, marked) => {
        const text = lines.map(([content, end]) => content + end).join('');
        const bytes = Buffer.from(marked ? `\ufeff${text}` : text);
        const whole = split([bytes]);
        const pieces = split(cut(bytes, points));
        const single = split([...bytes].map((byte) => Buffer.from([byte])));
        assert.deepEqual(pieces.fields, whole.fields);
        assert.deepEqual(single.fields, whole.fields);
        const sent = Buffer.from(text).toString('latin1');
        for (const seen of [whole, pieces, single]) assert.equal(seen.bytes, sent);
      },
    ),
    { numRuns: 300 },
  );
});

test('S22 E1: large frames in small pieces cost their length, and lose no byte', () => {
  for (const [begin, end] of [
    ['data: ', '\n\n'],
    ['data: ', '\r\n\r\n'],
    ['\r\n\r\ndata: \r\nx', '\r\r'],
  ] as const) {
    assertLinear((size) => {
      const splitter = new SseSplitter();
      splitter.push(Buffer.from(begin));
      for (let i = 0; i < size; i += 1) splitter.push(Buffer.from('12345'));
      return splitter.push(Buffer.from(end));
    });
    const body = Array.from({ length: 9000 }, (_, i) => String(i)).join(' ');
    const whole = Buffer.from(`${begin}${body}${end}${begin}${body}${end}data: last\n\n`);
    for (const step of [1, 7, 4095, 5000, 30_000]) {
      const chunks = Array.from({ length: Math.ceil(whole.length / step) }, (_, i) =>
        whole.subarray(i * step, (i + 1) * step),
      );
      const seen = split(chunks);
      assert.equal(seen.bytes, whole.toString('latin1'));
      assert.deepEqual(seen.fields, split([whole]).fields);
    }
  }
});

test('E1 F47: a frame of one line with CR LF is read as the same frame with LF', () => {
  const line = fc.stringMatching(/^(data|event|id)?:? ?[a-z{}": ]{0,12}$/);
  const frames = fc.array(fc.array(line, { minLength: 1, maxLength: 3 }), { maxLength: 8 });
  fc.assert(
    fc.property(frames, fc.array(fc.nat(200), { maxLength: 4 }), (given, points) => {
      const written = (end: string): Buffer =>
        Buffer.from(given.map((lines) => lines.join(end) + end + end).join(''));
      const feeds = split([written('\n')]).fields;
      assert.deepEqual(split(cut(written('\r\n'), points)).fields, feeds);
    }),
  );
});

test('S22: line feeds after one CR LF cost their length', () => {
  assertLinear((length) => {
    split([Buffer.from('data: 1\r\n\r\n' + 'a\n\n'.repeat(length))]);
  });
});
