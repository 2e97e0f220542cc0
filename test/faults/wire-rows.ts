/** Faults of HTTP itself: framing, statuses, headers, compression, sizes (reliability.md F9, F26–F36, F65). */
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { eventStreamType } from '../upstream/aws.ts';
import { answerIn, joined } from '../upstream/reply.ts';
import type { Answer, Piece } from '../upstream/scripted.ts';
import { broken, errorTable as e, refused, rowsWith, served, type FaultRow } from './fault-row.ts';
import {
  begun,
  type Bytes,
  frame,
  frameOf,
  legalFrames,
  rest,
  seen,
  sseFrames,
  stream,
  text,
  textPiece,
} from './stream-pieces.ts';
import { sseUpstreams, type UpstreamDialect } from '../support/dialects.ts';

function legalBytes(upstream: UpstreamDialect, streamed: boolean): Bytes {
  return joined(answerIn(upstream, { text }, streamed).body);
}

function typeOf(upstream: UpstreamDialect): string {
  return upstream === 'converse' ? eventStreamType : 'text/event-stream';
}

/** Streams of AWS are recognised by their content type alone. */
function typeLine(upstream: UpstreamDialect, streamed: boolean): string {
  return upstream === 'converse' && streamed ? `content-type: ${eventStreamType}\r\n` : '';
}

/** Status line and headers as given, then the whole answer in chunks. */
function under(lines: string): FaultRow['play'] {
  return (upstream, streamed) => ({
    rawHead: `${lines}${typeLine(upstream, streamed)}transfer-encoding: chunked\r\n\r\n`,
    body: [legalBytes(upstream, streamed)],
    framing: 'chunked',
  });
}

const fine = 'HTTP/1.1 200 OK\r\n';

function raw(bytes: string): FaultRow['play'] {
  return () => ({ rawHead: bytes, body: '', framing: 'close' });
}

/** What is broken on the way may come whole the next time; a head that is no good stays so. */
const brokenHttp: readonly (readonly [
  id: string,
  name: string,
  bytes: string,
  attempts: number,
])[] = [
  [
    'F26',
    'a chunk size that is no number',
    `${fine}transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n`,
    3,
  ],
  ['F26', 'no HTTP at all', 'SSH-2.0-OpenSSH_9.6\r\n', 3],
  ['F26', '100 that nobody waited for, then silence', 'HTTP/1.1 100 Continue\r\n\r\n', 3],
  [
    'F27',
    '101',
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    1,
  ],
  ['F31', 'a NUL in a header', `${fine}x-odd: a\0b\r\ncontent-length: 2\r\n\r\n{}`, 1],
  ['F31', 'a bare CR in a header', `${fine}x-odd: a\rb\r\ncontent-length: 2\r\n\r\n{}`, 1],
  [
    'F31',
    'headers beyond 64 KiB',
    `${fine}x-long: ${'x'.repeat(70 * 1024)}\r\ncontent-length: 2\r\n\r\n{}`,
    1,
  ],
  [
    'F31',
    'a thousand headers',
    `${fine}${Array.from({ length: 1000 }, (_, index) => `x-${index}: 1\r\n`).join('')}content-length: 2\r\n\r\n{}`,
    1,
  ],
];

const framing: readonly FaultRow[] = [
  ...brokenHttp.map(([id, name, bytes, attempts]): FaultRow => ({
    id,
    name,
    play: raw(bytes),
    outcome: refused(e.e12),
    attempts,
  })),
  {
    id: 'F26',
    name: 'a length and chunks at once',
    play: under(`${fine}content-length: 10\r\n`),
    outcome: refused(e.e12),
    attempts: 3,
  },
  {
    id: 'F27',
    name: '103 early hints before the answer',
    play: under(`HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${fine}`),
    outcome: served(seen),
  },
  {
    id: 'F31',
    name: 'a header in Latin-1, and others that no client is shown',
    play: under(`${fine}x-odd: caf\xe9\r\nset-cookie: a=b\r\nserver: odd\r\n`),
    outcome: served(seen),
    headers: { 'x-odd': /^undefined$/, 'set-cookie': /^undefined$/, server: /^undefined$/ },
  },
  {
    id: 'F36',
    name: 'bytes behind the body',
    play: (upstream, streamed) => ({
      rawHead: `${fine}${typeLine(upstream, streamed)}transfer-encoding: chunked\r\n\r\n`,
      body: [legalBytes(upstream, streamed)],
      framing: 'chunked',
      trailing: 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nnever',
    }),
    outcome: served(seen),
  },
];

