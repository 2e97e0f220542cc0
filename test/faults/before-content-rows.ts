/** Faults before the first content: an HTTP status and a body in the caller's dialect. */
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { chatError } from '../upstream/chat.ts';
import { messagesError } from '../upstream/messages.ts';
import { answerIn, errorIn, joined, plainUsage } from '../upstream/reply.ts';
import { everyBytes, type Answer } from '../upstream/scripted.ts';
import { errorBody, frame } from './stream-pieces.ts';
import { waitRows } from './wait-rows.ts';
import { errorTable as e, refused, served, type FaultRow, type Outcome } from './fault-row.ts';
import { sseUpstreams, type UpstreamDialect } from '../support/dialects.ts';

const html = '<html><body><h1>502 Bad Gateway</h1>nginx</body></html>';
const text = 'Hello, 你好🦀 and good day.';
const seen = { text, finish: 'stop', usage: plainUsage } as const;
const secret = 'sk-upstream-secret';

const htmlHeaders = { 'content-type': 'text/html' } as const;

/** Statuses behind which the same may be asked again (R2); nothing else can be. */
const repeated: readonly number[] = [408, 409, 500, 502, 503, 504, 529];

function statusRow(id: string, status: number, outcome: Outcome): FaultRow {
  return {
    id,
    attempts: repeated.includes(status) ? 3 : 1,
    maybeBilled: false,
    name: `status ${status}`,
    play: (upstream) => errorIn(upstream, status, `no luck with ${secret}`),
    outcome,
  };
}

const transportRows: readonly FaultRow[] = [
  {
    id: 'F6',
    name: 'reset before the headers',
    play: () => ({ body: '', mute: true, ending: 'reset' }),
    outcome: refused(e.e11),
    attempts: 3,
    maybeBilled: true,
  },
  {
    id: 'F6',
    name: 'FIN before the headers',
    play: () => ({ body: '', mute: true, ending: 'fin' }),
    outcome: refused(e.e11),
    attempts: 3,
    maybeBilled: true,
  },
];

const statusRows: readonly FaultRow[] = [
  {
    id: 'F10 H4',
    name: 'status 400',
    play: (upstream) => errorIn(upstream, 400, 'temperature is not for this model'),
    outcome: refused(e.e1),
    message: {
      chat: /temperature is not for this model/,
      messages: /temperature is not for this model/,
    },
    headers: { 'x-should-retry': /^false$/ },
  },
  {
    id: 'F10 H4',
    name: 'status 422',
    play: (upstream) => errorIn(upstream, 422, 'semantic trouble'),
    outcome: refused({
      chat: { status: 422, type: 'invalid_request_error', code: null },
      messages: { status: 422, type: 'invalid_request_error' },
    }),
    message: { chat: /semantic trouble/, messages: /semantic trouble/ },
  },
  {
    id: 'F11',
    name: 'context overflow in the words of chat servers',
    play: () => ({
      status: 400,
      body: chatError(
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        'invalid_request_error',
        'context_length_exceeded',
      ),
    }),
    upstream: ['chat', 'responses'],
    outcome: refused(e.overflow),
    message: { chat: /maximum context length/, messages: /^prompt is too long/ },
  },
  {
    id: 'F11',
    name: 'context overflow in the words of messages servers',
    play: () => ({
      status: 400,
      body: messagesError(
        'prompt is too long: 250000 tokens > 200000 maximum',
        'invalid_request_error',
      ),
    }),
    upstream: 'messages',
    outcome: refused(e.overflow),
    message: {
      chat: /250000 tokens > 200000/,
      messages: /^prompt is too long: 250000 tokens > 200000 maximum/,
    },
  },
  { ...statusRow('F12', 401, refused(e.e15)), hidden: secret },
  { ...statusRow('F12', 402, refused(e.e15)), hidden: secret },
  { ...statusRow('F12', 403, refused(e.e15)), hidden: secret },
  statusRow('F13', 404, refused(e.e6)),
  statusRow('F14', 408, refused(e.e13)),
  statusRow('F14', 409, refused(e.e11)),
  {
    id: 'F17',
    name: '429 that means billing',
    play: () => ({
      status: 429,
      body: chatError('You exceeded your quota', 'insufficient_quota', 'insufficient_quota'),
    }),
    upstream: ['chat', 'responses'],
    outcome: refused(e.e15),
  },
  statusRow('F18', 500, refused(e.e11)),
  {
    id: 'F19',
    name: '502 with an HTML page',
    play: () => ({ status: 502, headers: htmlHeaders, body: html }),
    attempts: 3,
    outcome: refused(e.e11),
    hidden: 'nginx',
  },
  {
    id: 'F19',
    name: '503 with an HTML page',
    play: () => ({ status: 503, headers: htmlHeaders, body: html }),
    attempts: 3,
    outcome: refused(e.e11, e.e10),
    hidden: 'nginx',
  },
  {
    id: 'F19',
    name: '504 with an HTML page',
    play: () => ({ status: 504, headers: htmlHeaders, body: html }),
    attempts: 3,
    outcome: refused(e.e11, e.e13),
    hidden: 'nginx',
  },
  { ...statusRow('F20 H3', 529, refused(e.e10)), headers: { 'retry-after': /^([1-9]|10)$/ } },
  { ...statusRow('F20 H3', 503, refused(e.e10)), headers: { 'retry-after': /^([1-9]|10)$/ } },
];

