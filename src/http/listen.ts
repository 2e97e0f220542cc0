/** The HTTP server of both planes: limits of the connection, and refusals Node makes by itself. */
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import net, {
  createServer as createTcpServer,
  type AddressInfo,
  type ListenOptions,
  Server as TcpServer,
  type Socket,
} from 'node:net';
import type { Duplex } from 'node:stream';
import { lookup } from 'node:dns/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { getSystemErrorName } from 'node:util';
import type { ListenerTls } from '../core/addresses.ts';
import { nodeHttp } from '../core/node-http.ts';
import type { Clock } from '../core/runtime.ts';
import { leavesTooMuch } from './body.ts';
import {
  onConnection,
  type RawRefusalDeps,
  RawRefusals,
  restMs,
  stalledEndMs,
  StuckConnections,
  type StuckTimes,
  watchConnections,
} from './connections.ts';
import { DeferredWork } from './overload/load.ts';
import { createTlsServer } from './tls.ts';

type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

interface ServerTimes extends StuckTimes {
  /** A head must be there by then; examined forty times a second (G10). */
  readonly headMs: number;
  /** And all of its request; 0 = its body has a rate to keep instead. */
  readonly requestMs: number;
}

interface ListenerOptions extends Partial<RawRefusalDeps> {
  readonly times?: ServerTimes;
  /** Whether answers that begin now close their connections: the gateway stops (G14). */
  readonly lastAnswers?: () => boolean;
  /** Absent: plain HTTP. */
  readonly tls?: ListenerTls | undefined;
  /** Of handshakes; absent = that of the process. */
  readonly clock?: Pick<Clock, 'now'>;
}

/**
 * With the interval, no head lives for longer than ten seconds. Bodies have no time in all: one of 32 MB at
 * `limits.body_rate` takes half an hour (G10, `SlowBodies` of `overload/body-budget.ts`).
 */
export const dataTimes: ServerTimes = {
  headMs: 9000,
  requestMs: 0,
  restMs,
  stalledMs: stalledEndMs,
};

/**
 * Node examines all heads that are not whole in one go, and makes an error with a stack for each late one: of 2,500 that
 * came within a second those of a tenth of it took 9 ms, in which no other work had a turn.
 */
const lookEveryMs = 25;
/** Those that came together end together. */
const lateCode = 'ERR_HTTP_REQUEST_TIMEOUT';

/** A server that is not listening yet. */
export function createListener(
  handle: RequestHandler,
  {
    lastAnswers = () => false,
    newId = () => '',
    refused = ignore,
    refusalHeaders = {},
    times = dataTimes,
    tls,
    clock = { now: () => performance.now() },
  }: ListenerOptions = {},
): Server {
  const refusals = new RawRefusals({ newId, refused, refusalHeaders });
  const stuck = new StuckConnections(times);
  const options: ServerOptions = {
    ServerResponse: answerClass(lastAnswers, { refusals, stuck }),
    maxHeaderSize: 16 * 1024,
    headersTimeout: times.headMs,
    requestTimeout: times.requestMs,
    connectionsCheckingInterval: lookEveryMs,
    // Longer than the usual 60 s of balancers, so that they close first.
    keepAliveTimeout: 75_000,
    noDelay: true,
    highWaterMark: unreadBytes,
    // Checked with the other headers: Node's own refusal has an empty body.
    requireHostHeader: false,
  };
  const failed: Parameters<typeof createTlsServer>[0]['failed'] = (handshake) =>
    refused({ id: newId('req_'), ...handshake });
  const server =
    tls === undefined
      ? nodeHttp.createServer(options)
      : createTlsServer({ ...options, tls, clock, failed, handshakeMs: times.headMs });
  server.on('request', (request, response) => {
    stuck.came(request, response, () => handle(request, response));
  });
  // The handler sends `100 Continue` itself once the key and the headers are good (B21).
  server.on('checkContinue', (request, response) => {
    stuck.came(request, response, () => handle(request, response));
  });
  server.on('checkExpectation', (request: IncomingMessage) => refusals.expectation(request.socket));
  // Without a listener Node closes the socket without a word (B23).
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => refusals.tunnel(socket));
  const late = new DeferredWork();
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code !== lateCode) refusals.broken(error, socket);
    else late.add(() => refusals.broken(error, socket));
  });
  // A client that half-closes has left; an answer without a reader is not paid for (F75).
  onConnection(server, (socket) => {
    socket.on('end', () => socket.destroy());
  });
  watchConnections(server, (socket) => stuck.isAnswering(socket));
  return server;
}

interface Watchers {
  readonly refusals: RawRefusals;
  readonly stuck: StuckConnections;
}

