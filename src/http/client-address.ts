/**
 * The client address: the peer of the socket, or, if the peer is a trusted proxy, the address that the proxy
 * reports. Clients can forge `x-forwarded-for`, so it counts only as far as trusted proxies wrote it.
 */
import type { IncomingMessage } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import { AddressRange } from '../core/addresses.ts';

const maxHops = 20;

export class ClientAddresses {
  readonly #proxies: readonly AddressRange[];

  /** @param proxies trusted address ranges (`trusted_proxies`). */
  constructor(proxies: readonly string[]) {
    this.#proxies = proxies.map((range) => new AddressRange(range));
  }

  /** Undefined when the socket is closed, or a trusted proxy sent no address. */
  of(request: IncomingMessage): string | undefined {
    const { remoteAddress } = request.socket;
    if (remoteAddress === undefined || !this.#isProxy(remoteAddress)) return remoteAddress;
    const header = request.headers['x-forwarded-for'];
    if (header === undefined) return remoteAddress;
    const hops = (Array.isArray(header) ? header.join(',') : header).split(',').slice(-maxHops);
    // Each proxy appends its peer: the last address that is not a trusted proxy is the client.
    for (const hop of hops.toReversed()) {
      const address = bareAddress(hop.trim());
      if (address === undefined || !this.#isProxy(address)) return address;
    }
    return bareAddress(hops[0]?.trim() ?? '');
  }

  #isProxy(address: string): boolean {
    return this.#proxies.some((range) => range.holds(address));
  }
}

/**
 * Some load balancers append the port. Undefined for what is not an address, so that it never counts as one.
 */
function bareAddress(hop: string): string | undefined {
  const text = /^\[([^\]]*)\](:\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return isIP(text) === 0 ? undefined : text;
}

// The part of a client's address that is counted.

/**
 * An IPv6 address counts as its /64, since a client has all addresses of that network. '' = unknown address.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined || !isIPv6(address) || address.includes('.')) return address ?? '';
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? [];
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length;
  const groups = [...front, ...Array.from({ length: zeros }, () => '0'), ...back];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
