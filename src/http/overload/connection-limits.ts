/**
 * Limits the connections of a listener (G10). Before a connection is refused, others that wait for nothing are
 * closed: quiet ones near the cap, and beyond it those without a complete request head, oldest first, and then idle
 * keep-alive connections. Thousands of half-open heads thus displace each other, and clients that send requests get in.
 */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from '../request-headers.ts';
import { closeOldestSilent, onConnection, QuietConnections } from '../connections.ts';

/** From this share of the cap on, quiet connections are closed: a request on its way is not lost. */
const near = 0.9;
/** If nothing can be closed, new connections are refused from here on. */
const beyond = 1.1;
/** Minimum time between scans of the connections, since a scan visits all. */
const lookEveryMs = 100;

/** Enforces the cap on the server. */
export function capConnections(server: Server, most: () => number): void {
  /**
   * Excludes connections that are being closed: many arrive in one turn of the loop, before the first is gone.
   */
  const inside = new Set<Socket>();
  const quiet = new QuietConnections(server);
  let look: NodeJS.Timeout | undefined;
  let isFull = false;
  const closeUnused = (): void => {
    look = undefined;
    if (isFull) server.closeIdleConnections();
    else quiet.close();
    isFull = false;
    if (inside.size > near * most()) lookSoon();
  };
  const lookSoon = (): void => {
    look ??= setTimeout(closeUnused, lookEveryMs).unref();
  };
  onConnection(server, (socket) => {
    const cap = most();
    inside.add(socket);
    socket.once('close', () => inside.delete(socket));
    if (inside.size > near * cap) lookSoon();
    if (inside.size <= cap) return;
    const oldest = closeOldestSilent(server);
    if (oldest !== undefined) {
      inside.delete(oldest);
      return;
    }
    isFull = true;
    if (inside.size > Math.ceil(beyond * cap)) {
      inside.delete(socket);
      socket.destroy();
    }
  });
}

const defaultMax = 10_000;
/** Files of the store, the listeners, engines. */
const otherFiles = 256;

/** Default limit of client connections: each may need another one to an upstream. */
export function connectionsOfProcess(): number {
  return Math.min(defaultMax, Math.max(10, Math.floor((openFiles() - otherFiles) / 2)));
}

/** Limit of connections whose TLS handshake is not through. One takes a few round trips. */
export function connectionsInHandshake(): number {
  return Math.min(1000, Math.max(10, Math.floor(openFiles() / 8)));
}

/** The limit of open files; Node has raised it to the hard limit. */
function openFiles(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const found = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return found === undefined ? Number.POSITIVE_INFINITY : Number(found);
  } catch {
    // Not Linux.
    return Number.POSITIVE_INFINITY;
  }
}

// Limits connections whose client has shown no credential: on the admin listener they never take the
// slots of signed-in callers and commands. A new connection counts as unauthenticated until a request on it
// shows a valid credential, and again after a request without one, because a proxy shares its connections among
// clients. Above the limit the oldest is closed, whether it waits for a head, a body, or a client that does not
// read. A client with a credential sends it within a few turns of the event loop, long before its connection is
// the oldest.

export interface UnauthenticatedLimits {
  readonly inAll: number;
  /** Per address; an IPv6 address counts as its /64. */
  readonly ofAddress: number;
}

export class UnauthenticatedConnections {
  readonly #limits: UnauthenticatedLimits;
  /** By network, the oldest connection of each first. */
  readonly #sockets = new Map<string, Set<Socket>>();
  #count = 0;

  constructor(limits: UnauthenticatedLimits) {
    this.#limits = limits;
  }

  /** Connections without a credential. */
  get size(): number {
    return this.#count;
  }

  /** Tracks all connections of the server. */
  watch(server: Server): void {
    onConnection(server, (socket) => {
      const network = networkOf(socket.remoteAddress);
      socket.once('close', () => this.#remove(network, socket));
      this.#add(network, socket);
    });
  }

  /** A request on the connection showed a valid credential. */
  known(socket: Socket): void {
    this.#remove(networkOf(socket.remoteAddress), socket);
  }

  /** A request on the connection showed no valid credential. It keeps its position if it has one. */
  unknown(socket: Socket): void {
    if (!socket.destroyed) this.#add(networkOf(socket.remoteAddress), socket);
  }

  #add(network: string, socket: Socket): void {
    const sockets = this.#sockets.get(network) ?? new Set();
    if (sockets.has(socket)) return;
    this.#sockets.set(network, sockets);
    sockets.add(socket);
    this.#count += 1;
    if (sockets.size > this.#limits.ofAddress) this.#closeOldest(network);
    else if (this.#count > this.#limits.inAll) this.#closeOldest(this.#busiest());
  }

  #remove(network: string, socket: Socket): void {
    const sockets = this.#sockets.get(network);
    if (sockets?.delete(socket) !== true) return;
    this.#count -= 1;
    if (sockets.size === 0) this.#sockets.delete(network);
  }

  /** The address with the most connections: they do not displace the few of another address. */
  #busiest(): string {
    let most = '';
    let size = 0;
    for (const [network, sockets] of this.#sockets) {
      if (sockets.size <= size) continue;
      most = network;
      size = sockets.size;
    }
    return most;
  }

  #closeOldest(network: string): void {
    const [oldest] = this.#sockets.get(network) ?? [];
    if (oldest === undefined) return;
    this.#remove(network, oldest);
    oldest.destroy();
  }
}

// Delayed answers to wrong tokens, so that guessing is slow on each connection. Their number is limited
// in total and by address, since a delayed answer occupies a slot. A guess beyond that is answered at once and
// its connection is closed.

const heldForMs = 1000;
const maxTotal = 32;
const maxPerAddress = 8;

export class HeldAnswers {
  readonly #wait: (ms: number) => Promise<void>;
  readonly #ofNetwork = new Map<string, number>();
  #count = 0;

  constructor(wait: (ms: number) => Promise<void>) {
    this.#wait = wait;
  }

  get size(): number {
    return this.#count;
  }

  /** Delays; returns false immediately when too many are delayed. */
  async hold(address: string | undefined): Promise<boolean> {
    const network = networkOf(address);
    const own = this.#ofNetwork.get(network) ?? 0;
    if (own >= maxPerAddress || this.#count >= maxTotal) return false;
    this.#ofNetwork.set(network, own + 1);
    this.#count += 1;
    await this.#wait(heldForMs);
    this.#count -= 1;
    const left = (this.#ofNetwork.get(network) ?? 1) - 1;
    if (left === 0) this.#ofNetwork.delete(network);
    else this.#ofNetwork.set(network, left);
    return true;
  }
}