/** Also answers whose requests came before the stop, and refusals from wherever: all write their head. */
function answerClass(
  lastAnswers: () => boolean,
  { refusals, stuck }: Watchers,
): typeof ServerResponse {
  return class Answer<
    Request extends IncomingMessage = IncomingMessage,
  > extends nodeHttp.ServerResponse<Request> {
    override writeHead(...head: [number, ...never[]]): this {
      if (lastAnswers() || leavesTooMuch(this.req)) this.shouldKeepAlive = false;
      return super.writeHead(...head);
    }

    override end(...last: never[]): this {
      super.end(...last);
      stuck.whole(this);
      return this;
    }

    override assignSocket(socket: Socket): void {
      super.assignSocket(socket);
      refusals.begins(socket, this);
      stuck.begins(socket, this);
    }

    override detachSocket(socket: Socket): void {
      super.detachSocket(socket);
      refusals.ended(socket, this.req);
      stuck.ended(socket, this.req);
    }
  };
}

/** Starts listening with one socket; resolves with the address as `http://HOST:PORT`, over TLS `https://`. */
export async function listen(server: Server, address: ListenAddress): Promise<string> {
  await listenOnce(server, address);
  return urlOf(server);
}

/** Starts listening with several sockets on one port, for thousands of connections a second (G6). */
export async function listenWidely(server: Server, address: ListenAddress): Promise<string> {
  await openListeners(server, address);
  return urlOf(server);
}

/**
 * Starts listening with sockets that another process has bound and this one has inherited.
 * @param fds their descriptors; the server owns them from now on. @throws the errors of listen
 */
export async function listenInherited(server: Server, fds: readonly number[]): Promise<string> {
  const [first, ...rest] = fds;
  if (first === undefined) throw new Error('No listening socket was inherited.');
  await listenOnce(server, { fd: first });
  await addListeners(
    server,
    rest.map((fd) => ({ fd })),
  );
  return urlOf(server);
}

function urlOf(server: Server): string {
  const bound = server.address();
  if (!isAddress(bound)) return '';
  const scheme = server instanceof HttpsServer ? 'https' : 'http';
  const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return `${scheme}://${host}:${bound.port}`;
}

function ignore(): void {}

// Several listening sockets on one port (SO_REUSEPORT). The event loop accepts one connection per listening socket and
// turn (libuv since 1.45), and turns are long under load: with one socket, a loop that is 25 ms late accepts forty
// connections a second, and refusals take as long as their clients wait in the accept queue (G6). The kernel spreads new
// connections over the sockets of a port by a hash of their addresses. Worker processes share a port in the same way.

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Connections that one turn of the event loop accepts; each takes some 50 µs of it. */
export const listenerCount = 32;
/** Bytes that an answer may have unread before its upstream is paused (G9). */
const unreadBytes = 16 * 1024;
/** Length of each accept queue. */
const backlog = 1024;

/** The listeners of a server besides itself. */
const extraListeners = new WeakMap<Server, readonly TcpServer[]>();

type ListenSource = ListenOptions | { readonly fd: number };

/** Listens with one socket. @throws Error EADDRINUSE and the other errors of listen. */
export async function listenOnce(server: TcpServer, options: ListenSource): Promise<void> {
  const listening = once(server, 'listening');
  server.listen({ backlog, ...options });
  await listening;
}

/**
 * Listens with all sockets on Linux, with one elsewhere.
 * @throws Error EADDRINUSE, also where another gateway of this user shares the port; and the other errors of listen.
 */
export async function openListeners(server: Server, address: ListenAddress): Promise<void> {
  if (process.platform !== 'linux') return listenOnce(server, { ...address });
  const { host, port } = address;
  await checkFree(address);
  await listenOnce(server, { host, port, reusePort: true });
  const bound = server.address();
  if (!isAddress(bound)) return;
  const shared = { host: bound.address, port: bound.port, reusePort: true };
  await addListeners(
    server,
    Array.from({ length: listenerCount - 1 }, () => shared),
  );
}

/** Listens with a further socket for each of the options. */
async function addListeners(server: Server, options: readonly ListenSource[]): Promise<void> {
  const others = options.map((each) => ({ each, listener: extraListener(server) }));
  extraListeners.set(
    server,
    others.map(({ listener }) => listener),
  );
  await Promise.all(others.map(({ each, listener }) => listenOnce(listener, each)));
}

/** `host` is an IP address. */
export interface ReservedPort extends ListenAddress {
  readonly family: 4 | 6;
  /** Frees the port for listeners that share it. */
  release(): Promise<void>;
}

/**
 * Binds an address exclusively until it is released. Sockets that share a port could be added to those of another
 * gateway of the same user without an error; an exclusive one cannot.
 * @param address port 0 = any free port
 * @throws Error EADDRINUSE and the other errors of listen.
 */
export async function reservePort({ host, port }: ListenAddress): Promise<ReservedPort> {
  const server = createTcpServer((socket) => socket.destroy());
  await listenOnce(server, { host, port });
  const bound = server.address();
  if (!isAddress(bound)) throw new Error(`Nothing listens at ${host}:${port}.`);
  const family = bound.family === 'IPv6' ? 6 : 4;
  return { host: bound.address, port: bound.port, family, release: () => closed(server) };
}

/**
 * Whether a listener could have the address for itself. Nothing accepts meanwhile: a client that was accepted would be
 * reset, and a proxy does not send its call to another gateway then (G14).
 * @throws Error EADDRINUSE and the other errors of listen
 */
