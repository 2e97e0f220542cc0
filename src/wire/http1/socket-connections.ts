/**
 * An HTTP/1.1 client for the request path, over `net` and `tls`: callbacks, one chunk for each read, no stream
 * objects. It knows which connection is used a second time, and so which failure is the race with a server's
 * close that is asked again unseen (F7).
 */
import { GatewayError } from '../../core/errors.ts';
import type { PutOff, PutsOff } from '../../core/turn-share.ts';
import { decompressor, type Decompressor } from '../decompress.ts';
import type { Connections, Exchange, UpstreamHandler, UpstreamRequest } from '../exchange.ts';
import { asUpstreamError } from '../upstream-error.ts';
import { ConnectionClosed, type Connection, type ConnectionUser } from './connection.ts';
import { Pool, type PoolOptions } from './pool.ts';
import { requestHead } from './request-head.ts';
import type { ResponseHead } from './response-head.ts';

export interface SocketOptions extends PoolOptions {
  /** What comes beyond it in one turn waits; absent = all is handed over as it comes. */
  readonly turns?: PutsOff | undefined;
}

/** What waits for its turn may be so long; then no more is read. */
const mostHeld = 32 * 1024;

export class SocketConnections implements Connections {
  readonly #pool: Pool;
  readonly #turns: PutsOff | undefined;

