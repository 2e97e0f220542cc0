/** Connections whose clients do not go on: none may hold a place for nothing (G9, G10, F77). Node lets them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A client that takes none of a finished answer's last bytes for so long is cut (G9). */
export const stalledEndMs = 60_000;
/** So long the rest of a body may take that was answered already. */
export const restMs = 5000;
/** Requests that one connection carries: its last answer closes it (F77). Balancers spread clients by that. */
export const mostRequests = 100;
/** Of them, those that wait for the answers before theirs; a client that sends more reads none. */
const mostWaiting = 100;

/** Cuts the client if it takes nothing; Node sets its own time when the last byte is out. */
export function cutWhenStalled(response: ServerResponse, stalledMs: number): void {
  if (response.writableLength > 0) response.socket?.setTimeout(stalledMs);
}

export interface StuckTimes {
  readonly stalledMs: number;
  readonly restMs: number;
}

/** What came on a connection. */
interface Asked {
  requests: number;
  /** How many of their answers wait for their turn. */
  waiting: number;
}

export class StuckConnections {
  readonly #times: StuckTimes;
  readonly #asked = new WeakMap<Socket, Asked>();

  constructor(times: StuckTimes) {
    this.#times = times;
  }

  /**
   * A request came, and its answer may have to wait for others.
   * @returns false when the answer before it closes the connection: it is not to be looked at.
   */
  came({ socket }: IncomingMessage, answer: ServerResponse): boolean {
    const asked = this.#askedOn(socket);
    asked.requests += 1;
    if (asked.requests === mostRequests) answer.shouldKeepAlive = false;
    if (answer.socket === null) {
      asked.waiting += 1;
      if (asked.waiting > mostWaiting) socket.destroy();
    }
    return asked.requests <= mostRequests;
  }

  #askedOn(socket: Socket): Asked {
    const known = this.#asked.get(socket);
    if (known !== undefined) return known;
    const fresh = { requests: 0, waiting: 0 };
    this.#asked.set(socket, fresh);
    return fresh;
  }

  /** An answer has its turn; it may be whole by now. */
  begins(socket: Socket, answer: ServerResponse): void {
    const asked = this.#asked.get(socket);
    if (asked === undefined || asked.waiting === 0) return;
    asked.waiting -= 1;
    // What held for the end of the one before it does not hold for this one.
    socket.setTimeout(0);
    if (answer.writableEnded) this.whole(answer);
  }

  /** An answer has its last bytes. */
  whole(answer: ServerResponse): void {
    cutWhenStalled(answer, this.#times.stalledMs);
  }

  /** An answer is through, and its request may not be. */
  ended(socket: Socket, request: IncomingMessage): void {
    if (request.complete) return;
    const timer = setTimeout(() => socket.destroy(), this.#times.restMs).unref();
    request.once('close', () => clearTimeout(timer));
  }
}