function compressed(encoding: string, body: Buffer): Answer {
  const pieces: Piece[] = [];
  for (let at = 0; at < body.length; at += 16 * 1024)
    pieces.push(body.subarray(at, at + 16 * 1024));
  return {
    headers: { 'content-encoding': encoding, 'content-type': 'application/json' },
    body: pieces,
    framing: 'chunked',
    ending: 'hang',
  };
}

const megabyte = 1024 * 1024;
const sixteenMegabytes = Buffer.alloc(16 * megabyte, 'x');
const longText = 'word '.repeat(0.3 * megabyte);
const longUsage = { ...seen.usage, output: 400_000 };
const zeros = Buffer.alloc(70 * megabyte, ' ');
const gzipBomb = gzipSync(Buffer.concat([Buffer.from('{"a":"'), zeros]), { level: 1 });
const brotliBomb = brotliCompressSync(zeros, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });

/** Only a document has a size of its own; in a stream each frame has. */
const sizes = rowsWith({ heavy: true }, [
  {
    id: 'F33',
    name: 'a gzip bomb',
    play: () => compressed('gzip', gzipBomb),
    outcome: refused(e.e12),
    hangs: true,
  },
  {
    id: 'F33',
    name: 'a brotli bomb',
    play: () => compressed('br', brotliBomb),
    outcome: refused(e.e12),
    hangs: true,
  },
  {
    id: 'F32',
    name: 'gzip that is none',
    play: () => compressed('gzip', Buffer.from('{"choices":[]}'.repeat(10))),
    outcome: refused(e.e12),
    hangs: true,
  },
  {
    id: 'F32',
    name: 'an encoding that nobody knows',
    play: () => compressed('snappy', Buffer.from('{}')),
    outcome: refused(e.e12),
    hangs: true,
  },
  {
    id: 'F35',
    name: 'a frame beyond 8 MiB',
    upstream: sseUpstreams,
    play: (upstream, _, contentSeen) => ({
      ...stream(begun(upstream), contentSeen, 'data: ', Buffer.alloc(9 * megabyte, 'x')),
      ending: 'hang',
    }),
    shapes: ['stream'],
    outcome: broken(e.broken),
    hangs: true,
  },
  {
    id: 'F35',
    name: 'a line beyond 1 MiB that never ends',
    upstream: sseUpstreams,
    play: (upstream, _, contentSeen) => ({
      ...stream(begun(upstream), contentSeen, 'data: ', Buffer.alloc(1.5 * megabyte, 'x')),
      ending: 'fin',
    }),
    shapes: ['stream'],
    outcome: broken(e.broken, e.interrupted),
  },
  {
    // An image in base64 is one line.
    id: 'F35',
    name: 'a line beyond 1 MiB, and its end',
    play: (upstream) => answerIn(upstream, { text: longText, usage: longUsage }, true),
    shapes: ['stream'],
    more: { max_tokens: 1_000_000 },
    budget: '30',
    outcome: served({ text: longText, finish: 'stop', usage: longUsage }),
  },
  {
    id: 'G11',
    name: 'a document that is nested too deep',
    play: () => ({ body: `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}` }),
    shapes: ['document'],
    outcome: refused(e.e12),
    maybeBilled: true,
  },
  {
    id: 'G11',
    name: 'a document of four million values',
    play: () => ({ body: `{"a":[${'0,'.repeat(4_000_000)}0]}` }),
    shapes: ['document'],
    outcome: refused(e.e12),
    maybeBilled: true,
  },
  {
    id: 'F35',
    name: 'a document beyond 64 MiB',
    play: () => ({
      headers: { 'content-length': String(80 * megabyte) },
      framing: 'length',
      body: ['{"a":"', ...Array.from({ length: 5 }, () => sixteenMegabytes)],
      ending: 'hang',
    }),
    shapes: ['document'],
    outcome: refused(e.e12),
    maybeBilled: true,
    hangs: true,
  },
]);

