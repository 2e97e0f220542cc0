/** A plain HTTP client that shows an answer as it is: its bytes, and whether it ended properly. */
import { request, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { clientKey } from './keys.ts';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** The body as an object; `{}` when it is none. */
  readonly json: JsonObject;
  /** The HTTP message was complete; false = the connection was cut. */
  readonly complete: boolean;
}

export interface Sending {
  readonly method?: string;
  readonly headers?: { readonly [name: string]: string | readonly string[] };
  /** Sends no key. */
  readonly anonymous?: true;
  /** Called with each piece of the body as it comes. */
  readonly onData?: (chunk: Buffer) => void;
  readonly signal?: AbortSignal;
  /** An open connection to send it on. */
  readonly socket?: Socket;
}

/** Sends a request and reads the whole answer. Rejects only when no status came. */
export function send(url: string, body: unknown, sending: Sending = {}): Promise<Reply> {
  const bytes =
    body === undefined
      ? undefined
      : Buffer.isBuffer(body)
        ? body
        : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method: sending.method ?? (bytes === undefined ? 'GET' : 'POST'),
      ...(sending.signal === undefined ? {} : { signal: sending.signal }),
      ...connectionOf(sending.socket),
      headers: {
        ...(bytes === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': String(bytes.length) }),
        ...(sending.anonymous === true ? {} : { authorization: `Bearer ${clientKey}` }),
        ...sending.headers,
      },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = [];
      let settled = false;
      const finish = (complete: boolean): void => {
        if (settled) return;
        settled = true;
        const all = Buffer.concat(chunks);
        const text = all.toString('utf8');
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          bytes: all,
          text,
          json: tryParseObject(text) ?? {},
          complete,
        });
      };
      incoming.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        sending.onData?.(chunk);
      });
      incoming.on('error', () => finish(false));
      incoming.on('end', () => finish(incoming.complete));
      incoming.on('close', () => finish(incoming.complete));
    });
    outgoing.end(bytes);
  });
}

/** A connection for one request: `createConnection` counts only where no agent is named. */
function connectionOf(
  socket: Socket | undefined,
): { readonly agent: false } | { readonly createConnection: () => Socket } {
  return socket === undefined ? { agent: false } : { createConnection: () => socket };
}

/** Sends bytes as they are on a fresh connection and reads until it is closed or `enough` says so. */
export function sendRaw(
  url: string,
  bytes: string | Buffer,
  enough: (text: string) => boolean = () => false,
): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.on('error', (error) => (text === '' ? reject(error) : resolve(text)));
    socket.on('close', () => resolve(text));
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (enough(text)) {
        socket.destroy();
        resolve(text);
      }
    });
    socket.write(bytes);
  });
}