  constructor({ turns, ...options }: SocketOptions) {
    this.#pool = new Pool(options);
    this.#turns = turns;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): Exchange {
    const call = new Call({ pool: this.#pool, turns: this.#turns }, request, handler);
    call.start();
    return call;
  }

  get count(): { readonly open: number; readonly idle: number } {
    return this.#pool.count;
  }

  async close(): Promise<void> {
    this.#pool.close();
    await Promise.resolve();
  }
}

/** One request, sent again once when a kept-alive connection turned out to be dead (F7). */
class Call implements Exchange, ConnectionUser, PutOff {
  readonly #pool: Pool;
  readonly #turns: PutsOff | undefined;
  readonly #request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  #connection: Connection | undefined;
  #body: Decompressor | undefined;
  #over = false;
  #paused = false;
  /**
   * What came while the answer was paused, or waited for its turn. Chunks of one turn after the other must not be put into
   * new arrays: an array that has grown old is garbage only for a full collection, and until then keeps alive what
   * was put into it since, the chunk with its memory (G1).
   */
  #first: Buffer | undefined;
  /** Behind the first. */
  readonly #more: Buffer[] = [];
  #heldBytes = 0;
  #endHeld = false;
  #failure: Error | undefined;
  /** What is held is put off to another turn of the event loop. */
  #putOff = false;
  #mayRepeat = false;

  constructor(
    { pool, turns }: { readonly pool: Pool; readonly turns: PutsOff | undefined },
    request: UpstreamRequest,
    handler: UpstreamHandler,
  ) {
    this.#pool = pool;
    this.#turns = turns;
    this.#request = request;
    this.#handler = handler;
  }

  start(): void {
    const kept = this.#pool.takeIdle();
    this.#mayRepeat = kept !== undefined && this.#request.once !== true;
    if (kept === undefined) this.#connect();
    else this.#sendOn(kept);
  }

  get waits(): boolean {
    return this.#putOff;
  }

  pause(): void {
    this.#paused = true;
    if (this.#body === undefined) this.#connection?.pause();
    else this.#body.pause();
  }

  resume(): void {
    this.#paused = false;
    if (this.#body !== undefined) this.#body.resume();
    else if (!this.#putOff) this.#handOver();
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#body?.destroy();
    this.#connection?.abort();
  }

  head({ status, headers }: ResponseHead): void {
    const encoding = headers['content-encoding'];
    if (encoding !== undefined) this.#decode(encoding);
    if (!this.#over) this.#handler.head(status, headers);
  }

  data(chunk: Buffer): void {
    if (this.#body === undefined) {
      if (this.#paused || this.#putOff) this.#hold(chunk);
      else if (this.#turns?.spent === true) this.#wait(this.#turns, chunk);
      else this.#handler.data(chunk);
    } else if (!this.#body.write(chunk, () => this.#connection?.resume()))
      this.#connection?.pause();
  }

  end(): void {
    this.#connection = undefined;
    if (this.#body !== undefined) this.#body.end();
    else if (this.#paused || this.#putOff) this.#endHeld = true;
    else this.#end();
  }

  /** What came before it is handed over first, also where that is held back, or compressed (F40). */
  failed(error: Error, begun: boolean): void {
    this.#connection = undefined;
    if (this.#mayRepeat && !begun) {
      this.#mayRepeat = false;
      this.#connect();
    } else if (this.#body !== undefined) this.#body.behind(() => this.#fail(error));
    else if (this.#paused || this.#putOff) this.#failure = error;
    else this.#fail(error);
  }

  /** @internal Its turn has come. */
  goOn(): void {
    this.#putOff = false;
    this.#handOver();
  }

  #wait(turns: PutsOff, chunk: Buffer): void {
    this.#putOff = true;
    this.#hold(chunk);
    turns.putOff(this);
  }

  #hold(chunk: Buffer): void {
    if (this.#first === undefined) this.#first = chunk;
    else this.#more.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes >= mostHeld) this.#connection?.pause();
  }

  /** What came in several reads goes on in one. */
  #handOver(): void {
    while (!this.#paused && !this.#over && this.#first !== undefined) {
      this.#handler.data(this.#takeHeld(this.#first));
    }
    // Whoever pauses at the first content hears of the end when he takes more (attempt.ts).
    if (this.#over || this.#paused) return;
    if (this.#failure !== undefined) return this.#fail(this.#failure);
    this.#connection?.resume();
    if (this.#endHeld) this.#end();
  }

  #takeHeld(first: Buffer): Buffer {
    const more = this.#more;
    const all = more.length === 0 ? first : Buffer.concat([first, ...more]);
    this.#first = undefined;
    if (more.length > 0) more.length = 0;
    this.#heldBytes = 0;
    return all;
  }

  #connect(): void {
    this.#pool.connect((error, connection) => {
      if (connection === undefined) this.#unconnected(error ?? new Error('not connected'));
      else if (this.#over) this.#pool.free(connection);
      else this.#sendOn(connection);
    });
  }

  #unconnected(error: Error): void {
    if (!this.#over) return this.#fail(error);
    if (error instanceof ConnectionClosed) return;
    this.#handler.unreachable?.(asUpstreamError(error, this.#request.endpoint));
  }

  #sendOn(connection: Connection): void {
    const { endpoint, method, headers, body } = this.#request;
    try {
      const head = requestHead({ endpoint, method, headers, bodyBytes: body?.length });
      this.#connection = connection;
      connection.send(head, body, this);
      if (this.#paused) connection.pause();
    } catch (error) {
      this.#connection = undefined;
      this.#pool.free(connection);
      queueMicrotask(() => this.#fail(error));
    }
  }

  #decode(encoding: string | readonly string[]): void {
    try {
      this.#body = decompressor(typeof encoding === 'string' ? encoding : encoding.join(), {
        data: (chunk) => {
          if (!this.#over) this.#handler.data(chunk);
        },
        end: () => this.#end(),
        failed: ({ message }) => this.#fail(unreadable(message)),
      });
    } catch (error) {
      this.#fail(unreadable(error instanceof Error ? error.message : String(error)));
    }
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#handler.end();
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#body?.destroy();
    this.#connection?.abort();
    this.#handler.failed(asUpstreamError(error, this.#request.endpoint));
  }
}

/** It would come the same way again. */
function unreadable(why: string): GatewayError {
  return new GatewayError('upstream_invalid', why, { repeat: 'never' });
}
