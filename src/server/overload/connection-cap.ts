/**
 * How many connections a listener holds (G10). Before one is turned away, those are closed that wait
 * for nothing: idle ones between two requests, then those that never sent a whole head, the oldest first.
 * So half-open heads by the thousand make room for each other's successors, and a client that sends its
 * request gets in.
 */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../core/runtime.ts';
import { closeOldestSilent } from '../connections.ts';

export interface ConnectionCapParts {
  readonly most: () => number;
  readonly clock: Pick<Clock, 'now'>;
}

/** Looking for idle ones costs a look at all of them. */
const lookEveryMs = 1000;

export interface ConnectionCount {
  readonly open: number;
  /** Connections that were closed or turned away for want of room. */
  readonly closed: number;
}

/** Holds the server to the cap; the result tells how it stands. */
export function capConnections(
  server: Server,
  { most, clock }: ConnectionCapParts,
): ConnectionCount {
  const count = { open: 0, closed: 0 };
  let lookedAt = Number.NEGATIVE_INFINITY;
  const makeRoom = (newcomer: Socket): void => {
    if (count.open <= most()) return;
    count.closed += 1;
    if (!closeOldestSilent(server)) newcomer.destroy();
  };
  server.on('connection', (socket: Socket) => {
    // Where nothing can be closed, the system turns the next ones away.
    server.maxConnections = Math.ceil(1.1 * most());
    count.open += 1;
    socket.once('close', () => {
      count.open -= 1;
    });
    if (count.open <= most()) return;
    const now = clock.now();
    if (now - lookedAt < lookEveryMs) return makeRoom(socket);
    lookedAt = now;
    server.closeIdleConnections();
    // Whether there were idle ones is known when they are gone.
    setImmediate(makeRoom, socket);
  });
  return count;
}

const usualMost = 10_000;
/** Files of the store, the listeners, engines. */
const otherFiles = 256;

/** How many there may be where nobody says it: each may need another one to an upstream. */
export function connectionsOfProcess(): number {
  return Math.min(usualMost, Math.max(10, Math.floor((openFiles() - otherFiles) / 2)));
}

/** What the system lets this process open; Node has raised it as far as it may. */
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
