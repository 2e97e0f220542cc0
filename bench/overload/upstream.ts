/**
 * The upstream of the overload runs, a child process on raw sockets. The name of the model says what it
 * answers: `unary`; `stream-CHUNKS-RATE`, paced; `hold-RATE`, paced until the parent says the end; `flood`,
 * a stream without an end that respects a full
 * socket. Streams are written by one timer, so that thousands of them cost little.
 */
import { createServer, type Socket } from 'node:net';
import { streamFrames, unaryAnswer } from '../bodies.ts';

const tickMs = 10;
const headEnd = Buffer.from('\r\n\r\n');
const unary = unaryAnswer('openai-chat');
const unaryBytes = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(unary)}\r\n\r\n${unary}`,
);
const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const floodText = 'x'.repeat(15_000);

interface Plan {
  readonly opening: Buffer;
  readonly contents: readonly Buffer[];
  readonly closing: Buffer;
  readonly everyTicks: number;
  /** Goes on until the end is said. */
  readonly held: boolean;
}

interface Stream {
  readonly socket: Socket;
  readonly plan: Plan;
  sent: number;
}

const plans = new Map<string, Plan>();
/** Streams by the tick at which they are due. */
const due = new Map<number, Stream[]>();
let tick = 0;
let ending = false;

function planOf(model: string, chunks: number, perSecond: number): Plan {
  const known = plans.get(model);
  if (known !== undefined) return known;
  const frames = streamFrames('openai-chat', chunks);
  const plan = {
    opening: Buffer.from(streamHead + frames.opening.map(chunked).join('')),
    contents: frames.contents.map((frame) => Buffer.from(chunked(frame))),
    closing: Buffer.from(`${frames.closing.map(chunked).join('')}0\r\n\r\n`),
    everyTicks: Math.max(1, Math.round(1000 / perSecond / tickMs)),
    held: model.startsWith('hold'),
  };
  plans.set(model, plan);
  return plan;
}

function chunked(frame: string): string {
  return `${Buffer.byteLength(frame).toString(16)}\r\n${frame}\r\n`;
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
    for (const stream of streams) write(stream, now);
  }
}, tickMs);

function write(stream: Stream, now: number): void {
  const { socket, plan } = stream;
  if (socket.destroyed) return;
  const content = plan.held
    ? ending
      ? undefined
      : plan.contents[stream.sent % plan.contents.length]
    : plan.contents[stream.sent];
  if (content === undefined) {
    socket.write(plan.closing);
    return;
  }
  socket.write(content);
  stream.sent += 1;
  schedule(stream, now + plan.everyTicks);
}

function answer(socket: Socket, body: string): void {
  const model = /"model": ?"([^"]+)"/.exec(body)?.[1] ?? '';
  const [kind, chunks, perSecond] = model.split('-');
  if (kind === 'flood') flood(socket);
  else if (kind !== 'stream' && kind !== 'hold') socket.write(unaryBytes);
  else {
    const held = kind === 'hold';
    const plan = planOf(model, held ? 100 : Number(chunks), Number(held ? chunks : perSecond));
    socket.write(plan.opening);
    const phase = Math.floor(Math.random() * plan.everyTicks);
    schedule({ socket, plan, sent: 0 }, tick + 1 + phase);
  }
}

let flooded = 0;

function flood(socket: Socket): void {
  const delta = { choices: [{ index: 0, delta: { content: floodText }, finish_reason: null }] };
  const frame = Buffer.from(chunked(`data: ${JSON.stringify({ id: 'flood', ...delta })}\n\n`));
  socket.write(streamHead);
  const more = (): void => {
    while (!socket.destroyed) {
      flooded += frame.length;
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
  socket.on('error', () => undefined);
  socket.on('data', (bytes: Buffer) => {
    let rest = bytes;
    if (missing === 0) {
      kept = kept.length === 0 ? bytes : Buffer.concat([kept, bytes]);
      const end = kept.indexOf(headEnd);
      if (end === -1) return;
      missing = Number(
        /\r\ncontent-length: ?(\d+)/i.exec(kept.toString('latin1', 0, end))?.[1] ?? 0,
      );
      rest = kept.subarray(end + 4);
      kept = Buffer.alloc(0);
      body = '';
    }
    missing -= rest.length;
    // The model stands at the beginning of all bodies here.
    if (body.length < 4096) body += rest.toString('latin1', 0, 4096);
    if (missing <= 0) answer(socket, body);
  });
});

process.on('message', (message: object) => {
  if ('end' in message) ending = true;
  process.send?.({ flooded });
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', 4096, () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port });
});
