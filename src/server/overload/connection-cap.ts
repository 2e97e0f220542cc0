/**
 * How many connections a listener holds (G10). Before one is turned away, those are closed that wait
 * for nothing: idle ones between two requests when the cap is near, and at the cap those that never
 * sent a whole head, the oldest first. So half-open heads by the thousand push out each other, and a client
 * that sends its request gets in.
 */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { closeOldestSilent } from '../connections.ts';

/** From this part of the cap on, idle ones are closed. */
const near = 0.9;
/** Where nothing can be closed the next ones are turned away from here on. */
const beyond = 1.1;
/** Looking for idle ones costs a look at all of them. */
const lookEveryMs = 100;

/** Holds the server to the cap. */
export function capConnections(server: Server, most: () => number): void {
  /** Those that were told to go are out at once: many come in one turn of the loop, before the first has gone. */
  const inside = new Set<Socket>();
  let look: NodeJS.Timeout | undefined;
  const closeIdle = (): void => {
    look = undefined;
    server.closeIdleConnections();
  };
  server.on('connection', (socket: Socket) => {
    const cap = most();
    inside.add(socket);
    socket.once('close', () => inside.delete(socket));
    if (inside.size > near * cap) look ??= setTimeout(closeIdle, lookEveryMs).unref();
    if (inside.size <= cap) return;
    const oldest = closeOldestSilent(server);
    if (oldest !== undefined) inside.delete(oldest);
    else if (inside.size > Math.ceil(beyond * cap)) {
      inside.delete(socket);
      socket.destroy();
    }
  });
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
