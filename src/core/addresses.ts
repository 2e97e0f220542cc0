/**
 * Network addresses: IP ranges (CIDR, IPv4 and IPv6; an IPv4-mapped IPv6 address is IPv4), hosts that the gateway never
 * connects to, hosts of internal networks, and addresses of database servers.
 */
import type { Secret } from './secret.ts';

/** An address as a number of its family's width. */
interface IpAddress {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

/** `10.0.0.0/8`, `2001:db8::/32`, or one address. */
export class AddressRange {
  readonly #bits: number;
  readonly #shift: bigint;
  readonly #prefix: bigint;

  /** @throws RangeError when the text is not a range; `rangeProblem` checks it beforehand. */
  constructor(text: string) {
    const range = readRange(text);
    if (range === undefined) throw new RangeError('no address range');
    this.#bits = range.bits;
    this.#shift = BigInt(range.bits - range.length);
    this.#prefix = range.value >> this.#shift;
  }

  /** False for anything that is not an address. */
  holds(address: string): boolean {
    const ip = readAddress(address);
    return ip?.bits === this.#bits && ip.value >> this.#shift === this.#prefix;
  }
}

/**
 * The problem of the text of a range, as a text that follows its name; undefined if it is valid.
 * Bits after the prefix are an error: 10.1.2.3/8 is probably meant as something else.
 */
export function rangeProblem(text: string): string | undefined {
  const range = readRange(text);
  if (range === undefined) {
    return 'is not an address range: 10.0.0.0/8, 2001:db8::/32, or one address';
  }
  const shift = BigInt(range.bits - range.length);
  if ((range.value >> shift) << shift === range.value) return undefined;
  return `has bits after its prefix of ${range.length}: give the first address of the range`;
}

function readRange(text: string): (IpAddress & { readonly length: number }) | undefined {
  const slash = text.indexOf('/');
  const address = slash === -1 ? text : text.slice(0, slash);
  const ip = readPlain(address);
  if (ip === undefined) return undefined;
  if (slash === -1) return unmapped({ ...ip, length: ip.bits });
  const length = text.slice(slash + 1);
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > ip.bits) return undefined;
  return unmapped({ ...ip, length: Number(length) });
}

/** `::ffff:10.0.0.0/104` is `10.0.0.0/8`. */
function unmapped(
  range: IpAddress & { readonly length: number },
): IpAddress & { readonly length: number } {
  const inner = range.length >= 96 ? inIpv4(range) : undefined;
  return inner === undefined ? range : { ...inner, length: range.length - 96 };
}

/** The address of a text without a port; a zone (`%eth0`) is not examined. */
function readAddress(text: string): IpAddress | undefined {
  const zone = text.indexOf('%');
  const ip = readPlain(zone === -1 ? text : text.slice(0, zone));
  return ip === undefined ? undefined : (inIpv4(ip) ?? ip);
}

function readPlain(text: string): IpAddress | undefined {
  return text.includes(':') ? readIpv6(text) : readIpv4(text);
}

const mappedPrefix = 0xffffn;

function inIpv4({ bits, value }: IpAddress): IpAddress | undefined {
  if (bits !== 128 || value >> 32n !== mappedPrefix) return undefined;
  return { bits: 32, value: value & 0xffff_ffffn };
}

/** Four decimal numbers without leading zeros: some readers take `010` for eight. */
function readIpv4(text: string): IpAddress | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  let value = 0n;
  for (const part of parts) {
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    value = (value << 8n) | BigInt(part);
  }
  return { bits: 32, value };
}

function readIpv6(text: string): IpAddress | undefined {
  const groups = groupsOf(text);
  if (groups === undefined) return undefined;
  let value = 0n;
  for (const group of groups) value = (value << 16n) | BigInt(group);
  return { bits: 128, value };
}

/** The eight groups as numbers; one `::` fills up with zeros. */
function groupsOf(text: string): readonly number[] | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [head = '', tail] = halves;
  const before = readGroups(head, tail === undefined);
  const behind = tail === undefined ? [] : readGroups(tail, true);
  if (before === undefined || behind === undefined) return undefined;
  const missing = 8 - before.length - behind.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  return [...before, ...Array.from({ length: Math.max(0, missing) }, () => 0), ...behind];
}

