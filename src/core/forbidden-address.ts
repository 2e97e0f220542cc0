/**
 * Where no connection of the gateway goes, whoever asks for it (S16 b): link-local addresses and those at
 * which clouds hand out the credentials of the machine. Private addresses are fine: the config names them.
 */
import { AddressRange } from './address-range.ts';

const linkLocal4 = '169.254.0.0/16';
/** Outside the link-local range: Alibaba, Oracle, Azure (the last two also answer at 169.254). */
const metadata4 = ['100.100.100.200/32', '192.0.0.192/32', '168.63.129.16/32'];
/** Link-local; AWS and Google. */
const inIpv6 = ['fe80::/10', 'fd00:ec2::/32', 'fd20:ce::254'];

/**
 * An IPv4 range as IPv6 addresses carry it: NAT64 (RFC 6052 §2.2, RFC 8215: the network's own prefix of 96 bits, or all
 * of 48, whose address is in two parts around a byte of zeros), 6to4, translated (RFC 2765), IPv4-compatible.
 */
function carried(range: string): readonly string[] {
  const [address = '', size] = range.split('/');
  const length = Number(size);
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  const pair = (high: number, low: number): string => ((high << 8) | low).toString(16);
  return [
    `64:ff9b::${address}/${96 + length}`,
    `64:ff9b:1::${address}/${96 + length}`,
    `64:ff9b:1:${pair(a, b)}:${pair(0, c)}:${pair(d, 0)}::/${length > 16 ? 56 + length : 48 + length}`,
    `2002:${pair(a, b)}:${pair(c, d)}::/${16 + length}`,
    `::ffff:0:${address}/${96 + length}`,
    `::${address}/${96 + length}`,
  ];
}

const inIpv4 = [linkLocal4, ...metadata4];
const forbidden = [...inIpv4, ...inIpv6, ...inIpv4.flatMap(carried)].map(
  (text) => new AddressRange(text),
);

/** Names that lead there; what else resolves to such an address is found when it is connected to. */
const names: ReadonlySet<string> = new Set([
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'instance-data.ec2.internal',
]);

/** Whether an IP address, as text, is one of them. False for what is no address. */
export function isForbiddenAddress(address: string): boolean {
  return forbidden.some((range) => range.holds(address));
}

/** Whether the host of a URL (a name, an address, brackets around IPv6) is one of them. */
export function isForbiddenHost(host: string): boolean {
  const bare = host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  return names.has(bare) || isForbiddenAddress(bare);
}

/** What is wrong with such a host, in words that follow its name in the config. */
export const forbiddenHost =
  'is a link-local address or one of cloud metadata, where credentials of the machine lie; the gateway never connects there';
