/**
 * The listening sockets of the workers. The parent binds them and never accepts from them; each worker inherits those of
 * its number and listens on them. A connection in an accept queue is reset only when the last process closes
 * the socket, so a worker that is replaced resets none: its replacement has the same sockets.
 */
import { createServer } from 'node:net';
import {
  bindSocket,
  type BoundSocket,
  listenOnce,
  type ListenAddress,
  listenerCount,
  reservePort,
  type ReservedPort,
} from './listen.ts';

/** `UV_TCP_REUSEPORT` of libuv. */
const reusePort = 2;

export class WorkerSockets {
  readonly #reserved: ReservedPort;
  /** By the number of the worker. */
  readonly #bound = new Map<number, readonly BoundSocket[]>();
  #guard: ReservedPort | undefined;

  private constructor(reserved: ReservedPort) {
    this.#reserved = reserved;
  }

  /**
   * Binds the sockets of the workers 1 to `workers`. Until `unguard` the address refuses every other program.
   * @param address port 0 = any free port
   * @throws Error EADDRINUSE, also where another gateway of this user shares the port; and the other errors of listen.
   */
  static async open(address: ListenAddress, workers: number): Promise<WorkerSockets> {
    // Resolves the name and the port 0, and fails with the errors of listen.
    const reserved = await reservePort(address);
    await reserved.release();
    const sockets = new WorkerSockets(reserved);
    try {
      for (let number = 1; number <= workers; number += 1) sockets.of(number);
      // Bound sockets exclude no other before they listen: another gateway could bind and listen on the port.
      sockets.#guard = await reservePort({ host: reserved.host, port: reserved.port });
      return sockets;
    } catch (error) {
      await sockets.close();
      throw error;
    }
  }

  get port(): number {
    return this.#reserved.port;
  }

  /** Descriptors of this process. @throws Error when the sockets were released and cannot be bound again */
  of(number: number): readonly number[] {
    const known = this.#bound.get(number) ?? this.#bind();
    this.#bound.set(number, known);
    return known.map(({ fd }) => fd);
  }

  /**
   * Closes the sockets of a number whose worker died. The kernel resets what waits there and gives new connections to the
   * other workers. Without it new connections would wait until a replacement has loaded.
   */
  release(number: number): void {
    for (const socket of this.#bound.get(number) ?? []) socket.close();
    this.#bound.delete(number);
  }

  /** Lets the workers listen. */
  async unguard(): Promise<void> {
    const guard = this.#guard;
    this.#guard = undefined;
    await guard?.release();
  }

  /** The workers keep what they inherited. */
  async close(): Promise<void> {
    for (const number of this.#bound.keys()) this.release(number);
    await this.unguard();
  }

  #bind(): readonly BoundSocket[] {
    const bound: BoundSocket[] = [];
    try {
      while (bound.length < listenerCount) bound.push(bindSocket(this.#reserved, reusePort));
      return bound;
    } catch (error) {
      for (const socket of bound) socket.close();
      throw error;
    }
  }
}

/**
 * Whether workers can share the port of this host. macOS, Windows and older versions of Node cannot.
 * @throws the errors of listen, where nothing can listen there
 */
export async function canShareSockets(host: string): Promise<boolean> {
  // What is wrong with the host itself is not a reason to serve with one process.
  const reserved = await reservePort({ host, port: 0 });
  await reserved.release();
  if (process.platform !== 'linux') return false;
  const listening = createServer();
  try {
    // A socket that does not share the port could not be bound while another listens.
    await listenOnce(listening, { host: reserved.host, port: reserved.port, reusePort: true });
    bindSocket(reserved, reusePort).close();
    return true;
  } catch {
    return false;
  } finally {
    listening.close();
  }
}