/** One byte, again and again, that never makes an event. */
/** @param count of a frame of AWS fewer than its first 12 bytes, which are checked when they are there */
function drip(count: number): readonly Piece[] {
  return Array.from({ length: count }, (_, index) => [wait(40 * (index + 1)), ' ']).flat();
}

function wait(ms: number): Promise<unknown> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const slow: readonly FaultRow[] = rowsWith({}, [
  {
    attempts: { stream: 2, collected: 2, document: 1 },
    id: 'F9',
    name: 'a byte at a time, and never an event',
    impatient: 'to begin',
    play: (upstream, streamed) => ({
      ...(streamed ? {} : { headers: { 'content-type': 'application/json' } }),
      body: drip(upstream === 'converse' && streamed ? 8 : 30),
      framing: 'chunked',
      ending: 'hang',
    }),
    hangs: true,
    outcome: refused(e.e13),
  },
  {
    id: 'F42',
    name: 'a slow stream that never pauses for long',
    impatient: 'to drip',
    play: (upstream) =>
      stream(...legalFrames(upstream).flatMap((each, index) => [wait(300 * (index + 1)), each])),
    shapes: ['stream'],
    outcome: served(seen),
  },
]);

const trailers: readonly FaultRow[] = rowsWith({ shapes: ['stream'] }, [
  {
    id: 'F65',
    name: 'a trailer that tells an error, and no finish',
    play: (upstream, _, contentSeen) => ({
      rawHead: `${fine}content-type: ${typeOf(upstream)}\r\ntransfer-encoding: chunked\r\ntrailer: grpc-status\r\n\r\n`,
      body: [begun(upstream), contentSeen],
      framing: 'chunked',
      trailers: 'grpc-status: 13\r\n',
    }),
    outcome: broken(e.interrupted),
  },
  {
    id: 'F65',
    name: 'trailers behind a whole answer',
    play: (upstream) => ({
      rawHead: `${fine}content-type: ${typeOf(upstream)}\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n`,
      body: [begun(upstream), rest(upstream)],
      framing: 'chunked',
      trailers: 'x-sum: 1\r\n',
    }),
    outcome: served(seen),
  },
]);

const loneSurrogate = '\\ud800';

/** The escape of half a character stays an escape: as bytes it would be no UTF-8. */
const surrogates: readonly FaultRow[] = [
  {
    id: 'F66',
    name: 'half a surrogate pair in text',
    play: (upstream) => {
      if (upstream === 'responses') {
        // Its later events repeat the text.
        const { body } = answerIn(upstream, { text: `a#b${text}` }, true);
        return stream(String(body).replaceAll('#', loneSurrogate));
      }
      if (upstream === 'converse') {
        const marked = JSON.stringify(textPiece(upstream, 'a#b').contentBlockDelta);
        const [first = '', ...frames] = legalFrames(upstream);
        return stream(first, frameOf(upstream, marked.replace('#', loneSurrogate)), ...frames);
      }
      const marked = String(frame(upstream, textPiece(upstream, 'a#b'))).replace(
        '#',
        loneSurrogate,
      );
      const frames = sseFrames(upstream);
      const first =
        frames.findIndex((each) => /"delta":\{"role"|content_block_start/.test(each)) + 1;
      return stream(frames.slice(0, first).join(''), marked, frames.slice(first).join(''));
    },
    shapes: ['stream'],
    outcome: served({ text: `a\ud800b${text}`, finish: 'stop' }),
    unusualFrames: true,
  },
];

const uploads: readonly FaultRow[] = [
  {
    id: 'F5',
    heavy: true,
    name: 'reset while the request is sent',
    prompt: 'word '.repeat(0.16 * megabyte),
    resetsUpload: true,
    play: () => ({ body: '' }),
    outcome: refused(e.e11),
    attempts: 3,
  },
];

export const wireRows: readonly FaultRow[] = [
  ...uploads,
  ...framing,
  ...sizes,
  ...slow,
  ...trailers,
  ...surrogates,
];
