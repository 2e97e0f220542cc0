/** One connection to an upstream, with one request at a time on it (S18). */
import type { Socket } from 'node:net';
import type { Pieces } from '../../core/pieces.ts';
import { ResponseReader } from './response-reader.ts';
import type { ResponseHead } from './response-head.ts';

/** Who sent the request that runs. After `end` or `failed` nothing more is called. */
export interface ConnectionUser {
  head(head: ResponseHead): void;
  data(chunk: Buffer): void;
  end(): void;
  /** `begun`: something of the answer had come. */
  failed(error: Error, begun: boolean): void;
}

/** Who keeps the connection. */
export interface ConnectionOwner {
  /** It may carry another request. */
  free(connection: Connection): void;
  gone(connection: Connection): void;
}

/** The upstream closed the connection in the middle, or at once. */
export class ConnectionClosed extends Error {
  readonly code = 'ECONNRESET';
}

/** Larger requests are not copied into one piece with their head. */
const joinedBytes = 64 * 1024;

/**
 * All connections read into one buffer: a read is handled before the next one begins, and what is kept of it
 * is copied. Node otherwise takes 64 KiB anew for each read.
 */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);
const connections = new WeakMap<Socket, Connection>();

/** For `net.connect` and `tls.connect`: gives what is read to the socket's connection. */
export const sharedReads = {
  buffer: readBuffer,
  callback(this: unknown, length: number): boolean {
    connections.get(this as Socket)?.received(readBuffer.subarray(0, length));
    return true;
  },
};

export class Connection {
  /** Monotonic ms; when an idle connection is not to be used any more. */
  expiresAt = 0;
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #reader: ResponseReader;
  #user: ConnectionUser | undefined;
  #head: ResponseHead | undefined;
  #closed = false;

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.#reader = new ResponseReader({
      head: (head) => {
        this.#head = head;
        this.#user?.head(head);
      },
      data: (chunk) => this.#user?.data(Buffer.from(chunk)),
    });
    connections.set(socket, this);
    socket.on('data', (chunk: Buffer) => this.received(chunk));
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => this.close(error));
    socket.on('close', () =>
      this.close(new ConnectionClosed('the upstream closed the connection')),
    );
  }

  /** What the last answer's `keep-alive` says of how long the server waits. */
  get keepAlive(): string | undefined {
    const value: unknown = this.#head?.headers['keep-alive'];
    return typeof value === 'string' ? value : undefined;
  }

  /** Only on a connection that is free. */
  send(head: string, body: Pieces | undefined, user: ConnectionUser): void {
    this.#user = user;
    const socket = this.#socket;
    if (body === undefined) socket.write(head, 'latin1');
    else if (body.length < joinedBytes) {
      const bytes = Buffer.allocUnsafe(head.length + body.length);
      bytes.write(head, 0, 'latin1');
      body.copy(bytes, head.length);
      socket.write(bytes);
    } else {
      // Corked they leave in one vectored write.
      socket.cork();
      socket.write(head, 'latin1');
      for (const piece of body.list) socket.write(piece);
      socket.uncork();
    }
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** The user is not told anything more. */
  abort(): void {
    this.#user = undefined;
    this.close(new ConnectionClosed('aborted'));
  }

  close(error: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader.stop();
    this.#socket.destroy();
    const user = this.#user;
    this.#user = undefined;
    this.#owner.gone(this);
    user?.failed(error, this.#reader.begun);
  }

  /** @internal Called by the socket. */
  received(bytes: Buffer): void {
    // Nobody asked: what comes now could be taken for the answer to the next request.
    if (this.#user === undefined) {
      this.close(new ConnectionClosed('the upstream answered what was not asked'));
      return;
    }
    try {
      const exact = this.#reader.read(bytes);
      if (this.#reader.done && !this.#closed) this.#finish(exact);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.close(error);
    }
  }

  #ended(): void {
    if (this.#user !== undefined && this.#reader.close()) this.#finish(false);
    this.close(new ConnectionClosed('the upstream closed the connection'));
  }

  /** An answer that came before the request was sent whole, or with surplus bytes, was the last one here. */
  #finish(exact: boolean): void {
    const user = this.#user;
    this.#user = undefined;
    const again = exact && this.#head?.keepsAlive === true && this.#socket.writableLength === 0;
    if (again) {
      this.#reader.reset();
      if (this.#socket.isPaused()) this.#socket.resume();
      this.#owner.free(this);
    } else this.close(new ConnectionClosed('done'));
    user?.end();
  }
}
