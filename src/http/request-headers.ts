/** Request headers that the gateway checks and reads: framing, labels, and the client's address behind proxies (`ClientAddresses`). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import { AddressRange } from '../core/addresses.ts';
import type { RequestDescription } from '../core/description.ts';
import { GatewayError, invalidRequest } from '../core/errors.ts';
import { tryParseObject } from '../json/parse.ts';

const betaForm = /^[A-Za-z0-9._-]{1,128}$/;
const versionForm = /^[A-Za-z0-9._-]{1,64}$/;
const maxBetas = 50;
/** Visible ASCII, with spaces inside. */
const keyForm = /^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/;

/**
 * Refuses values that no upstream could read.
 * @throws GatewayError `invalid_request`.
 */
export function checkClientHeaders(request: IncomingMessage): void {
  const version = headerValue(request, 'anthropic-version');
  if (version !== undefined && version !== '' && !versionForm.test(version)) {
    throw invalidRequest('The header anthropic-version is not a version, such as 2023-06-01.');
  }
  const betas = headerValue(request, 'anthropic-beta');
  if (betas !== undefined && betas !== '') checkBetas(betas);
  const key = headerValue(request, 'idempotency-key');
  if (key !== undefined && !keyForm.test(key)) {
    throw invalidRequest('The header idempotency-key must have 1 to 255 characters of ASCII.');
  }
}

function checkBetas(text: string): void {
  const betas = new Set(text.split(',').map((beta) => beta.trim()));
  if (betas.size > maxBetas) {
    throw invalidRequest(`The header anthropic-beta names more than ${maxBetas} values.`);
  }
  for (const beta of betas) {
    if (beta !== '' && !betaForm.test(beta)) {
      throw invalidRequest('The header anthropic-beta holds a value that is not a name.');
    }
  }
}

/** A request header; repeated ones are joined by commas. */
export function headerValue(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(',') : value;
}

// Checks that Node's HTTP parser does not make.

/** Headers that may occur only once, since two readers could pick different values. */
const once: readonly string[] = ['host', 'authorization', 'x-api-key', 'content-type'];
const lengthsOfOnce: ReadonlySet<number> = new Set(once.map((name) => name.length));

/** Clients send less than a third of it. */
const maxHeaders = 100;

/**
 * A request that is refused here is the last one of its connection, since a proxy may frame what follows in
 * another way (S18).
 * @throws GatewayError `invalid_request`.
 */
export function checkRequestHead(request: IncomingMessage, response: ServerResponse): void {
  try {
    const url = request.url ?? '';
    if (!url.startsWith('/')) throw invalidRequest('The request target must be a path.');
    if (url.startsWith('//')) {
      const why = 'the base address of the client must not end in a slash';
      throw invalidRequest(`The request target must be a path with one slash in front: ${why}.`);
    }
    if (request.httpVersionMajor !== 1) throw invalidRequest('HTTP/1.1 is expected.');
    checkHost(request);
    const transfer = request.headers['transfer-encoding'];
    if (transfer !== undefined) {
      // HTTP/1.0 has no transfer codings: two readers could frame such a request differently (B11).
      if (request.httpVersionMinor === 0 || transfer.toLowerCase() !== 'chunked') {
        throw invalidRequest(
          'The only transfer-encoding that is accepted is chunked, with HTTP/1.1.',
        );
      }
    }
    if (request.rawHeaders.length > 2 * maxHeaders) {
      throw invalidRequest(`The request has more than ${maxHeaders} headers.`);
    }
    const rawHeaders = request.rawHeaders;
    /** A bit for each header that may come once only. */
    let seen = 0;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const written = rawHeaders[i] ?? '';
      if (!lengthsOfOnce.has(written.length)) continue;
      const name = written.toLowerCase();
      const at = once.indexOf(name);
      if (at === -1) continue;
      if ((seen & (1 << at)) !== 0) throw repeated(name);
      seen |= 1 << at;
    }
  } catch (error) {
    response.shouldKeepAlive = false;
    throw error;
  }
}

/** The gateway does not use the host, but a proxy in front may interpret an odd value in any way (B12). */
function checkHost({ headers: { host }, httpVersionMinor }: IncomingMessage): void {
  if (host === undefined) {
    if (httpVersionMinor === 0) return;
    throw invalidRequest('The header host is missing.');
  }
  if (!hostForm.test(host)) throw invalidRequest('The header host is not a host name.');
}

const hostForm = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

function repeated(name: string): GatewayError {
  return invalidRequest(`The header ${name} stands more than once.`);
}

