/** IP addresses and ranges of them (CIDR), IPv4 and IPv6. An IPv4 address in IPv6 clothes is IPv4. */

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

  /** @throws RangeError when the text is no range; `rangeProblem` tells beforehand. */
  constructor(text: string) {
    const range = readRange(text);
    if (range === undefined) throw new RangeError('no address range');
    this.#bits = range.bits;
    this.#shift = BigInt(range.bits - range.length);
    this.#prefix = range.value >> this.#shift;
  }

  /** False for anything that is no address. */
  holds(address: string): boolean {
    const ip = readAddress(address);
    return ip?.bits === this.#bits && ip.value >> this.#shift === this.#prefix;
  }
}

/**
 * What is wrong with the text of a range, in words that follow its name; undefined when nothing is.
 * Bits behind the prefix are a mistake: who writes 10.1.2.3/8 means something else.
 */
export function rangeProblem(text: string): string | undefined {
  const range = readRange(text);
  if (range === undefined) {
    return 'is no address range: 10.0.0.0/8, 2001:db8::/32, or one address';
  }
  const shift = BigInt(range.bits - range.length);
  if ((range.value >> shift) << shift === range.value) return undefined;
  return `has bits behind its prefix of ${range.length}: give the first address of the range`;
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

/** The address of a text without a port; a zone (`%eth0`) is not looked at. */
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
