/**
 * A listener's doors: several sockets on one port. The event loop takes one connection from each listening
 * socket in a turn (libuv since 1.45), and turns are long where there is much to do: through one door forty
 * new connections a second got in beside a loop that was 25 ms late, and refusals took as long as their
 * callers had stood in front of it (G6). The system spreads those who come over the doors.
 */
import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** As many as come in within one turn: some 50 µs of it each. */
const doorCount = 32;
/** From here on an answer that its client does not take holds back its upstream (G9). */
export const unreadBytes = 16 * 1024;
/** Callers who may stand in front of each. */
const backlog = 1024;

/** Those beside the first one, which is the server itself. */
const otherDoors = new WeakMap<HttpServer, readonly Server[]>();

/** Listens at one door. @throws Error EADDRINUSE and its like. */
export async function listenOnce(server: Server, options: ListenOptions): Promise<void> {
  const listening = once(server, 'listening');
  server.listen({ backlog, ...options });
  await listening;
}

/** Listens at all doors; one where the system has no such thing. @throws Error EADDRINUSE and its like. */
export async function openDoors(server: HttpServer, { host, port }: ListenAddress): Promise<void> {
  // A worker's connections are let in by the process that started it.
  if (process.platform !== 'linux' || cluster.isWorker) return listenOnce(server, { host, port });
  if (port !== 0) await mustBeFree({ host, port });
  await listenOnce(server, { host, port, reusePort: true });
  const bound = server.address();
  if (bound === null || typeof bound === 'string') return;
  const others = Array.from({ length: doorCount - 1 }, () => anotherDoor(server));
  otherDoors.set(server, others);
  await Promise.all(
    others.map((door) =>
      listenOnce(door, { host: bound.address, port: bound.port, reusePort: true }),
    ),
  );
}

/** Doors could be added to those of another gateway of the same user: whoever listens there is asked first. */
async function mustBeFree(address: ListenAddress): Promise<void> {
  const probe = createServer();
  await listenOnce(probe, address);
  await closed(probe);
}

/** Whoever comes in here is the server's, as if he had come through the first one. */
function anotherDoor(server: HttpServer): Server {
  const options = { allowHalfOpen: true, noDelay: true, highWaterMark: unreadBytes };
  return createServer(options, (socket: Socket) => server.emit('connection', socket));
}

/** Those who stand in front are let in for at most so long: where they keep coming, somebody is always the last. */
const lastOnesMs = 1000;
/** Longer than a connection is on its way to a worker. */
const handedOverMs = 100;

/**
 * Lets in who stands in front of the doors: when one closes, the system resets those who wait there (G14).
 * Resolves after a turn of the event loop in which nobody came, in a worker after a tenth of a second, or after a second.
 */
export async function letInTheLast(server: HttpServer): Promise<void> {
  let came = true;
  const comes = (): void => void (came = true);
  server.on('connection', comes);
  const until = performance.now() + lastOnesMs;
  // The first turn may be over in part, so that it says nothing.
  await turn();
  while (came && performance.now() < until) {
    came = false;
    await (cluster.isWorker ? sleep(handedOverMs) : turn());
  }
  server.off('connection', comes);
}

/** Nobody gets in any more; resolves when the last one is out. */
export async function closeDoors(server: HttpServer): Promise<void> {
  const others = otherDoors.get(server) ?? [];
  await Promise.all([server, ...others].map((door) => closed(door)));
}

async function closed(door: Server): Promise<void> {
  const over = once(door, 'close');
  door.close();
  await over;
}

/** Who is in, through whichever door. */
export async function countConnections(server: HttpServer): Promise<number> {
  const doors = [server, ...(otherDoors.get(server) ?? [])];
  const counts = await Promise.all(doors.map((door) => connectionsOf(door)));
  return counts.reduce((sum, count) => sum + count, 0);
}

function connectionsOf(door: Server): Promise<number> {
  return new Promise((resolve) => {
    door.getConnections((error, count) => resolve(error === null ? count : 0));
  });
}
