/**
 * A provider that plays scripts over real sockets, on `net` alone, so that it can do what no HTTP
 * library lets a server do: half an answer, a reset, one byte at a time, headers that lie.
 *
 * A script is set per model name; each request of that model plays the next answer of its list, the
 * last one for ever. Every request is kept byte for byte, and so is who closed its socket.
 */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';

/** Bytes to send, or something to wait for before the next bytes, or texts as they come, until the other side leaves. */
export type Piece = string | Buffer | Promise<unknown> | AsyncIterable<string>;

export interface Answer {
  readonly status?: number;
  /** Added to, or with the same name instead of, the default headers. */
  readonly headers?: { readonly [name: string]: string };
  readonly body: string | Buffer | readonly Piece[];
  /**
   * How the body's end is known: `length` (content-length), `chunked`, `close` (end of connection).
   * Default: `length` for a whole body, `chunked` for a list of pieces.
   */
  readonly framing?: 'length' | 'chunked' | 'close';
  /** Cuts each piece into parts; each part becomes one HTTP chunk, hence one read in the client. */
  readonly split?: (bytes: Buffer) => readonly Buffer[];
  /**
   * What happens behind the last piece: `proper` end, connection `reset`, `fin` without the proper
   * end, or `hang`: silence until the other side leaves.
   */
  readonly ending?: 'proper' | 'reset' | 'fin' | 'hang';
  /** Bytes that replace the status line and headers. */
  readonly rawHead?: string;
  /** Lines behind the last chunk, each with its CR LF. */
  readonly trailers?: string;
  /** Bytes behind the proper end. */
  readonly trailing?: string;
  /** Nothing at all is sent, only the ending happens. */
  readonly mute?: true;
}

/** An answer, or how to make it from the request. */
export type Scripted = Answer | ((request: Received) => Answer);

/** One request as it came in. */
export interface Received {
  readonly method: string;
  readonly path: string;
  /** Name and value as they stood on the wire, in order. */
  readonly headerLines: readonly (readonly [string, string])[];
  readonly body: Buffer;
  readonly json: JsonObject;
  /** A header by its lower-case name. */
  header(name: string): string | undefined;
  /** Resolves when the socket is closed; tells whether the gateway did it. */
  readonly closed: Promise<'gateway' | 'upstream'>;
  /** The answer was sent to its end. */
  readonly answered: Promise<void>;
}

export interface Script {
  readonly requests: readonly Received[];
  /** Resolves with the n-th request (0 = first) once it is there. */
  request(index: number): Promise<Received>;
}

interface LiveScript extends Script {
  readonly requests: Received[];
  readonly answers: readonly Scripted[];
  readonly waiting: (() => void)[];
}

export class ScriptedUpstream {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #scripts = new Map<string, LiveScript>();
  readonly #streamType: string;
  readonly #resetting = new Set<string>();
  /** Requests that no script was there for. */
  readonly unexpected: Received[] = [];
  /** All requests, in order. */
  readonly all: Received[] = [];

