/** A client of a history: raw bytes out, raw bytes in, and it may leave or stop reading at any moment. */
import type { JsonObject } from '../../src/json/value.ts';
import type { Dialect } from '../support/reading.ts';
import { endpointOf } from '../support/requests.ts';
import type { Dice } from './dice.ts';
import type { Link } from './link.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface Ask {
  /** Unique in the history; the providers read it in the message. */
  readonly call: number;
  readonly dialect: Dialect;
  readonly model: string;
  readonly stream: boolean;
  readonly cap: number;
  readonly key: string;
  /** Ms from the first byte on, after which it leaves; undefined = it stays. */
  readonly leaves: number | undefined;
  /** How it leaves. */
  readonly how: 'reset' | 'fin' | 'close';
  /** How long it reads nothing once the answer has begun; Infinity = it never reads on. */
  readonly stops: number | undefined;
  /** Ms between the parts in which it sends its request. */
  readonly slowness: number;
}

/** What a client saw of one call. */
export interface Heard {
  readonly ask: Ask;
  /** All bytes of the request were written. */
  sent: boolean;
  left: boolean;
  /** The gateway died, or closed the connection. */
  closed: boolean;
  bytes: Buffer;
  response: Response | undefined;
}

export interface Response {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  /** It ended as HTTP says that it ends. */
  readonly complete: boolean;
  /** Bytes came behind its end. */
  readonly surplus: number;
}

export interface ClientDeps {
  readonly time: VirtualTime;
  readonly dice: Dice;
  readonly connect: () => Link;
}

export function requestOf(ask: Ask): Buffer {
  const messages = [{ role: 'user', content: `This is call ${ask.call} of a history.` }];
  const user = `c${ask.call}`;
  const more: JsonObject =
    ask.dialect === 'chat'
      ? { user, ...(ask.stream ? { stream_options: { include_usage: true } } : {}) }
      : { metadata: { user_id: user } };
  const body = { model: ask.model, messages, stream: ask.stream, max_tokens: ask.cap, ...more };
  const text = JSON.stringify(body);
  return Buffer.from(
    `POST ${endpointOf[ask.dialect]} HTTP/1.1\r\nhost: gateway.test\r\n` +
      `authorization: Bearer ${ask.key}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

/** Begins the call; what comes of it is in the result, whenever one looks. */
export function call(ask: Ask, { time, dice, connect }: ClientDeps): Heard {
  const link = connect();
  const socket = link.near;
  const heard: Heard = {
    ask,
    sent: false,
    left: false,
    closed: false,
    bytes: Buffer.alloc(0),
    response: undefined,
  };
  socket.on('data', (chunk: Buffer) => {
    heard.bytes = Buffer.concat([heard.bytes, chunk]);
    heard.response = readResponse(heard.bytes, heard.closed);
    if (heard.response?.complete === true && !heard.left) return socket.destroy();
    if (ask.stops !== undefined && !socket.isPaused()) {
      socket.pause();
      if (Number.isFinite(ask.stops)) time.after(ask.stops, () => socket.resume());
    }
    return undefined;
  });
  const over = (): void => {
    heard.closed = true;
    heard.response = readResponse(heard.bytes, true);
  };
  socket.on('end', over);
  socket.on('close', over);
  const request = requestOf(ask);
  const cut = ask.slowness === 0 ? request.length : dice.int(1, request.length - 1);
  socket.write(request.subarray(0, cut));
  const rest = (): void => {
    if (socket.destroyed) return;
    if (cut < request.length) socket.write(request.subarray(cut));
    heard.sent = true;
  };
  if (ask.slowness === 0) rest();
  else time.after(ask.slowness, rest);
  if (ask.leaves !== undefined) {
    time.after(ask.leaves, () => {
      if (heard.closed || heard.response?.complete === true) return;
      heard.left = true;
      socket.resume();
      if (ask.how === 'fin') socket.end();
      else if (ask.how === 'reset') socket.reset();
      else socket.destroy();
    });
  }
  return heard;
}

/** What there is of a response; undefined before its head is whole. */
export function readResponse(bytes: Buffer, closed: boolean): Response | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const status = Number(statusLine.split(' ')[1]);
  const rest = bytes.subarray(headEnd + 4);
  const length = headers.get('content-length');
  const whole =
    headers.get('transfer-encoding') === 'chunked'
      ? dechunk(rest)
      : length === undefined
        ? { body: rest, complete: closed, used: rest.length }
        : {
            body: rest.subarray(0, Number(length)),
            complete: rest.length >= Number(length),
            used: Math.min(rest.length, Number(length)),
          };
  return {
    status,
    headers,
    body: whole.body.toString('utf8'),
    complete: whole.complete,
    surplus: rest.length - whole.used,
  };
}

function dechunk(bytes: Buffer): { body: Buffer; complete: boolean; used: number } {
  const pieces: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) break;
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    const from = lineEnd + 2;
    if (bytes.length < from + size + 2) {
      pieces.push(bytes.subarray(from, from + size));
      break;
    }
    at = from + size + 2;
    if (size === 0) return { body: Buffer.concat(pieces), complete: true, used: at };
    pieces.push(bytes.subarray(from, from + size));
  }
  return { body: Buffer.concat(pieces), complete: false, used: bytes.length };
}
