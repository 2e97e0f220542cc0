/**
 * Where no connection of the gateway goes, whoever asks for it (S16 b): link-local addresses and those at
 * which clouds hand out the credentials of the machine. Private addresses are fine: the config names them.
 */
import { AddressRange } from './address-range.ts';

const linkLocal = ['169.254.0.0/16', 'fe80::/10'];

/** Outside the link-local ranges: AWS, Google, Alibaba, Oracle, Azure (the last two also answer at 169.254). */
const metadata = [
  'fd00:ec2::/32',
  'fd20:ce::254',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
];

/** The same behind NAT64 and in 6to4 clothes: both carry an IPv4 address. */
const carried = ['64:ff9b::169.254.0.0/112', '2002:a9fe::/32', '::169.254.0.0/112'];

const forbidden = [...linkLocal, ...metadata, ...carried].map((text) => new AddressRange(text));

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
