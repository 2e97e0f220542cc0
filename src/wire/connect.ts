/**
 * Connections to upstreams over `net` and `tls`, directly or through a proxy. Addresses are checked at the moment of
 * connecting, after the look-up: what a name resolved to when the config was read proves nothing for later (DNS
 * rebinding, S16 b).
 */
import type { LookupAddress } from 'node:dns';
import { type LookupFunction, type Socket, connect as connectTcp, isIP } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { isForbiddenAddress, isForbiddenHost } from '../core/addresses.ts';

/** The peer of a connection. */
export interface Peer {
  readonly protocol: string;
  /** An IPv6 address without brackets. */
  readonly hostname: string;
  /** Empty = the protocol's own. */
  readonly port: string;
  /** A connection that leads to it already, through a proxy: TLS runs over it. */
  readonly tunnel?: Socket;
}

export type Connected = (error: Error | null, socket: Socket | undefined) => void;

/** Calls back once, later. */
export type Connector = (peer: Peer, connected: Connected) => void;

export interface ConnectOptions {
  /** For the connection and its TLS handshake, ms. */
  readonly timeoutMs: number;
  readonly lookup: LookupFunction;
  /** Unix socket instead of the peer's address. */
  readonly socketPath?: string | undefined;
  /** Authorities that are trusted; default: the usual ones. */
  readonly ca?: readonly string[] | undefined;
  /** Takes what is read instead of the socket's stream. */
  readonly onread?: { readonly buffer: Buffer; callback(length: number, buffer: Buffer): boolean };
}

class ForbiddenAddress extends Error {
  readonly code = 'FORBIDDEN_ADDRESS';
}

class ConnectTimeout extends Error {
  readonly code = 'CONNECT_TIMEOUT';
}

/**
 * What a connection whose answer is paused may hold before it stops reading: a read is up to 64 KiB, and the
 * one after the pause must be the last one (G9).
 */
const highWaterMark = 16 * 1024;
const keepAliveProbeMs = 60_000;
/** TLS sessions that are resumed, by server name. */
const maxSessions = 100;

/** Refuses addresses that no upstream may have, in the URL and after the look-up. */
export function guardedConnector({ timeoutMs, ...options }: ConnectOptions): Connector {
  const open = opener({ ...options, lookup: guardedLookup(options.lookup) });
  return (peer, connected) => {
    if (isForbiddenHost(peer.hostname)) {
      const error = new ForbiddenAddress('a link-local address or one of cloud metadata');
      queueMicrotask(() => connected(error, undefined));
      return;
    }
    const socket = open(peer, peer.protocol === 'https:');
    socket.setNoDelay(true).setKeepAlive(true, keepAliveProbeMs);
    whenConnected(socket, timeoutMs, connected);
  };
}

/** Removes its listeners: the socket lives longer than the call that waited for it. */
function whenConnected(socket: Socket, timeoutMs: number, connected: Connected): void {
  const ready = 'encrypted' in socket ? 'secureConnect' : 'connect';
  const finish = (error: Error | null): void => {
    clearTimeout(timer);
    socket.off(ready, succeed).off('error', fail);
    if (error === null) return connected(null, socket);
    socket.on('error', ignore).destroy();
    connected(error, undefined);
  };
  const succeed = (): void => finish(null);
  const fail = (error: Error): void => finish(asTimeout(error));
  const timer = setTimeout(
    () => finish(new ConnectTimeout(`no connection within ${timeoutMs} ms`)),
    timeoutMs,
  );
  socket.once(ready, succeed).on('error', fail);
}

/** Errors of a socket that was given up. */
function ignore(): void {}

function opener(
  options: Omit<ConnectOptions, 'timeoutMs'>,
): (peer: Peer, secure: boolean) => Socket {
  const { lookup, socketPath, ca, onread } = options;
  const sessions = new Map<string, Buffer>();
  const common = {
    highWaterMark,
    lookup,
    ...(socketPath === undefined ? {} : { path: socketPath }),
    ...(onread === undefined ? {} : { onread }),
  };
  return ({ hostname, port, tunnel }, secure) => {
    const at = { host: hostname, port: Number(port === '' ? (secure ? 443 : 80) : port) };
    if (!secure) return connectTcp({ ...common, ...at });
    const session = sessions.get(hostname);
    const tls: ConnectionOptions = {
      ...common,
      ...at,
      // An address is not a server name (RFC 6066 §3).
      servername: isIP(hostname) === 0 ? hostname : '',
      ALPNProtocols: ['http/1.1'],
      ...(ca === undefined ? {} : { ca: [...ca] }),
      ...(session === undefined ? {} : { session }),
      ...(tunnel === undefined ? {} : { socket: tunnel }),
    };
    return connectTls(tls).on('session', (fresh: Buffer) => {
      sessions.delete(hostname);
      sessions.set(hostname, fresh);
      const [oldest] = sessions.keys();
      if (sessions.size > maxSessions && oldest !== undefined) sessions.delete(oldest);
    });
  };
}

/** Node tries the addresses of a name one after the other, each with a timeout of its own. */
function asTimeout(error: Error): Error {
  if (!(error instanceof AggregateError)) return error;
  const timedOut = error.errors.some(
    (each: unknown) =>
      (typeof each === 'object' && each !== null && 'code' in each ? each.code : undefined) ===
      'ETIMEDOUT',
  );
  return timedOut ? new ConnectTimeout('no address answered in time', { cause: error }) : error;
}

