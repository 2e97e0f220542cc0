/** RFC 9112: where an answer ends is read in one way only, however its bytes are cut. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'node:test';
import {
  ProtocolError,
  ResponseReader,
  readHead,
} from '../../../../src/wire/http1/response-reader.ts';

interface Seen {
  readonly status: number | undefined;
  readonly body: string;
  readonly done: boolean;
  readonly exact: boolean;
}

/** Reads the pieces one after the other, each in a buffer of its own that is overwritten afterwards. */
function readPieces(pieces: readonly Buffer[], close = false): Seen {
  let status: number | undefined;
  let body = '';
  const reader = new ResponseReader({
    head: (head) => (status = head.status),
    data: (chunk) => (body += chunk.toString('latin1')),
  });
  let exact = true;
  for (const piece of pieces) {
    const buffer = Buffer.from(piece);
    exact = reader.read(buffer) && exact;
    buffer.fill('!');
  }
  const done = reader.done || (close && reader.close());
  return { status, body, done, exact };
}

function read(text: string, close = false): Seen {
  return readPieces([Buffer.from(text, 'latin1')], close);
}

const whole: readonly (readonly [name: string, text: string, body: string])[] = [
  ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', 'hello'],
  ['no body', 'HTTP/1.1 204 No Content\r\n\r\n', ''],
  ['a length of nothing', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', ''],
  [
    'chunks',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n02;x=y\r\nlo\r\n0\r\n\r\n',
    'hello',
  ],
  [
    'chunks with trailers',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nx-sum: 1\r\ny: 2\r\n\r\n',
    '0123456789',
  ],
  [
    'heads in advance',
    'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n' +
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
    'ok',
  ],
  ['no reason', 'HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok', 'ok'],
];

for (const [name, text, body] of whole) {
  test(`F25 F26 ${name}: complete, at every cut`, () => {
    const bytes = Buffer.from(text, 'latin1');
    for (let cut = 0; cut <= bytes.length; cut++) {
      const seen = readPieces(
        [bytes.subarray(0, cut), bytes.subarray(cut)].filter((b) => b.length > 0),
      );
      assert.deepEqual(
        { body: seen.body, done: seen.done, exact: seen.exact },
        { body, done: true, exact: true },
      );
    }
  });

  test(`F40 ${name}: no proper start of it is complete`, () => {
    for (let cut = 1; cut < text.length; cut++) assert.equal(read(text.slice(0, cut)).done, false);
  });
}

/** The heads with lines that end in LF alone; what follows them stays. */
function bareHeads(text: string): string {
  const end = text.indexOf('\r\n\r\n') + 4;
  const head = text.slice(0, end).replaceAll('\r\n', '\n');
  const more = text.slice(end);
  return more.startsWith('HTTP/') ? head + bareHeads(more) : head + more;
}

for (const [name, text, body] of whole) {
  test(`F-9 ${name}, with a head of bare line feeds: the same at every cut, and the last one of its connection`, () => {
    const bytes = Buffer.from(bareHeads(text), 'latin1');
    for (let cut = 1; cut < bytes.length; cut++) {
      let again: boolean | undefined;
      let read = '';
      const reader = new ResponseReader({
        head: (head) => (again = head.keepsAlive),
        data: (chunk) => (read += chunk.toString('latin1')),
      });
      const all = [bytes.subarray(0, cut), bytes.subarray(cut)].map((piece) => Buffer.from(piece));
      assert.ok(all.map((piece) => reader.read(piece)).every(Boolean));
      assert.deepEqual(
        { read, done: reader.done, again },
        { read: body, done: true, again: false },
      );
    }
  });
}

test('F-9 S20 a head of both kinds of lines is refused as soon as that shows', () => {
  for (const text of [
    'HTTP/1.1 200 OK\ncontent-length: 2\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 2\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 2\n\n',
    'HTTP/1.1 200 OK\ncontent-length: 2\r\n\r\nok',
    'HTTP/1.1 200 OK\ncontent-length: 2\r\n\nok',
    'HTTP/1.1 200 OK\na: b\rcontent-length: 2\n\nok',
    'HTTP/1.1 200 OK\n\r\n',
  ]) {
    assert.throws(() => read(text), ProtocolError, JSON.stringify(text));
    assert.throws(
      () => readPieces(Array.from(text, (char) => Buffer.from(char))),
      ProtocolError,
      JSON.stringify(text),
    );
  }
});

test('S20 S22 a head that comes byte by byte is examined at the ends of its lines', (t) => {
  const bytes = (text: string): readonly Buffer[] => Array.from(text, (char) => Buffer.from(char));
  const { mock } = t.mock.method(Buffer.prototype, 'toString');
  const head = `HTTP/1.1 200 OK\r\na: ${'b'.repeat(60_000)}\r\ncontent-length: 0\r\n\r\n`;
  assert.equal(readPieces(bytes(head)).done, true);
  assert.ok(mock.callCount() < 50, String(mock.callCount()));
  const lines = `HTTP/1.1 200 OK\r\n${'a:b\r\n'.repeat(1100)}`;
  assert.throws(() => readPieces(bytes(lines)), { message: 'more than 500 headers' });
  assert.ok(mock.callCount() < 1200, String(mock.callCount()));
});

test('F25 any chunks cut anywhere give the same body', () => {
  const pieces = fc.array(fc.string({ minLength: 1, maxLength: 40, unit: 'binary-ascii' }), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(pieces, fc.array(fc.nat(400), { maxLength: 12 }), (parts, cuts) => {
      const chunks = parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
      const text = `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;
      const bytes = Buffer.from(text, 'latin1');
      const places = [0, ...cuts.filter((cut) => cut < bytes.length), bytes.length].sort(
        (a, b) => a - b,
      );
      const seen = readPieces(places.slice(1).map((to, at) => bytes.subarray(places[at], to)));
      assert.equal(seen.body, parts.join(''));
      assert.equal(seen.done, true);
    }),
  );
});

test('S20 a header called as what every object has is a header', () => {
  const text = 'constructor: a\r\ntoString: b\r\nvalueof: c\r\nconstructor: d';
  const { headers } = readHead(`HTTP/1.1 200 OK\r\n${text}`);
  assert.deepEqual(Object.entries(headers), [
    ['constructor', ['a', 'd']],
    ['tostring', 'b'],
    ['valueof', 'c'],
  ]);
});

test('F44 without a length the close is the end, and nothing else', () => {
  const text = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n';
  assert.equal(read(text).done, false);
  assert.deepEqual(read(text, true), { status: 200, body: 'data: 1\n\n', done: true, exact: true });
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n';
  assert.equal(read(chunked, true).done, false);
});

test('S18 what comes behind an answer is not taken for the next one', () => {
  for (const [, text] of whole) assert.equal(read(`${text}HTTP/1.1 200 OK\r\n\r\n`).exact, false);
});

const refused: readonly (readonly [name: string, text: string])[] = [
  ['another protocol', 'HTTP/2 200 OK\r\n\r\n'],
  ['no protocol', 'hello\r\n\r\n'],
  ['no protocol and no end', 'SSH-2.0-Open\r\n'],
  ['a leave that nobody waits for', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['a switch of protocols', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'],
  [
    'a length beside chunks',
    'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
  ],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n'],
  ['a length with a sign', 'HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n'],
  ['a length in hex', 'HTTP/1.1 200 OK\r\ncontent-length: 0x1\r\n\r\n'],
  ['a length beyond numbers', `HTTP/1.1 200 OK\r\ncontent-length: ${'9'.repeat(16)}\r\n\r\n`],
  ['a length behind a no-break space', 'HTTP/1.1 200 OK\r\ncontent-length: \u00a01\r\n\r\na'],
  [
    'a coding behind a no-break space',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\u00a0\r\n\r\n0\r\n\r\n',
  ],
  ['another coding', 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n'],
  ['a folded line', 'HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n'],
  ['a space before the colon', 'HTTP/1.1 200 OK\r\ncontent-length : 1\r\n\r\n'],
  ['a field without a name', 'HTTP/1.1 200 OK\r\n: b\r\n\r\n'],
  ['a field without a colon', 'HTTP/1.1 200 OK\r\nab\r\n\r\n'],
  ['a lone line feed', 'HTTP/1.1 200 OK\r\na: b\nc: d\r\n\r\n'],
  ['a lone carriage return', 'HTTP/1.1 200 OK\r\na: b\rc: d\r\n\r\n'],
  ['a NUL', 'HTTP/1.1 200 OK\r\na: b\0\r\n\r\n'],
  ['a head too large', `HTTP/1.1 200 OK\r\na: ${'b'.repeat(70_000)}\r\n\r\n`],
  ['a head without end', `HTTP/1.1 200 OK\r\na: ${'b'.repeat(70_000)}`],
  ['heads in advance without end', 'HTTP/1.1 103 Hints\r\n\r\n'.repeat(4000)],
  ['a chunk without a size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n'],
  ['a chunk size with a sign', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n'],
  ['a chunk size with a space', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1 \r\na\r\n'],
  [
    'a chunk size beyond numbers',
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${'f'.repeat(14)}\r\n`,
  ],
  [
    'a chunk longer than it says',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n',
  ],
  [
    'a chunk that ends in a line feed',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\na\n',
  ],
  [
    'trailers without end',
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n${'a: b\r\n'.repeat(20_000)}`,
  ],
];

for (const [name, text] of refused) {
  test(`F25 F31 S20 ${name}: refused`, () => {
    assert.throws(() => read(text), ProtocolError);
    if (/^[^\n]*\r\n(?:[^\n]*\r\n)*\r\n/.test(text))
      assert.throws(() => read(bareHeads(text)), ProtocolError);
  });
}

test('S20 any bytes are read or refused, nothing else', () => {
  const start = fc.constantFrom(
    '',
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
  );
  fc.assert(
    fc.property(start, fc.uint8Array({ maxLength: 200 }), (text, rest) => {
      try {
        readPieces([Buffer.concat([Buffer.from(text), rest])], true);
      } catch (error) {
        assert.ok(error instanceof ProtocolError, String(error));
      }
    }),
  );
});
