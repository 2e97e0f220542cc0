/**
 * The upstream of the overload runs, a child process on raw sockets, in each dialect; `plans.ts` says what
 * it answers. Streams are written by one timer, so that thousands of them cost little. It tells its parent
 * what it has counted whenever it is asked.
 */
import { createServer, type Socket } from 'node:net';
import { pathOf, promptTokens, unaryAnswer, unaryTokens } from '../bodies.ts';
import { dialects, perDialect, type Dialect } from '../protocol.ts';
import { chunked, planOf, type Plan } from './plans.ts';

const tickMs = 10;
const headEnd = Buffer.from('\r\n\r\n');
const unary = perDialect(unaryBytes);
const floodText = 'x'.repeat(15_000);
const floodHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';

interface Stream {
  readonly socket: Socket;
  readonly plan: Plan;
  sent: number;
}

/** Bytes of endless streams; calls that were answered, and the tokens that they reported. */
const counted = { flooded: 0, calls: 0, tokens: 0 };
/** Streams by the tick at which they are due. */
const due = new Map<number, Stream[]>();
let tick = 0;
let ending = false;

function unaryBytes(dialect: Dialect): Buffer {
  const text = unaryAnswer(dialect);
  return Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

function schedule(stream: Stream, atTick: number): void {
  const list = due.get(atTick);
  if (list === undefined) due.set(atTick, [stream]);
  else list.push(stream);
}

const startedAt = performance.now();
setInterval(() => {
  const now = Math.floor((performance.now() - startedAt) / tickMs);
  for (; tick <= now; tick++) {
    const streams = due.get(tick) ?? [];
    due.delete(tick);
    for (const stream of streams) write(stream);
  }
}, tickMs);

function write(stream: Stream): void {
  const { socket, plan } = stream;
  if (socket.destroyed) return;
  const isOver = plan.writes === Number.POSITIVE_INFINITY ? ending : stream.sent === plan.writes;
  if (isOver) {
    const contents = stream.sent * plan.together;
    socket.write(plan.closing(contents));
    count(contents);
    return;
  }
  socket.write(plan.piece());
  stream.sent += 1;
  schedule(stream, tick + everyTicks(plan));
}

function everyTicks({ perSecond }: Plan): number {
  return Math.max(1, Math.round(1000 / perSecond / tickMs));
}

function count(outputTokens: number): void {
  counted.calls += 1;
  counted.tokens += promptTokens + outputTokens;
}

function answer(socket: Socket, dialect: Dialect, body: string): void {
  // Who asks without a gateway names its provider as well.
  const model = /"model": ?"([^"]+)"/.exec(body)?.[1]?.split('/').at(-1) ?? '';
  if (model === 'flood') return flood(socket);
  const plan = planOf(dialect, model);
  if (plan === undefined) {
    socket.write(unary[dialect]);
    count(unaryTokens);
    return;
  }
  socket.write(plan.opening);
  schedule({ socket, plan, sent: 0 }, tick + 1 + Math.floor(Math.random() * everyTicks(plan)));
}

function flood(socket: Socket): void {
  const delta = { choices: [{ index: 0, delta: { content: floodText }, finish_reason: null }] };
  const frame = Buffer.from(chunked(`data: ${JSON.stringify({ id: 'flood', ...delta })}\n\n`));
  socket.write(floodHead);
  const more = (): void => {
    while (!socket.destroyed) {
      counted.flooded += frame.length;
      if (!socket.write(frame)) return;
    }
  };
  socket.on('drain', more);
  more();
}

const server = createServer({ noDelay: true }, (socket) => {
  let kept: Buffer = Buffer.alloc(0);
  let missing = 0;
  let body = '';
  let dialect: Dialect = 'openai-chat';
  socket.on('error', () => undefined);
  socket.on('data', (bytes: Buffer) => {
    let rest = bytes;
    if (missing === 0) {
      kept = kept.length === 0 ? bytes : Buffer.concat([kept, bytes]);
      const end = kept.indexOf(headEnd);
      if (end === -1) return;
      const head = kept.toString('latin1', 0, end);
      dialect = dialects.find((each) => head.startsWith(`POST ${pathOf(each)} `)) ?? 'openai-chat';
      missing = Number(/\r\ncontent-length: ?(\d+)/i.exec(head)?.[1] ?? 0);
      rest = kept.subarray(end + 4);
      kept = Buffer.alloc(0);
      body = '';
    }
    missing -= rest.length;
    // The model is at the beginning of all bodies here.
    if (body.length < 4096) body += rest.toString('latin1', 0, 4096);
    if (missing <= 0) answer(socket, dialect, body);
  });
});

process.on('message', (message: object) => {
  if ('end' in message) ending = true;
  process.send?.(counted);
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', 4096, () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port });
});
