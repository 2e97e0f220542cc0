/** The HTTP server of both planes: limits of the connection, and refusals Node makes by itself. */
import { createServer, ServerResponse, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { watchConnections } from './connections.ts';
import { leavesTooMuch } from './body.ts';
import { listenOnce, openDoors, unreadBytes, type ListenAddress } from './doors.ts';
import { Paced } from './overload/paced.ts';
import { RawRefusals, type RawRefusalParts } from './raw-refusals.ts';
import { restMs, stalledEndMs, StuckConnections, type StuckTimes } from './stuck-connections.ts';

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

export interface ServerTimes extends StuckTimes {
  /** A head must be there by then; looked at forty times a second (G10). */
  readonly headMs: number;
  /** And all of its request; 0 = its body has a rate to keep instead. */
  readonly requestMs: number;
}

export interface ListenerOptions extends Partial<RawRefusalParts> {
  readonly times?: ServerTimes;
  /** Whether answers that begin now close their connections: the gateway stops (G14). */
  readonly lastAnswers?: () => boolean;
}

/**
 * With the interval, no head lives for longer than ten seconds. Bodies have no time in all: one of 32 MB at
 * `limits.body_rate` takes half an hour (G10, `overload/slow-bodies.ts`).
 */
export const dataTimes: ServerTimes = {
  headMs: 9000,
  requestMs: 0,
  restMs,
  stalledMs: stalledEndMs,
};

/**
 * Node looks at all heads that are not whole in one go, and makes an error with a stack for each late one: of 2,500 that
 * came within a second those of a tenth of it took 9 ms, in which nobody else had a turn.
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
  }: ListenerOptions = {},
): Server {
  const refusals = new RawRefusals({ newId, refused, refusalHeaders });
  const stuck = new StuckConnections(times);
  const server = createServer({
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
  });
  server.on('request', (request, response) => {
    if (stuck.came(request, response)) handle(request, response);
  });
  // The handler sends `100 Continue` itself once the key and the headers are good (B21).
  server.on('checkContinue', (request, response) => {
    if (stuck.came(request, response)) handle(request, response);
  });
  server.on('checkExpectation', (request: IncomingMessage) => refusals.expectation(request.socket));
  // Without a listener Node closes the socket without a word (B23).
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => refusals.tunnel(socket));
  const late = new Paced();
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code !== lateCode) refusals.broken(error, socket);
    else late.add(() => refusals.broken(error, socket));
  });
  // A client that half-closes has left; answers to nobody are not paid for (F75).
  server.on('connection', (socket: Socket) => {
    socket.on('end', () => socket.destroy());
  });
  watchConnections(server);
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
  > extends ServerResponse<Request> {
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

/** Starts listening, at one door; resolves with the address as `http://HOST:PORT`. */
export async function listen(server: Server, address: ListenAddress): Promise<string> {
  await listenOnce(server, address);
  return urlOf(server);
}

/** Starts listening at many doors: for callers who come by the thousand (G6). */
export async function listenWidely(server: Server, address: ListenAddress): Promise<string> {
  await openDoors(server, address);
  return urlOf(server);
}

function urlOf(server: Server): string {
  const bound = server.address();
  return isAddress(bound) ? `http://${hostPort(bound)}` : '';
}

function isAddress(bound: AddressInfo | string | null): bound is AddressInfo {
  return typeof bound === 'object' && bound !== null;
}

function hostPort({ address, family, port }: AddressInfo): string {
  return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
}

function ignore(): void {}
