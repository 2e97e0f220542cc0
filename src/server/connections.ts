/**
 * Connections that wait for nothing. Node's `closeIdleConnections` leaves those alone that never sent
 * a whole request; clients open such ones ahead, and each would hold up a stop until it times out.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/** Each with the monotonic ms of its start, the oldest first. */
const silent = new WeakMap<Server, Map<Socket, number>>();

/** Keeps account of the connections that have not asked for anything yet. */
export function watchConnections(server: Server): void {
  const sockets = new Map<Socket, number>();
  silent.set(server, sockets);
  server.on('connection', (socket: Socket) => {
    sockets.set(socket, performance.now());
    socket.once('close', () => sockets.delete(socket));
  });
  const asked = (request: IncomingMessage): void => void sockets.delete(request.socket);
  server.prependListener('request', asked);
  // A listener of this event takes over the `100 Continue`: only where there is one already.
  if (server.listenerCount('checkContinue') > 0) server.prependListener('checkContinue', asked);
}

/** Who has just come may have sent a request that was not looked at yet. */
const silentForMs = 1000;

/** Closes the connections on which no request is being answered, and who has just come when he has said nothing for a second. */
export function closeWaiting(server: Server): void {
  server.closeIdleConnections();
  const before = performance.now() - silentForMs;
  for (const [socket, since] of silent.get(server) ?? []) {
    if (since > before) return;
    socket.destroy();
  }
}

/** Closes the connection that has gone longest without asking for anything, and tells it; none when all are new. */
export function closeOldestSilent(server: Server): Socket | undefined {
  const sockets = silent.get(server) ?? [];
  const before = performance.now() - silentForMs;
  for (const [socket, since] of sockets) {
    if (since > before) return undefined;
    silent.get(server)?.delete(socket);
    if (socket.destroyed) continue;
    socket.destroy();
    return socket;
  }
  return undefined;
}
