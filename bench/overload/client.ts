/** Callers of the overload runs: raw sockets with keep-alive, and just enough of an HTTP reader. */
import { connect, type Socket } from 'node:net';

export interface Outcome {
  /** 0 = the connection broke before a status came. */
  readonly status: number;
  /** From when the call was due to its last byte. */
  readonly ms: number;
  /** The answer came to its proper end. */
  readonly whole: boolean;
  readonly retryAfter: boolean;
}

const done = Buffer.from('[DONE]');
const streamEnd = Buffer.from('0\r\n\r\n');

export class Callers {
  readonly #port: number;
  readonly #idle: Socket[] = [];
  running = 0;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends the bytes of a request. `dueAt`: when it should have been sent (no coordinated omission). */
  send(request: Buffer, dueAt = performance.now()): Promise<Outcome> {
    this.running += 1;
    const fresh = this.#idle.length === 0;
    const socket =
      this.#idle.pop() ?? connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    return new Promise((resolve) => {
      const reader = new Reader();
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
          whole: reader.complete,
          retryAfter: reader.retryAfter,
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
  #missing = 0;
  #stream = false;
  #sawDone = false;
  #tail: Buffer = Buffer.alloc(0);

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
      this.#missing -= rest.length;
      this.over = this.#missing <= 0;
      this.complete = this.over && this.status === 200;
      return;
    }
    const text = this.#tail.length === 0 ? rest : Buffer.concat([this.#tail, rest]);
    if (text.includes(done)) this.#sawDone = true;
    this.over = text.length >= 5 && text.subarray(-5).equals(streamEnd);
    this.complete = this.over && this.#sawDone;
    this.#tail = Buffer.from(text.subarray(-8));
  }
}

/** The bytes of a call of the chat endpoint. */
export function chatCall(key: string, body: string | Buffer): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return Buffer.concat([chatHead(key, bytes.length), bytes]);
}

export function chatHead(key: string, length: number): Buffer {
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`,
  );
}

export function chatBody(model: string, { stream }: { readonly stream: boolean }): string {
  const messages = [{ role: 'user', content: 'How are the lights of the harbour? '.repeat(30) }];
  return JSON.stringify({ model: `mock/${model}`, messages, ...(stream ? { stream } : {}) });
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
