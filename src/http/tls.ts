/**
 * TLS of a listener: its certificate can be renewed while it listens, and handshakes that do not end are limited (G10).
 * A connection is given to HTTP, and to all that guards it, when its handshake is through.
 */
import type { Server, ServerOptions } from 'node:http';
import { createServer, Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import type { ListenerTls } from '../core/addresses.ts';
import type { Clock } from '../core/runtime.ts';
import { connectionsInHandshake } from './overload/connection-limits.ts';

/** Of a failed handshake, for the log. */
interface FailedHandshake {
  /** The reason by Node's and OpenSSL's code, e.g. ERR_SSL_HTTP_REQUEST. */
  readonly error: string;
  readonly address: string | undefined;
}

interface TlsListenerOptions extends ServerOptions {
  readonly tls: ListenerTls;
  readonly clock: Pick<Clock, 'now'>;
  /** A handshake must be through by then. */
  readonly handshakeMs: number;
  readonly failed: (handshake: FailedHandshake) => void;
}

/** Whether clients must show a certificate: it is the server's for good, and a reload must not change it. */
const needsClients = new WeakMap<Server, boolean>();

/** An HTTPS server that speaks HTTP/1.1, TLS 1.2 or 1.3. */
export function createTlsServer({
  tls,
  clock,
  handshakeMs,
  failed,
  ...options
}: TlsListenerOptions): Server {
  const isRequired = tls.clientCa !== undefined;
  const server = createServer({
    ...options,
    ...contextOf(tls),
    handshakeTimeout: handshakeMs,
    requestCert: isRequired,
    rejectUnauthorized: isRequired,
  });
  needsClients.set(server, isRequired);
  limitHandshakes(server, clock, connectionsInHandshake());
  // Node's own listener makes it an error of HTTP, which would be answered.
  server.removeAllListeners('tlsClientError');
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    const address = socket.remoteAddress;
    socket.destroy();
    // Only the socket reports a refused client certificate.
    const code: unknown = socket.authorizationError ?? error.code;
    // Balancers and port scans connect and leave without a word.
    if (code === 'ECONNRESET') return;
    failed({ error: String(code ?? 'unknown'), address });
  });
  return server;
}

/**
 * New connections are served with this certificate; open ones keep theirs. Does nothing where the listener has no TLS or
 * where it changes whether clients need a certificate: both need a restart. Returns whether it is served with it.
 */
export function renewTls(server: Server, tls: ListenerTls | undefined): boolean {
  const isSame = tls !== undefined && needsClients.get(server) === (tls.clientCa !== undefined);
  if (!isSame || !(server instanceof HttpsServer)) return false;
  server.setSecureContext(contextOf(tls));
  return true;
}

function contextOf({ cert, key, clientCa }: ListenerTls): SecureContextOptions {
  return { cert, key: key.reveal(), ...(clientCa === undefined ? {} : { ca: clientCa }) };
}

interface Handshake {
  readonly socket: Socket;
  /** Monotonic ms. */
  readonly since: number;
}

interface Handshakes {
  readonly clock: Pick<Clock, 'now'>;
  /** By the ends of the connection, the oldest first: the encrypted socket is another one than the one it came as. */
  readonly begun: Map<string, Handshake>;
}

const handshakes = new WeakMap<Server, Handshakes>();

/** Above the limit the oldest handshake is ended: it has had the most time. */
function limitHandshakes(server: Server, clock: Pick<Clock, 'now'>, limit: number): void {
  const begun = new Map<string, Handshake>();
  handshakes.set(server, { clock, begun });
  server.on('connection', (socket: Socket) => {
    const ends = endsOf(socket);
    begun.set(ends, { socket, since: clock.now() });
    socket.once('close', () => {
      if (begun.get(ends)?.socket === socket) begun.delete(ends);
    });
    const [oldest] = begun;
    if (begun.size <= limit || oldest === undefined) return;
    begun.delete(oldest[0]);
    oldest[1].socket.destroy();
  });
  server.on('secureConnection', (socket: TLSSocket) => void begun.delete(endsOf(socket)));
}

/** Ends the handshakes that have taken this time (ms): a stop does not wait for them. */
export function closeHandshakes(server: Server, ms: number): void {
  const known = handshakes.get(server);
  if (known === undefined) return;
  const before = known.clock.now() - ms;
  for (const { socket, since } of known.begun.values()) {
    if (since <= before) socket.destroy();
  }
}

function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
