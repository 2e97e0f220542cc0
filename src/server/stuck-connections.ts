/** Connections whose clients do not go on: none may hold a place for nothing (G9, G10, F77). Node lets them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A client that takes none of a finished answer's last bytes for so long is cut (G9). */
export const stalledEndMs = 60_000;
/** So long the rest of a body may take that was answered already. */
export const restMs = 5000;
/** Requests of one connection that wait for the answers before theirs (F77). */
const mostWaiting = 100;

/** Cuts the client if it takes nothing; Node sets its own time when the last byte is out. */
export function cutWhenStalled(response: ServerResponse, stalledMs: number): void {
  if (response.writableLength > 0) response.socket?.setTimeout(stalledMs);
}

export interface StuckTimes {
  readonly stalledMs: number;
  readonly restMs: number;
}

export class StuckConnections {
  readonly #times: StuckTimes;
  /** How many answers wait for their turn. */
  readonly #waiting = new WeakMap<Socket, number>();

  constructor(times: StuckTimes) {
    this.#times = times;
  }

  /** A request came, and its answer may have to wait for others. */
  came({ socket }: IncomingMessage, answer: ServerResponse): void {
    if (answer.socket !== null) return;
    const waiting = (this.#waiting.get(socket) ?? 0) + 1;
    this.#waiting.set(socket, waiting);
    if (waiting > mostWaiting) socket.destroy();
  }

  /** An answer has its turn; it may be whole by now. */
  begins(socket: Socket, answer: ServerResponse): void {
    const waiting = this.#waiting.get(socket) ?? 0;
    if (waiting === 0) return;
    this.#waiting.set(socket, waiting - 1);
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