function readGroups(text: string, isEnd: boolean): readonly number[] | undefined {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [i, part] of parts.entries()) {
    if (isEnd && i === parts.length - 1 && part.includes('.')) {
      const ip = readIpv4(part);
      if (ip === undefined) return undefined;
      groups.push(Number(ip.value >> 16n), Number(ip.value & 0xffffn));
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
}

const linkLocal4 = '169.254.0.0/16';
/** Outside the link-local range: Alibaba, Oracle, Azure (the last two also answer at 169.254). */
const metadata4 = ['100.100.100.200/32', '192.0.0.192/32', '168.63.129.16/32'];
/** Link-local; AWS and Google. */
const forbiddenIpv6 = ['fe80::/10', 'fd00:ec2::/32', 'fd20:ce::254'];

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

const forbiddenIpv4 = [linkLocal4, ...metadata4];
const forbiddenRanges = [...forbiddenIpv4, ...forbiddenIpv6, ...forbiddenIpv4.flatMap(carried)].map(
  (text) => new AddressRange(text),
);

/** Names of metadata services. Other names that resolve to a forbidden address are refused at the connection. */
const metadataNames: ReadonlySet<string> = new Set([
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'instance-data.ec2.internal',
]);

/**
 * Whether the gateway must never connect to an IP address (S16 b): link-local addresses and those at which clouds hand
 * out credentials of the machine. Private addresses are allowed: the config names them. False for other text.
 */
export function isForbiddenAddress(address: string): boolean {
  return forbiddenRanges.some((range) => range.holds(address));
}

/** `isForbiddenAddress` for the host of a URL: a name, an address, or an IPv6 address in brackets. */
export function isForbiddenHost(host: string): boolean {
  const bare = host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  return metadataNames.has(bare) || isForbiddenAddress(bare);
}

/** The problem of such a host, as a text that follows its name in the config. */
export const forbiddenHost =
  'is a link-local or cloud-metadata address, which can expose credentials of the machine; the gateway never connects there';

const internalRanges = [
  // This host, private, carrier-grade, loopback, link-local, special, benchmarks, multicast, reserved.
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Azure's metadata, outside of the ranges above.
  '168.63.129.16',
  // Unspecified and loopback with all IPv4-compatible ones, unique local, link-local, site-local, multicast.
  '::/96',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
  // IPv4 inside of IPv6: NAT64 (also local-use), 6to4, Teredo, translated. No public image is served there.
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2002::/16',
  '2001::/32',
  '::ffff:0:0:0/96',
].map((text) => new AddressRange(text));

const internalNames: ReadonlySet<string> = new Set(['metadata.goog']);
/** Suffixes of private networks. `.svc` is the suffix of Kubernetes services. */
const internalSuffixes = [
  '.localhost',
  '.local',
  '.localdomain',
  '.internal',
  '.intranet',
  '.private',
  '.corp',
  '.home',
  '.lan',
  '.home.arpa',
  '.svc',
];

/**
 * Whether the URL's host is this machine or a network behind it, in any spelling: the URL parser reads `0x7f.1`,
 * `2130706433` and `ⓛocalhost` as what they mean. A client's URL of that kind is refused, because a provider or
 * an engine might fetch it from the inside; the gateway itself fetches none. True for text that is not a URL.
 */
export function isInternalUrl(url: string): boolean {
  const parsed = URL.parse(url);
  if (parsed === null) return true;
  const host = withoutDots(parsed.hostname.replace(/^\[|\]$/g, ''));
  return (
    host === '' ||
    // A name without a dot is looked up in the network's own domain: `localhost`, `redis`, `metadata`.
    !/[.:]/.test(host) ||
    internalNames.has(host) ||
    internalSuffixes.some((ending) => host.endsWith(ending)) ||
    internalRanges.some((range) => range.holds(host))
  );
}

/** Without the dots at its end; a pattern for them takes time by the square of their number (S22). */
function withoutDots(host: string): string {
  let end = host.length;
  while (host[end - 1] === '.') end -= 1;
  return host.slice(0, end);
}

/** Where a database server listens and how it is spoken to: the parts of a `postgres://` or `redis://` URL. */
export interface ServerAddress {
  readonly scheme: 'postgres' | 'redis';
  /** A name, an address, or the directory of a Unix socket (begins with `/`). */
  readonly host: string;
  readonly port: number;
  readonly user?: string;
  readonly password?: Secret;
  /** Name of the database; the number of one for Redis. */
  readonly database: string;
  /** Absent = no encryption. Certificates are always verified (S19). */
  readonly tls?: ServerTls;
  /** Safe to show: scheme, host, port and database; never user or password. */
  readonly shown: string;
}

/** The certificate of a listener, and the authorities of client certificates. */
export interface ListenerTls {
  /** PEM: the certificate, and the intermediate ones after it. */
  readonly cert: string;
  /** PEM. */
  readonly key: Secret;
  /** PEM of the authorities of clients; absent = clients need no certificate. */
  readonly clientCa?: string;
  /** Absolute paths of what was read: a change of one is a change of the config. */
  readonly files: readonly string[];
}

export interface ServerTls {
  /** PEM; absent = the authorities that Node trusts. */
  readonly ca?: string;
  /** PEM of the client's own certificate and its key. */
  readonly cert?: string;
  readonly key?: Secret;
  /** Whether the certificate must be for the very host; false = `sslmode=verify-ca`. */
  readonly checkHost: boolean;
}
