/**
 * Where a request comes from: the socket's other end, or, where that is a proxy of ours, who the proxy
 * says it was. Anybody can write `x-forwarded-for`; it counts only as far as trusted proxies wrote it.
 */
import type { IncomingMessage } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import { AddressRange } from '../core/addresses.ts';

const maxHops = 20;

export class ClientAddresses {
  readonly #proxies: readonly AddressRange[];

  /** @param proxies ranges of addresses that the config trusts (`trusted_proxies`). */
  constructor(proxies: readonly string[]) {
    this.#proxies = proxies.map((range) => new AddressRange(range));
  }

  /** Undefined when the socket is gone, or a trusted proxy wrote no address. */
  of(request: IncomingMessage): string | undefined {
    const { remoteAddress } = request.socket;
    if (remoteAddress === undefined || !this.#isProxy(remoteAddress)) return remoteAddress;
    const header = request.headers['x-forwarded-for'];
    if (header === undefined) return remoteAddress;
    const hops = (Array.isArray(header) ? header.join(',') : header).split(',').slice(-maxHops);
    // Each proxy adds whom it saw at the end: the last one that is no proxy of ours is the client.
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

/** Some balancers write the port as well. Undefined for what is no address: it must not stand for one. */
function bareAddress(hop: string): string | undefined {
  const text = /^\[([^\]]*)\](:\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return isIP(text) === 0 ? undefined : text;
}

// What stands for a client's address where something is counted by address.

/** An IPv6 address stands for its /64: its client has all addresses of that network. '' = the address is not known. */
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
