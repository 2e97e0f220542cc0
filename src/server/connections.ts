/**
 * Connections that wait for nothing. Node's `closeIdleConnections` leaves those alone that never sent
 * a whole request; clients open such ones ahead, and each would hold up a stop until it times out.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

const silent = new WeakMap<Server, Set<Socket>>();

/** Keeps account of the connections that have not asked for anything yet. */
export function watchConnections(server: Server): void {
  const sockets = new Set<Socket>();
  silent.set(server, sockets);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const asked = (request: IncomingMessage): void => void sockets.delete(request.socket);
  server.prependListener('request', asked);
  // A listener of this event takes over the `100 Continue`: only where there is one already.
  if (server.listenerCount('checkContinue') > 0) server.prependListener('checkContinue', asked);
}

/** Closes the connections on which no request is being answered. */
export function closeWaiting(server: Server): void {
  server.closeIdleConnections();
  for (const socket of silent.get(server) ?? []) socket.destroy();
}

/** Closes the connection that has gone longest without asking for anything; false when there is none. */
export function closeOldestSilent(server: Server): boolean {
  for (const socket of silent.get(server) ?? []) {
    silent.get(server)?.delete(socket);
    if (socket.destroyed) continue;
    socket.destroy();
    return true;
  }
  return false;
}
