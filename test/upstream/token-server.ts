/** A token server and a metadata service on loopback: keeps each request, plays answers in order, the last one for ever. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TokenAsk {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  readonly form: URLSearchParams;
}

export interface TokenReply {
  readonly status?: number;
  readonly body: string | object;
  readonly headers?: { readonly [name: string]: string };
  /** Answers only when this is over. */
  readonly after?: Promise<unknown>;
}

export class TokenServer {
  readonly asks: TokenAsk[] = [];
  readonly #server: Server;
  #replies: readonly TokenReply[] = [];
  #played = 0;

  private constructor() {
    this.#server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        const form = new URLSearchParams(Buffer.concat(pieces).toString('utf8'));
        this.asks.push({ method, url: new URL(url, this.url), headers, form });
        const reply = this.#replies[Math.min(this.#played++, this.#replies.length - 1)];
        const answer = (): void => {
          const { status = 200, body = 'no reply was set', headers: more = {} } = reply ?? {};
          response.writeHead(reply === undefined ? 599 : status, {
            'content-type': 'application/json',
            ...more,
          });
          response.end(typeof body === 'string' ? body : JSON.stringify(body));
        };
        if (reply?.after === undefined) answer();
        else void reply.after.then(answer);
      });
    });
  }

  static async start(...replies: readonly TokenReply[]): Promise<TokenServer> {
    const server = new TokenServer();
    server.play(...replies);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  play(...replies: readonly TokenReply[]): void {
    this.#replies = replies;
    this.#played = 0;
  }

  /** `http://127.0.0.1:port` */
  get url(): string {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