/** A legal answer, whole or streamed. */
function legal(upstream: UpstreamDialect, stream: boolean): Answer {
  return answerIn(upstream, { text }, stream);
}

function errorInside(
  upstream: UpstreamDialect,
  kind: 'overloaded' | 'limited',
  stream: boolean,
): Answer {
  const body = errorBody(upstream, kind);
  return { body: stream ? [frame(upstream, body)] : JSON.stringify(body) };
}

function overloadedInside(upstream: UpstreamDialect, stream: boolean): Answer {
  return errorInside(upstream, 'overloaded', stream);
}

function limitedInside(upstream: UpstreamDialect, stream: boolean): Answer {
  return errorInside(upstream, 'limited', stream);
}

function half(answer: Answer): Buffer {
  const bytes = Buffer.from(joined(answer.body));
  return bytes.subarray(0, Math.floor(bytes.length / 2));
}

const answerRows: readonly FaultRow[] = [
  {
    id: 'F21',
    name: '200 with HTML',
    play: () => ({ headers: htmlHeaders, body: html }),
    outcome: refused(e.e12),
    maybeBilled: true,
    hidden: 'nginx',
  },
  {
    id: 'F21',
    name: '200 with plain text',
    play: () => ({ headers: { 'content-type': 'text/plain' }, body: 'It works!' }),
    outcome: refused(e.e12),
    maybeBilled: true,
    hidden: 'It works',
  },
  {
    id: 'F22 E11',
    name: 'a document to a stream request',
    play: (upstream) => legal(upstream, false),
    shapes: ['stream'],
    outcome: served(seen),
  },
  {
    id: 'F23 E11',
    name: 'a stream to a document request',
    play: (upstream) => legal(upstream, true),
    shapes: ['document'],
    outcome: served(seen),
  },
  {
    id: 'F24 E5',
    name: 'overload inside a 200',
    play: overloadedInside,
    outcome: refused(e.e10),
    attempts: 3,
  },
  {
    id: 'F24 E5',
    name: 'rate limit inside a 200',
    play: limitedInside,
    outcome: refused(e.e8),
    attempts: 3,
  },
  {
    id: 'F25',
    name: 'JSON shorter than its content-length',
    play: (upstream) => {
      const whole = legal(upstream, false);
      return {
        headers: { 'content-length': String(half(whole).length * 2) },
        body: half(whole),
        ending: 'fin',
      };
    },
    shapes: ['document'],
    outcome: refused(e.e12),
    attempts: 3,
    maybeBilled: true,
  },
  {
    id: 'F25',
    name: 'JSON cut between chunks',
    play: (upstream) => ({
      headers: { 'content-type': 'application/json' },
      body: half(legal(upstream, false)),
      framing: 'chunked',
      ending: 'fin',
    }),
    shapes: ['document'],
    outcome: refused(e.e12),
    attempts: 3,
    maybeBilled: true,
  },
  {
    id: 'F25',
    name: 'half of a JSON that the closed connection ends',
    play: (upstream) => ({
      headers: { 'content-type': 'application/json' },
      body: half(legal(upstream, false)),
      framing: 'close',
    }),
    shapes: ['document'],
    outcome: refused(e.e12),
    attempts: 3,
    maybeBilled: true,
  },
  ...[301, 302, 307, 308].map((status): FaultRow => ({
    id: 'F28',
    name: `redirect ${status}`,
    play: () => ({ status, headers: { location: '/elsewhere' }, body: '' }),
    outcome: refused(e.e12),
    headers: { location: /^undefined$/ },
  })),
  {
    id: 'F29',
    name: 'status 204',
    play: () => ({ rawHead: 'HTTP/1.1 204 No Content\r\n\r\n', body: '' }),
    outcome: refused(e.e12),
    attempts: 2,
  },
  {
    id: 'F29',
    name: '200 with an empty body',
    play: () => ({ body: '' }),
    outcome: refused(e.e12),
    attempts: 2,
  },
  {
    id: 'F29',
    name: '200 with an empty stream',
    play: () => ({ body: [], framing: 'chunked' }),
    outcome: refused(e.e12),
    attempts: 2,
  },
  {
    id: 'F29',
    name: 'an empty JSON object',
    play: () => ({ body: '{}' }),
    outcome: refused(e.e12),
  },
  {
    id: 'F30',
    name: 'status 202',
    play: (upstream, stream) => ({ ...legal(upstream, stream), status: 202 }),
    outcome: refused(e.e12),
    attempts: 2,
  },
  {
    id: 'F30',
    name: 'status 999',
    play: () => ({ status: 999, body: '' }),
    outcome: refused(e.e12, e.e11),
    attempts: 2,
  },
  {
    id: 'F34',
    name: 'event stream called text/plain',
    upstream: sseUpstreams,
    play: (upstream) => ({ ...legal(upstream, true), headers: { 'content-type': 'text/plain' } }),
    shapes: ['stream'],
    outcome: served(seen),
  },
  {
    id: 'F34',
    name: 'event stream called application/json',
    upstream: sseUpstreams,
    play: (upstream) => ({
      ...legal(upstream, true),
      headers: { 'content-type': 'application/json' },
    }),
    shapes: ['stream'],
    outcome: served(seen),
  },
  {
    id: 'F34 F47',
    name: 'event stream called text/plain, one byte at a time',
    upstream: sseUpstreams,
    play: (upstream) => ({
      ...legal(upstream, true),
      headers: { 'content-type': 'text/plain' },
      split: everyBytes(1),
    }),
    shapes: ['stream'],
    outcome: served(seen),
  },
  {
    id: 'F34 F47',
    name: 'JSON without a content-type, behind white space, one byte at a time',
    play: (upstream) => {
      const text = String(legal(upstream, false).body);
      const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
      return { rawHead: head, body: `\r\n ${text}`, framing: 'chunked', split: everyBytes(1) };
    },
    outcome: served(seen),
  },
];

const encoders = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
};

const compressionRows: readonly FaultRow[] = Object.entries(encoders).map(([encoding, encode]) => ({
  id: 'F32 E9',
  name: `${encoding} though identity was asked for`,
  play: (upstream, stream) => {
    const whole = legal(upstream, stream);
    const body = encode(Buffer.from(joined(whole.body)));
    return {
      headers: {
        'content-encoding': encoding,
        ...(stream ? {} : { 'content-type': 'application/json' }),
      },
      body: [body.subarray(0, 20), body.subarray(20)],
      framing: 'chunked',
    };
  },
  outcome: served(seen),
}));

export const beforeContentRows: readonly FaultRow[] = [
  ...transportRows,
  ...statusRows,
  ...waitRows,
  ...answerRows,
  ...compressionRows,
];