/** The same look-up without forbidden addresses; an error when no other address is left. */
export function guardedLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, found, family) => {
      if (error !== null) {
        callback(error, found, family);
        return;
      }
      const allowed = listed(found, family).filter(({ address }) => !isForbiddenAddress(address));
      const [first] = allowed;
      if (first === undefined) {
        callback(new ForbiddenAddress(`${hostname} leads to a link-local address`), '', 0);
      } else if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
}

function listed(found: string | LookupAddress[], family = 0): readonly LookupAddress[] {
  return typeof found === 'string' ? [{ address: found, family }] : found;
}

const maxHeadBytes = 16 * 1024;

export interface ProxyAddress {
  /** `http://host:port` or `https://host:port`. */
  readonly origin: string;
  /** The value of `proxy-authorization`. */
  readonly authorization?: string;
}

/** The proxy refused, or answered something that is not HTTP. */
class ProxyRefusal extends Error {
  readonly code = 'PROXY_REFUSED';
}

/**
 * Connections through a proxy: CONNECT for https, a plain connection to it for http (RFC 9110 §9.3.6).
 * @param direct connects to the proxy, and runs TLS to the peer over its tunnel.
 */
export function proxyConnector(
  proxy: ProxyAddress,
  direct: Connector,
  timeoutMs: number,
): Connector {
  const { hostname, protocol, port } = new URL(proxy.origin);
  const through = { hostname: hostname.replace(/^\[|\]$/g, ''), protocol, port };
  return (peer, connected) => {
    direct(through, (error, socket) => {
      if (socket === undefined) return connected(error, undefined);
      if (peer.protocol !== 'https:') return connected(null, socket);
      const host = isIP(peer.hostname) === 6 ? `[${peer.hostname}]` : peer.hostname;
      const target = `${host}:${peer.port || '443'}`;
      tunnel({ socket, target, proxy, timeoutMs }, (refusal) => {
        if (refusal === undefined) direct({ ...peer, tunnel: socket }, connected);
        else connected(refusal, undefined);
      });
    });
  };
}

interface Tunnel {
  readonly socket: Socket;
  readonly target: string;
  readonly proxy: ProxyAddress;
  readonly timeoutMs: number;
}

/** Asks the proxy for a tunnel to the target; calls back once, with the refusal if there is one. */
function tunnel(
  { socket, target, proxy, timeoutMs }: Tunnel,
  done: (refusal?: ProxyRefusal) => void,
): void {
  let head = '';
  const timer = setTimeout(() => finish('did not answer in time'), timeoutMs);
  const finish = (problem?: string): void => {
    clearTimeout(timer);
    socket.off('data', read).off('close', closed).off('error', ignore);
    if (problem === undefined) return done();
    socket.destroy();
    const why = `the proxy ${proxy.origin} ${problem} for ${target}; see proxy of the provider, HTTPS_PROXY and NO_PROXY`;
    done(new ProxyRefusal(why));
  };
  const read = (chunk: Buffer): void => {
    head += chunk.toString('latin1');
    if (!head.includes('\r\n\r\n')) {
      if (head.length > maxHeadBytes) finish('sent no end of its headers');
      return;
    }
    const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1];
    if (status === '200') finish();
    else finish(status === undefined ? 'does not speak HTTP' : `answered ${status}`);
  };
  const closed = (): void => finish('closed the connection');
  const ignore = (): void => undefined;
  socket.on('data', read).on('close', closed).on('error', ignore);
  const credential =
    proxy.authorization === undefined ? '' : `proxy-authorization: ${proxy.authorization}\r\n`;
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${credential}\r\n`);
}

/** How long a resolved name is usable while the name servers fail. */
const reuseMs = 5 * 60_000;
const maxNames = 1000;

/** `EAI_AGAIN` stands for SERVFAIL and for name servers that do not answer. */
const serverFailures: ReadonlySet<string> = new Set(['EAI_AGAIN', 'ETIMEOUT', 'ESERVFAIL']);

interface Found {
  readonly address: string | LookupAddress[];
  readonly family: number | undefined;
  /** Monotonic ms. */
  readonly at: number;
}

/** The same look-up, which answers with the last addresses while the name servers fail. */
export function withLastAddresses(
  lookup: LookupFunction,
  now: () => number = () => performance.now(),
): LookupFunction {
  const last = new Map<string, Found>();
  return (hostname, options, callback) => {
    const key = `${hostname} ${String(options.all)} ${String(options.family)}`;
    lookup(hostname, options, (error, address, family) => {
      if (error === null) {
        keep(last, key, { address, family, at: now() });
        callback(null, address, family);
        return;
      }
      const found = last.get(key);
      const usable = serverFailures.has(error.code ?? '') && found !== undefined;
      if (usable && now() - found.at <= reuseMs) callback(null, found.address, found.family);
      else callback(error, address, family);
    });
  };
}

function keep(last: Map<string, Found>, key: string, found: Found): void {
  last.delete(key);
  last.set(key, found);
  const [oldest] = last.keys();
  if (last.size > maxNames && oldest !== undefined) last.delete(oldest);
}
