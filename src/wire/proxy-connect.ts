/** Connections through a proxy: CONNECT for https, a plain connection to it for http (RFC 9110 §9.3.6). */
import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

const maxHeadBytes = 16 * 1024;

export interface ProxyPlace {
  /** `http://host:port` or `https://host:port`. */
  readonly origin: string;
  /** The value of `proxy-authorization`. */
  readonly authorization?: string;
}

/** The proxy said no, or nothing that could be understood. */
class ProxyRefusal extends Error {
  readonly code = 'PROXY_REFUSED';
}

interface Connectors {
  /** To the proxy. */
  readonly outer: buildConnector.connector;
  /** TLS to the target, over what the proxy let through. */
  readonly inner: buildConnector.connector;
  readonly timeoutMs: number;
}

export function proxyConnector(
  proxy: ProxyPlace,
  { outer, inner, timeoutMs }: Connectors,
): buildConnector.connector {
  const { hostname, host, protocol, port } = new URL(proxy.origin);
  const place = { hostname, host, protocol, port: port || (protocol === 'https:' ? '443' : '80') };
  return (wanted, callback) => {
    outer(place, (error, socket) => {
      if (error !== null) return callback(error, null);
      if (wanted.protocol !== 'https:') return callback(null, socket);
      const target = `${wanted.hostname}:${wanted.port || '443'}`;
      tunnel({ socket, target, proxy, timeoutMs }, (refusal) => {
        if (refusal === undefined) inner({ ...wanted, httpSocket: socket }, callback);
        else callback(refusal, null);
      });
    });
  };
}

interface Tunnel {
  readonly socket: Socket;
  readonly target: string;
  readonly proxy: ProxyPlace;
  readonly timeoutMs: number;
}

/** Asks the proxy for the way to the target; called back once, with what speaks against it. */
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
