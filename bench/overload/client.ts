/** Callers of the overload runs: raw sockets with keep-alive, and just enough of an HTTP reader. */
import { connect, type Socket } from 'node:net';
import type { Dialect } from '../protocol.ts';
import { pathOf } from '../bodies.ts';
import { stampDigits, stampMark } from './plans.ts';

export interface Outcome {
  /** 0 = the connection broke before a status came. */
  readonly status: number;
  /** From when the call was due to its last byte. */
  readonly ms: number;
  /** Of them, those until it was sent: its caller's own lateness. */
  readonly lateMs: number;
  /** The answer came to its proper end. */
  readonly whole: boolean;
  readonly retryAfter: boolean;
  /** Of an answer that is not 200: what its error says. */
  readonly says: string;
}

/** What is at the end of a whole stream, in either dialect. */
const done = [Buffer.from('[DONE]'), Buffer.from('message_stop')];
const stamp = Buffer.from(stampMark);
const streamEnd = Buffer.from('0\r\n\r\n');

/** Called with the delay of each stream event, in ms. */
export type Delays = (ms: number) => void;

export class Callers {
  readonly #port: number;
  readonly #delays: Delays | undefined;
  readonly #idle: Socket[] = [];
  running = 0;

  constructor(port: number, delays?: Delays) {
    this.#port = port;
    this.#delays = delays;
  }

  /** Sends the bytes of a request. `dueAt`: when it should have been sent (no coordinated omission). */
  send(request: Buffer, dueAt = performance.now()): Promise<Outcome> {
    this.running += 1;
    const lateMs = performance.now() - dueAt;
    const fresh = this.#idle.length === 0;
    const socket =
      this.#idle.pop() ?? connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    return new Promise((resolve) => {
      const reader = new Reader(this.#delays);
      const finish = (broken: boolean): void => {
        socket.removeAllListeners();
        socket.on('error', () => undefined);
        if (broken || reader.closes) socket.destroy();
        else {
          socket.on('close', () => this.#forget(socket));
          this.#idle.push(socket);
        }
        this.running -= 1;
        resolve({
          status: reader.status,
          ms: performance.now() - dueAt,
          lateMs,
          whole: reader.complete,
          retryAfter: reader.retryAfter,
          says: reader.says,
        });
      };
      socket.removeAllListeners('close');
      socket.on('data', (bytes: Buffer) => {
        reader.push(bytes);
        if (reader.over) finish(false);
      });
      socket.on('error', () => undefined);
      socket.on('close', () => {
        // An idle connection that the gateway closed at this very moment: again, on a new one.
        if (!fresh && reader.status === 0) {
          this.running -= 1;
          resolve(this.send(request, dueAt));
        } else finish(true);
      });
      socket.write(request);
    });
  }

  close(): void {
    for (const socket of this.#idle) socket.destroy();
  }

  #forget(socket: Socket): void {
    const index = this.#idle.indexOf(socket);
    if (index !== -1) this.#idle.splice(index, 1);
  }
}

/** One answer: a document by its length, a stream by its last chunk. */
class Reader {
  status = 0;
  closes = false;
  retryAfter = false;
  over = false;
  complete = false;
  says = '';
  #missing = 0;
  #stream = false;
  #sawDone = false;
  #tail: Buffer = Buffer.alloc(0);
  readonly #delays: Delays | undefined;

  constructor(delays: Delays | undefined) {
    this.#delays = delays;
  }

  push(bytes: Buffer): void {
    let rest = bytes;
    if (this.status === 0) {
      const end = bytes.indexOf('\r\n\r\n');
      // Heads of the gateway come in one piece on loopback.
      const head = bytes.toString('latin1', 0, end).toLowerCase();
      this.status = Number(head.slice(9, 12));
      this.closes = head.includes('\r\nconnection: close');
      this.retryAfter = head.includes('\r\nretry-after: ');
      this.#stream = head.includes('\r\ntransfer-encoding: chunked');
      this.#missing = Number(/\r\ncontent-length: (\d+)/.exec(head)?.[1] ?? 0);
      rest = bytes.subarray(end + 4);
    }
    if (!this.#stream) {
      if (this.status !== 200) this.says += rest.toString();
      this.#missing -= rest.length;
      this.over = this.#missing <= 0;
      this.complete = this.over && this.status === 200;
      return;
    }
    const text = this.#tail.length === 0 ? rest : Buffer.concat([this.#tail, rest]);
    this.over = text.length >= 5 && text.subarray(-5).equals(streamEnd);
    if (done.some((ending) => text.includes(ending))) this.#sawDone = true;
    this.complete = this.over && this.#sawDone;
    this.#tail = Buffer.from(text.subarray(-12));
    if (this.#delays !== undefined) tellDelays(rest, this.#delays);
  }
}

/** A stamp that is cut in two by the reads is omitted. */
function tellDelays(bytes: Buffer, delays: Delays): void {
  const now = performance.timeOrigin + performance.now();
  for (let at = bytes.indexOf(stamp); at !== -1; at = bytes.indexOf(stamp, at + stampDigits)) {
    if (at + 1 + stampDigits > bytes.length) return;
    delays(now - Number(bytes.toString('latin1', at + 1, at + 1 + stampDigits)) / 1000);
  }
}

/** The bytes of a call of the chat endpoint. */
export function chatCall(key: string, body: string | Buffer): Buffer {
  return callOf('openai-chat', key, body);
}

/** The bytes of a call of either endpoint. */
export function callOf(dialect: Dialect, key: string, body: string | Buffer): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const head = chatHead(key, bytes.length).toString('latin1');
  return Buffer.concat([Buffer.from(head.replace(pathOf('openai-chat'), pathOf(dialect))), bytes]);
}

export function chatHead(key: string, length: number): Buffer {
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`,
  );
}

export function chatBody(model: string, { stream }: { readonly stream: boolean }): string {
  return JSON.stringify({ model: `mock/${model}`, messages, ...(stream ? { stream } : {}) });
}

/** A stream in one dialect from an upstream of the other one. */
export function translatedCall(dialect: Dialect, key: string, model: string): Buffer {
  const body =
    dialect === 'openai-chat'
      ? { model: `mock-messages/${model}`, messages, stream: true }
      : { model: `mock/${model}`, max_tokens: 1024, messages, stream: true };
  return callOf(dialect, key, JSON.stringify(body));
}

const messages = [{ role: 'user', content: 'How are the lights of the harbour? '.repeat(30) }];

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