  private constructor(streamType: string) {
    this.#streamType = streamType;
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      this.#serve(socket);
    });
  }

  /** @param streamType the content type of streams that name none */
  static async start(streamType = 'text/event-stream; charset=utf-8'): Promise<ScriptedUpstream> {
    const upstream = new ScriptedUpstream(streamType);
    await new Promise<void>((resolve) => upstream.#server.listen(0, '127.0.0.1', resolve));
    return upstream;
  }

  get port(): number {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return address.port;
  }

  /** Sets what requests for a model get; without answers a request for it is `unexpected`. */
  script(model: string, ...answers: readonly Scripted[]): Script {
    const requests: Received[] = [];
    const waiting: (() => void)[] = [];
    const script: LiveScript = {
      answers,
      requests,
      waiting,
      request: async (index) => {
        for (;;) {
          const request = requests[index];
          if (request !== undefined) return request;
          await new Promise<void>((resolve) => waiting.push(resolve));
        }
      },
    };
    this.#scripts.set(model, script);
    return script;
  }

  /** Requests for the model are reset while they are still being sent, as soon as their model is known. */
  resetUploads(model: string): void {
    this.#resetting.add(model);
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#sockets.size;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    let bytes: Buffer = Buffer.alloc(0);
    // The rest of a long body is put together once: at each chunk it would be copied hundreds of times.
    let rest: Buffer[] = [];
    let received = 0;
    let busy = false;
    let peerEnded = false;
    const closed = Promise.withResolvers<'gateway' | 'upstream'>();
    const owner = { endedByUs: false };
    const next = async (): Promise<void> => {
      if (busy) return;
      busy = true;
      for (;;) {
        const parsed = parseRequest(bytes, closed.promise);
        if (parsed === undefined) break;
        bytes = bytes.subarray(parsed.length);
        await this.#answer(parsed, socket, owner);
      }
      busy = false;
      if (peerEnded) socket.end();
    };
    socket.on('data', (chunk: Buffer) => {
      rest.push(chunk);
      received += chunk.length;
      if (bytes.length + received < lengthOfLong(bytes)) return;
      bytes = Buffer.concat([bytes, ...rest]);
      rest = [];
      received = 0;
      if (this.#resetting.has(modelSoFar(bytes))) {
        owner.endedByUs = true;
        socket.resetAndDestroy();
      } else void next();
    });
    socket.on('end', () => {
      // The gateway closed its half; a hanging script must see that as a close.
      peerEnded = true;
      socket.end();
      closed.resolve(owner.endedByUs ? 'upstream' : 'gateway');
    });
    socket.on('error', () => undefined);
    socket.on('close', () => closed.resolve(owner.endedByUs ? 'upstream' : 'gateway'));
  }

  async #answer(
    parsed: ParsedRequest,
    socket: Socket,
    owner: { endedByUs: boolean },
  ): Promise<void> {
    const { received, markAnswered } = parsed;
    this.all.push(received);
    const script = this.#scripts.get(received.path) ?? this.#scripts.get(modelIn(received));
    if (script === undefined) this.unexpected.push(received);
    const answer = script?.answers[Math.min(script.requests.length, script.answers.length - 1)];
    script?.requests.push(received);
    for (const wake of script?.waiting.splice(0) ?? []) wake();
    const chosen = typeof answer === 'function' ? answer(received) : answer;
    const { closed } = received;
    const streamType = this.#streamType;
    await play(chosen ?? unscripted, { socket, owner, closed, streamType });
    markAnswered();
  }
}

/** The model of a request: in its body, or in its path; else the path. */
export function modelIn({ json, path }: Received): string {
  const { model } = json;
  return typeof model === 'string' ? model : (modelOfPath(path) ?? path);
}

/** `/models/NAME:method` of Gemini, `/model/NAME/method` of Bedrock. */
function modelOfPath(path: string): string | undefined {
  const named = /\/models\/([^/:?]+):|\/model\/([^/]+)\/converse/.exec(path)?.slice(1).join('');
  return named === undefined ? undefined : decodeURIComponent(named);
}

/** Whether a request asks for a stream: in its body, or by its address. */
export function wantsStream({ json, path }: Pick<Received, 'json' | 'path'>): boolean {
  return json['stream'] === true || /:streamGenerateContent|\/converse-stream$/.test(path);
}

const unscripted: Answer = {
  status: 599,
  body: JSON.stringify({ error: { message: 'no script for this request' } }),
};

interface Stage {
  readonly socket: Socket;
  readonly owner: { endedByUs: boolean };
  readonly closed: Promise<unknown>;
  readonly streamType: string;
}

async function play(answer: Answer, { socket, owner, closed, streamType }: Stage): Promise<void> {
  const pieces = pieceList(answer.body);
  const framing = answer.framing ?? (Array.isArray(answer.body) ? 'chunked' : 'length');
  const end = answer.ending ?? (framing === 'close' ? 'fin' : 'proper');
  if (answer.mute !== true) {
    const total = pieces.reduce((sum, piece) => sum + byteLength(piece), 0);
    socket.write(answer.rawHead ?? head(answer, framing, { total, streamType }));
    for (const piece of pieces) {
      if (piece instanceof Promise) {
        await Promise.race([piece, closed]);
        continue;
      }
      if (typeof piece === 'string' || Buffer.isBuffer(piece)) {
        await sendPiece(socket, asBuffer(piece), answer.split, framing);
        continue;
      }
      for await (const text of piece) {
        if (!socket.writable) break;
        await sendPiece(socket, asBuffer(text), answer.split, framing);
      }
    }
    if (end === 'proper' && framing === 'chunked') {
      socket.write(`0\r\n${answer.trailers ?? ''}\r\n${answer.trailing ?? ''}`);
    }
  }
  if (end === 'reset') {
    owner.endedByUs = true;
    socket.resetAndDestroy();
  } else if (end === 'fin') {
    owner.endedByUs = true;
    socket.end();
  } else if (end === 'hang') {
    await closed;
  }
}

function pieceList(body: Answer['body']): readonly Piece[] {
  return typeof body === 'string' || Buffer.isBuffer(body) ? [body] : body;
}