export async function checkFree(address: ListenAddress): Promise<void> {
  if (address.port === 0) return;
  if (process.platform !== 'linux') return (await reservePort(address)).release();
  const { address: host, family } = await lookup(address.host);
  bindSocket({ host, port: address.port, family: family === 6 ? 6 : 4 }, 0).close();
}

/** A socket that is bound, and neither listens nor accepts. */
export interface BoundSocket {
  readonly fd: number;
  close(): void;
}

/** A handle of Node's own: its methods return 0 or a negative error number of the system. */
interface Handle extends BoundSocket {
  getsockname(into: object): number;
}

/**
 * Binds a socket that neither listens nor accepts. @param flags of libuv; 2 = it shares its port (`SO_REUSEPORT`)
 *
 * Node's public interface has no bind without accept. `net._createServerHandle` has no documentation, but `node:cluster`
 * binds the shared sockets of its parent with it. `canShareSockets` tries it at the start of the gateway.
 * @throws Error with the code of the system, e.g. EADDRINUSE, EMFILE
 */
export function bindSocket(
  { host, port, family }: Omit<ReservedPort, 'release'>,
  flags: number,
): BoundSocket {
  const create: unknown = Reflect.get(net, '_createServerHandle');
  if (typeof create !== 'function') throw new Error('Node cannot bind without listening.');
  const handle: unknown = create(host, port, family, undefined, flags);
  if (typeof handle === 'number') throw bindError(handle, host, port);
  if (!isHandle(handle)) throw new Error('Node binds in another way than known here.');
  // libuv reports EADDRINUSE at the first use of the socket.
  const failure = handle.getsockname({});
  if (failure === 0) return handle;
  handle.close();
  throw bindError(failure, host, port);
}

function isHandle(handle: unknown): handle is Handle {
  return (
    typeof handle === 'object' &&
    handle !== null &&
    'fd' in handle &&
    typeof handle.fd === 'number' &&
    handle.fd >= 0 &&
    'close' in handle &&
    typeof handle.close === 'function' &&
    'getsockname' in handle &&
    typeof handle.getsockname === 'function'
  );
}

function bindError(failure: number, host: string, port: number): Error {
  const code = getSystemErrorName(failure);
  return Object.assign(new Error(`bind ${code} ${host}:${port}`), { code });
}

/** Connections accepted by the extra listeners are emitted on the main server. */
function extraListener(server: Server): TcpServer {
  const options = { allowHalfOpen: true, noDelay: true, highWaterMark: unreadBytes };
  return createTcpServer(options, (socket: Socket) => server.emit('connection', socket));
}

/** What comes later in a turn than its poll for connections is not seen: the turn before a close is a short one. */
const shortTurnMs = 1;
/** Until then only a short turn ends the drain. A busy process may have only long turns. */
const untilShortMs = 1000;

/**
 * Accepts what waits in the accept queues, because the kernel resets it when their socket closes (G14). Ends after a short
 * turn of the event loop without a new connection. After a second it ends after any turn without a new connection. Where
 * connections keep coming, it ends after 1,024 turns, the length of a queue: a listening socket accepts one connection in a
 * turn, so all that waited at the beginning are accepted. @param isCut ends it with the current turn
 */
export async function drainAcceptQueue(
  server: Server,
  isCut: () => boolean = () => false,
): Promise<void> {
  let accepted = 0;
  const count = (): void => void (accepted += 1);
  server.on('connection', count);
  const until = performance.now() + untilShortMs;
  // The current turn may be past its poll, so it does not count.
  await turn();
  for (let turns = 0, quiet = false; !quiet && turns < backlog && !isCut(); turns += 1) {
    const before = { accepted, at: performance.now() };
    await turn();
    const now = performance.now();
    quiet = accepted === before.accepted && (now - before.at < shortTurnMs || now > until);
  }
  server.off('connection', count);
}

/** Stops listening and leaves the connections open; resolves when the last one is closed. */
export async function closeListeners(server: Server): Promise<void> {
  const others = extraListeners.get(server) ?? [];
  await Promise.all([server, ...others].map((listener) => closed(listener)));
  // Ends the check of the time of heads.
  server.close();
}

async function closed(listener: TcpServer): Promise<void> {
  const over = once(listener, 'close');
  // The `close` of an HTTP server would close idle connections, too.
  TcpServer.prototype.close.call(listener);
  await over;
}

/** Open connections of all listeners. */
export async function countConnections(server: Server): Promise<number> {
  const listeners = [server, ...(extraListeners.get(server) ?? [])];
  const counts = await Promise.all(listeners.map((listener) => connectionsOf(listener)));
  return counts.reduce((sum, count) => sum + count, 0);
}

function connectionsOf(listener: TcpServer): Promise<number> {
  return new Promise((resolve) => {
    listener.getConnections((error, count) => resolve(error === null ? count : 0));
  });
}

function isAddress(bound: AddressInfo | string | null): bound is AddressInfo {
  return typeof bound === 'object' && bound !== null;
}