// The client address: the peer of the socket, or, if the peer is a trusted proxy, the address that the proxy
// reports. Clients can forge `x-forwarded-for`, so it counts only as far as trusted proxies wrote it.

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

// Labels that group the cost of calls: the key's tags, the client's tags, the client's user name, and its
// metadata. Labels are not verified, and are not sent upstream as such.

interface CallLabels {
  /** The key's, then the client's; without duplicates. */
  readonly tags: readonly string[];
  readonly user?: string;
  /** JSON text, at most `maxMetadataLength`. */
  readonly metadata?: string;
}

const tagsHeader = 'x-gateway-tags';
const metadataHeader = 'x-gateway-metadata';
const maxClientTags = 8;
const tagForm = /^[^,\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,100}$/u;
/** Maximum length that the ledger stores. */
const maxMetadataLength = 2048;
const maxPairs = 16;
const maxKeyLength = 64;
const maxValueLength = 512;
const maxUserLength = 512;

/**
 * The tags of the header `x-gateway-tags: a,b`, without those that the key has anyway.
 * @throws GatewayError `invalid_request` for more than 8 of them, or an invalid tag.
 */
export function clientTags(
  header: (name: string) => string | undefined,
  ofKey: readonly string[],
): readonly string[] {
  const text = header(tagsHeader);
  if (text === undefined || text.trim() === '') return noTags;
  const named = decoded(text)
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  const wrong = named.find((tag) => !tagForm.test(tag));
  if (wrong !== undefined) {
    throw invalidRequest(
      `The header ${tagsHeader} contains an invalid tag. Tags have 1 to 100 characters without spaces, separated by commas.`,
    );
  }
  if (named.length > maxClientTags) {
    throw invalidRequest(`The header ${tagsHeader} holds more than ${maxClientTags} tags.`);
  }
  return [...new Set(named)].filter((tag) => !ofKey.includes(tag));
}

const noTags: readonly string[] = [];

/**
 * The labels of a generating call.
 * @param tags the client's own, from `clientTags`.
 * @throws GatewayError `invalid_request` for an invalid metadata header.
 */
export function callLabels(
  request: RequestDescription,
  header: (name: string) => string | undefined,
  tags: { readonly ofKey: readonly string[]; readonly ofClient: readonly string[] },
): CallLabels {
  const user = request.endUser()?.slice(0, maxUserLength);
  const metadata = metadataOf(request.metadata(), header(metadataHeader));
  const labels: { -readonly [K in keyof CallLabels]: CallLabels[K] } = {
    tags: tags.ofClient.length === 0 ? tags.ofKey : [...tags.ofKey, ...tags.ofClient],
  };
  if (user !== undefined) labels.user = user;
  if (metadata !== undefined) labels.metadata = metadata;
  return labels;
}

/** Pairs of the header precede those of the body; pairs that do not fit are omitted, which is noted. */
function metadataOf(ofBody: readonly Pair[] = [], header?: string): string | undefined {
  if (header === undefined && ofBody.length === 0) return undefined;
  const pairs = [...headerPairs(header), ...ofBody];
  if (pairs.length === 0) return undefined;
  const kept = new Map<string, string>();
  let length = 2;
  let left = 0;
  for (const [key, value] of pairs) {
    if (kept.has(key)) continue;
    const size = JSON.stringify([key, value]).length + 1;
    if (length + size > maxMetadataLength - marker.length) left += 1;
    else {
      kept.set(key, value);
      length += size;
    }
  }
  const text = JSON.stringify(Object.fromEntries(kept));
  return left === 0 ? text : JSON.stringify({ ...Object.fromEntries(kept), [leftOut]: left });
}

const leftOut = '_left_out';
const marker = `,"${leftOut}":99`;

type Pair = readonly [key: string, value: string];

function headerPairs(text: string | undefined): readonly Pair[] {
  if (text === undefined || text.trim() === '') return [];
  const object = tryParseObject(decoded(text));
  const entries = Object.entries(object ?? {});
  const valid =
    object !== undefined &&
    entries.length <= maxPairs &&
    entries.every(
      ([key, value]) =>
        key.length <= maxKeyLength && typeof value === 'string' && value.length <= maxValueLength,
    );
  if (!valid) {
    throw invalidRequest(
      `The header ${metadataHeader} must be a JSON object of at most ${maxPairs} strings, keys up to ${maxKeyLength} and values up to ${maxValueLength} characters.`,
    );
  }
  return entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string');
}

/** Node decodes header bytes as latin-1; clients send UTF-8. */
function decoded(header: string): string {
  const text = Buffer.from(header, 'latin1').toString('utf8');
  return text.includes('\ufffd') ? header : text;
}
