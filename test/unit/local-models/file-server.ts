/** A web server of files that can be told to misbehave, and remembers what it was asked. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export interface Served {
  readonly content?: Buffer;
  /** '' = none. */
  readonly etag?: string;
  /** Without them the whole file comes whatever is asked. */
  readonly ranges?: false;
  /** Cuts the connection after so many bytes (once they were received), once for each entry. */
  readonly cuts?: number[];
  /** These answers come first. */
  readonly statuses?: {
    readonly status: number;
    readonly headers?: { readonly [n: string]: string };
  }[];
  readonly redirect?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly json?: object;
  readonly chunked?: true;
}

export interface Asked {
  readonly path: string;
  readonly range: string | undefined;
  readonly ifRange: string | undefined;
  readonly authorization: string | undefined;
}

export interface FileServer {
  readonly url: string;
  readonly asked: Asked[];
  serve(path: string, served: Served): void;
  /** The client has so many bytes of the file: what was to be cut there is cut. */
  received(bytes: number): void;
}

interface Held {
  readonly response: ServerResponse;
  readonly upTo: number;
}

export async function fileServer(t: TestContext): Promise<FileServer> {
  const files = new Map<string, Served>();
  const asked: Asked[] = [];
  const held = new Set<Held>();
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    asked.push({
      path,
      range: request.headers.range,
      ifRange:
        typeof request.headers['if-range'] === 'string' ? request.headers['if-range'] : undefined,
      authorization: request.headers.authorization,
    });
    answer(files.get(path), { request, response, held });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    serve: (path, served) => void files.set(path, served),
    received: (bytes) => {
      for (const each of held) {
        if (each.upTo > bytes) continue;
        held.delete(each);
        each.response.destroy();
      }
    },
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly held: Set<Held>;
}

function answer(served: Served | undefined, exchange: Exchange): void {
  const { response } = exchange;
  const first = served?.statuses?.shift();
  if (served === undefined || first !== undefined) {
    response.writeHead(first?.status ?? 404, first?.headers ?? {}).end('no');
    return;
  }
  if (served.redirect !== undefined) {
    response.writeHead(302, { location: served.redirect, ...served.headers }).end('moved');
    return;
  }
  if (served.json !== undefined) {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(served.json));
    return;
  }
  sendFile(served, exchange);
}

function sendFile(served: Served, { request, response, held }: Exchange): void {
  const content = served.content ?? Buffer.alloc(0);
  const etag =
    served.etag ?? `"${createHash('sha256').update(content).digest('hex').slice(0, 16)}"`;
  const start = startOf(served, request, etag);
  const tagged = { ...(etag === '' ? {} : { etag }), ...served.headers };
  if (start >= content.length && start > 0) {
    response.writeHead(416, { 'content-range': `bytes */${content.length}` }).end();
    return;
  }
  const body = content.subarray(start);
  response.writeHead(start > 0 ? 206 : 200, {
    ...tagged,
    ...(served.chunked === true ? {} : { 'content-length': body.length }),
    ...(start > 0
      ? { 'content-range': `bytes ${start}-${content.length - 1}/${content.length}` }
      : {}),
  });
  const cut = served.cuts?.shift();
  if (cut === undefined) {
    response.end(body);
    return;
  }
  if (cut > 0) held.add({ response, upTo: start + cut });
  response.write(body.subarray(0, Math.max(cut, 1)), () => {
    if (cut === 0) response.destroy();
  });
}

function startOf(served: Served, request: IncomingMessage, etag: string): number {
  const start = /^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1];
  const condition = request.headers['if-range'];
  if (start === undefined || served.ranges === false) return 0;
  return condition !== undefined && condition !== etag ? 0 : Number(start);
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
