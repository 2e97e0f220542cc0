/**
 * The mock upstream: a child process that answers the path of each dialect with
 * hand-built HTTP/1.1 on raw sockets, so that it costs a fraction of what is measured. It answers as
 * the last plan from its parent says. Streams are paced: at most one chunk a stream a millisecond, the
 * phases of the streams spread evenly, one write per chunk, as a vendor's stream arrives.
 */
import { writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { pathOf, streamFrames, unaryAnswer } from './bodies.ts';
import { cloudFrames, cloudPathOf } from './cloud-answers.ts';
import {
  cloudUpstreams,
  dialects,
  isPlan,
  perDialect,
  type CloudUpstream,
  type Dialect,
  type MockPlan,
  type Upstream,
} from './protocol.ts';
import { blankStamp, monotonicUs, stamped } from './stamps.ts';

const headEnd = Buffer.from('\r\n\r\n');

/** Spreads the phases of streams evenly over the interval, whatever their number. */
const goldenRatio = 0.618_033_988_749;

let plan: MockPlan = { kind: 'unary' };
let opened = 0;
let pacing = false;
const streams = new Set<PacedStream>();

const unaryBytes = perDialect((dialect) => whole(unaryAnswer(dialect)));

interface StreamBytes {
  readonly opening: Buffer;
  readonly contents: readonly Buffer[];
  readonly closing: Buffer;
}

let streamBytes: Record<Upstream, StreamBytes> = framesOf(0, false);

/** One open answer. */
interface PacedStream {
  readonly socket: Socket;
  readonly bytes: StreamBytes;
  readonly chunks: number;
  readonly intervalMs: number;
  readonly stamped: boolean;
  readonly together: boolean;
  dueAt: number;
  sent: number;
}

const server = createServer({ noDelay: true }, (socket) => {
  const requests = new RequestReader();
  socket.on('data', (bytes: Buffer) => {
    const outcome = requests.push(bytes);
    if (outcome === 'incomplete') return;
    answer(socket, outcome);
  });
  const forget = (): void => {
    for (const stream of streams) if (stream.socket === socket) streams.delete(stream);
  };
  socket.on('error', forget);
  socket.on('close', forget);
});

/** Reads one request after the other; the gateway does not pipeline towards an upstream. */
class RequestReader {
  private head = '';
  private kept: Buffer | undefined;
  private missing = 0;
  private asksStream = false;

  push(received: Buffer): Request | 'incomplete' {
    let bytes = received;
    if (this.missing === 0) {
      if (this.kept !== undefined) bytes = Buffer.concat([this.kept, received]);
      const end = bytes.indexOf(headEnd);
      this.kept = end === -1 ? bytes : undefined;
      if (end === -1) return 'incomplete';
      this.head = bytes.toString('latin1', 0, end);
      const length = /\r\ncontent-length: ?(\d+)/i.exec(this.head)?.[1];
      if (length === undefined) return { fault: 'the request has no content-length' };
      this.missing = Number(length);
      this.asksStream = false;
      bytes = bytes.subarray(end + 4);
    }
    if (plan.kind === 'stream')
      this.asksStream ||= /"stream": ?true/.test(bytes.toString('latin1'));
    this.missing -= bytes.length;
    return this.missing > 0 ? 'incomplete' : this.request();
  }

  private request(): Request {
    const cloud = cloudUpstreams.find((each) => this.head.startsWith(`POST ${cloudPathOf(each)} `));
    // Their paths request streams.
    if (cloud !== undefined && plan.kind === 'stream') return { upstream: cloud };
    const dialect = dialects.find((dialect) => this.head.startsWith(`POST ${pathOf(dialect)} `));
    if (dialect === undefined) return { fault: `unknown path: ${this.head.split('\r\n', 1)[0]}` };
    return plan.kind === 'stream' && !this.asksStream
      ? { fault: 'a stream is planned and "stream": true was not asked' }
      : { upstream: dialect };
  }
}

type Request = { readonly upstream: Upstream } | { readonly fault: string };

function answer(socket: Socket, request: Request): void {
  if ('fault' in request) {
    const body = JSON.stringify({ error: { type: 'mock', message: request.fault } });
    socket.end(
      `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    );
    return;
  }
  if (plan.kind === 'unary') {
    const { upstream } = request;
    if (!isCloud(upstream)) socket.write(unaryBytes[upstream]);
    return;
  }
  const bytes = streamBytes[request.upstream];
  const intervalMs = 1000 / plan.chunksPerSecond;
  const { chunks, stamped: isStamped = false, together = false } = plan;
  opened += 1;
  const phase = (opened * goldenRatio) % 1;
  const now = performance.now();
  const [first] = bytes.contents;
  if (isStamped && first !== undefined) {
    // The first token comes with the head: who waits for it before he answers is not slow for that.
    socket.write(Buffer.concat([bytes.opening, stamped(first, monotonicUs(now))]));
  } else {
    socket.write(bytes.opening);
  }
  const firstDue = (): number => {
    if (together) return nextTick(now + 1, intervalMs);
    return isStamped ? now + intervalMs : now + 1 + phase * intervalMs;
  };
  streams.add({
    socket,
    bytes,
    chunks,
    intervalMs,
    stamped: isStamped,
    together,
    dueAt: firstDue(),
    sent: isStamped ? 1 : 0,
  });
  if (!pacing) setImmediate(pace);
  pacing = true;
}

/** The next moment at which the chunks of all streams are due together. */
function nextTick(after: number, intervalMs: number): number {
  return (Math.floor(after / intervalMs) + 1) * intervalMs;
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** The longest that new requests wait for the pacer, and how late a sleep usually ends, in ms. */
const maxSleepMs = 0.3;
const lateMs = 0.02;

/**
 * Writes what is due, sleeps until the next chunk is, and looks after the sockets. Timers of Node tick
 * in whole milliseconds, a wait on memory without a writer in microseconds.
 */
function pace(): void {
  const nextDue = writeDue(performance.now());
  const sleepMs = Math.min(maxSleepMs, nextDue - performance.now() - lateMs);
  if (sleepMs > 0) Atomics.wait(sleeper, 0, 0, sleepMs);
  pacing = streams.size > 0;
  if (pacing) setImmediate(pace);
}

/** The time at which the next chunk is due. */
function writeDue(now: number): number {
  let nextDue = Number.POSITIVE_INFINITY;
  for (const stream of streams) {
    if (stream.dueAt > now) {
      nextDue = Math.min(nextDue, stream.dueAt);
      continue;
    }
    if (stream.sent === stream.chunks) {
      streams.delete(stream);
      stream.socket.write(stream.bytes.closing);
      continue;
    }
    const content = stream.bytes.contents[stream.sent % stream.bytes.contents.length];
    if (content !== undefined) {
      const due = stream.stamped ? stamped(content, monotonicUs(stream.dueAt)) : content;
      stream.socket.write(due);
    }
    stream.sent += 1;
    // When late, the schedule moves: two chunks in one read would cost half and flatter the result.
    stream.dueAt = stream.together
      ? nextTick(now, stream.intervalMs)
      : Math.max(stream.dueAt + stream.intervalMs, now + stream.intervalMs / 2);
    nextDue = Math.min(nextDue, stream.dueAt);
  }
  return nextDue;
}

function whole(body: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: req_bench\r\n\r\n${body}`,
  );
}

function isCloud(upstream: Upstream): upstream is CloudUpstream {
  return cloudUpstreams.some((each) => each === upstream);
}

function framesOf(chunks: number, withStamps: boolean): Record<Upstream, StreamBytes> {
  const build = (dialect: Dialect): StreamBytes => {
    const frames = streamFrames(dialect, chunks, withStamps ? blankStamp : '');
    return {
      opening: Buffer.from(
        headOf('text/event-stream; charset=utf-8') + frames.opening.map(chunked).join(''),
      ),
      contents: frames.contents.map((frame) => Buffer.from(chunked(frame))),
      closing: Buffer.from(`${frames.closing.map(chunked).join('')}0\r\n\r\n`),
    };
  };
  const ofCloud = (upstream: CloudUpstream): StreamBytes => {
    const { contentType, opening, contents, closing } = cloudFrames(upstream, chunks);
    return {
      opening: Buffer.concat([Buffer.from(headOf(contentType)), ...opening.map(chunkedBytes)]),
      contents: contents.map(chunkedBytes),
      closing: Buffer.concat([...closing.map(chunkedBytes), Buffer.from('0\r\n\r\n')]),
    };
  };
  return {
    ...perDialect(build),
    gemini: ofCloud('gemini'),
    'bedrock-converse': ofCloud('bedrock-converse'),
    'bedrock-invoke': ofCloud('bedrock-invoke'),
  };
}

function headOf(contentType: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: ${contentType}\r\ncache-control: no-cache\r\nx-request-id: req_bench\r\ntransfer-encoding: chunked\r\n\r\n`;
}

function chunkedBytes(frame: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`${frame.length.toString(16)}\r\n`),
    frame,
    Buffer.from('\r\n'),
  ]);
}

function chunked(frame: string): string {
  return `${Buffer.byteLength(frame).toString(16)}\r\n${frame}\r\n`;
}

process.on('message', (message: unknown) => {
  if (!isPlan(message)) return;
  plan = message;
  if (plan.kind === 'stream') streamBytes = framesOf(plan.chunks, plan.stamped ?? false);
  for (const stream of streams) stream.socket.destroy();
  process.send?.({ kind: 'ready' });
});
// Linux lets a sleep last 50 µs longer than asked, as long as the gap between two chunks.
writeFileSync('/proc/self/timerslack_ns', '1');
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', 4096, () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port });
});