function byteLength(piece: Piece): number {
  return typeof piece === 'string' || Buffer.isBuffer(piece) ? Buffer.byteLength(piece) : 0;
}

function asBuffer(piece: string | Buffer): Buffer {
  return typeof piece === 'string' ? Buffer.from(piece) : piece;
}

function head(
  answer: Answer,
  framing: 'length' | 'chunked' | 'close',
  { total, streamType }: { readonly total: number; readonly streamType: string },
): string {
  const headers: Record<string, string> = {
    'content-type': framing === 'length' ? 'application/json' : streamType,
    ...(framing === 'length' ? { 'content-length': String(total) } : {}),
    ...(framing === 'chunked' ? { 'transfer-encoding': 'chunked' } : {}),
    ...(framing === 'close' ? { connection: 'close' } : {}),
    ...answer.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${answer.status ?? 200} Scripted\r\n${lines.join('')}\r\n`;
}

async function sendPiece(
  socket: Socket,
  bytes: Buffer,
  split: Answer['split'],
  framing: 'length' | 'chunked' | 'close',
): Promise<void> {
  const parts = split === undefined ? [bytes] : split(bytes);
  if (framing !== 'chunked') {
    for (const part of parts) await write(socket, part);
    return;
  }
  const framed = parts
    .filter((part) => part.length > 0)
    .flatMap((part) => [Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]);
  await write(socket, Buffer.concat(framed));
}

/** Resolves when the bytes were handed to the kernel, or when the socket is gone. */
function write(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed || !socket.writable) resolve();
    else socket.write(bytes, () => resolve());
  });
}

interface ParsedRequest {
  readonly received: Received;
  readonly markAnswered: () => void;
  /** Bytes that the request took. */
  readonly length: number;
}

/** The model of a request that may not be there as a whole; '' while it is not known. */
function modelSoFar(bytes: Buffer): string {
  const start = bytes.indexOf('\r\n\r\n');
  if (start === -1) return '';
  const [, path = ''] = bytes.toString('latin1', 0, bytes.indexOf('\r\n')).split(' ');
  const named = modelOfPath(path);
  if (named !== undefined) return named;
  return /"model":"([^"]*)"/.exec(bytes.toString('latin1', start, start + 4096))?.[1] ?? '';
}

/** The bytes of a request whose head and a few more are there; 0 while they are not. */
function lengthOfLong(bytes: Buffer): number {
  if (bytes.length < 32_768) return 0;
  const headEnd = bytes.indexOf('\r\n\r\n');
  const length = /^content-length: *(\d+)/im.exec(bytes.toString('latin1', 0, headEnd))?.[1];
  return headEnd === -1 || length === undefined ? 0 : headEnd + 4 + Number(length);
}

/** Reads one request with a content-length (the gateway sends no other), or none yet. */
function parseRequest(
  bytes: Buffer,
  closed: Promise<'gateway' | 'upstream'>,
): ParsedRequest | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const [requestLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const [method = '', path = ''] = requestLine.split(' ');
  const headerLines = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const header = (name: string): string | undefined =>
    headerLines.find(([key]) => key.toLowerCase() === name)?.[1];
  const length = headEnd + 4 + Number(header('content-length') ?? '0');
  if (header('transfer-encoding') !== undefined) throw new Error('unexpected chunked request');
  if (bytes.length < length) return undefined;
  const body = Buffer.from(bytes.subarray(headEnd + 4, length));
  const json = tryParseObject(body.toString('utf8'));
  const answered = Promise.withResolvers<void>();
  return {
    length,
    markAnswered: () => answered.resolve(),
    received: {
      method,
      path,
      headerLines,
      header,
      body,
      json: isObject(json) ? json : {},
      closed,
      answered: answered.promise,
    },
  };
}

/** Splits into parts of n bytes. */
export function everyBytes(n: number): (bytes: Buffer) => readonly Buffer[] {
  return (bytes) => {
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += n) parts.push(bytes.subarray(at, at + n));
    return parts;
  };
}

/** Splits at random places, the same for the same seed; parts are 1…`longest` bytes. */
export function randomSplit(seed: number, longest: number): (bytes: Buffer) => readonly Buffer[] {
  return (bytes) => {
    let state = seed;
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length;) {
      // A linear congruential generator is enough to vary places, and is the same everywhere.
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const size = 1 + ((state >>> 8) % longest);
      parts.push(bytes.subarray(at, at + size));
      at += size;
    }
    return parts;
  };
}
