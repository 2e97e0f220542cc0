/**
 * AWS Signature Version 4 of a request whose bytes are final. Pure, and by hand since it is on the path of each call
 * (decision 0055); checked against `@smithy/signature-v4`.
 */
import { createHash, createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import type { FinalRequest } from '../../core/credential.ts';
import type { Secret } from '../../core/secret.ts';
import type { Pieces } from '../../json/pieces.ts';

export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
  /** Of temporary keys. */
  readonly sessionToken?: Secret;
}

export interface AwsScope {
  readonly region: string;
  /** `bedrock` */
  readonly service: string;
}

/** Headers of the service that are part of the signature, besides those of each request. */
const signedPrefix = 'x-amzn-';

/** Signs for one region and service. Caches the key of the day, which is the most expensive part. */
export class AwsSignature {
  readonly #scope: AwsScope;
  /** The derived key and what it was derived from. */
  #derived: { readonly day: string; readonly keys: AwsKeys; readonly key: KeyObject } | undefined;

  constructor(scope: AwsScope) {
    this.#scope = scope;
  }

  /** The headers to add to the request, flat. @param wallMs the time of the service */
  headersFor(request: FinalRequest, keys: AwsKeys, wallMs: number): readonly string[] {
    const time = amzTime(wallMs);
    const day = time.slice(0, 8);
    const bodyHash = hashOf(request.body);
    const token = keys.sessionToken?.reveal();
    const signed = signedHeaders(request.headers);
    const [path = '', query = ''] = request.path.split('?');
    const host = request.origin.slice(request.origin.indexOf('//') + 2);
    // The names are in their order already: `-` comes before `n`.
    const canonical =
      `${request.method}\n${canonicalPath(path)}\n${canonicalQuery(query)}\n` +
      `content-type:${signed.contentType}\nhost:${host}\nx-amz-content-sha256:${bodyHash}\nx-amz-date:${time}\n` +
      `${token === undefined ? '' : `x-amz-security-token:${token}\n`}${signed.lines}\n`;
    const names = `content-type;host;x-amz-content-sha256;x-amz-date${token === undefined ? '' : ';x-amz-security-token'}${signed.names}`;
    const { region, service } = this.#scope;
    const scope = `${day}/${region}/${service}/aws4_request`;
    const digest = hash('sha256', `${canonical}${names}\n${bodyHash}`, 'hex');
    const signature = createHmac('sha256', this.#key(day, keys))
      .update(`AWS4-HMAC-SHA256\n${time}\n${scope}\n${digest}`)
      .digest('hex');
    return [
      'authorization',
      `AWS4-HMAC-SHA256 Credential=${keys.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
      'x-amz-content-sha256',
      bodyHash,
      'x-amz-date',
      time,
      ...(token === undefined ? [] : ['x-amz-security-token', token]),
    ];
  }

  #key(day: string, keys: AwsKeys): KeyObject {
    const known = this.#derived;
    if (known?.day === day && known.keys === keys) return known.key;
    const { region, service } = this.#scope;
    const steps = [day, region, service, 'aws4_request'];
    const derived = steps.reduce<Buffer>(
      (from, text) => createHmac('sha256', from).update(text).digest(),
      Buffer.from(`AWS4${keys.secretAccessKey.reveal()}`),
    );
    // Without this, each signature would convert the bytes into a key object.
    const key = createSecretKey(derived);
    this.#derived = { day, keys, key };
    return key;
  }
}

/** `20261123T080000Z` */
export function amzTime(wallMs: number): string {
  const iso = new Date(wallMs).toISOString();
  return `${iso.slice(0, 4)}${iso.slice(5, 7)}${iso.slice(8, 13)}${iso.slice(14, 16)}${iso.slice(17, 19)}Z`;
}

/** A segment of a path on the wire: percent-encoded once, by RFC 3986. */
export function encodedSegment(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The path on the wire with each segment encoded once more. */
function canonicalPath(path: string): string {
  return path.split('/').map(encodedSegment).join('/');
}

function canonicalQuery(query: string): string {
  if (query === '') return '';
  return query
    .split('&')
    .map((pair) => (pair.includes('=') ? pair : `${pair}=`))
    .toSorted()
    .join('&');
}

function hashOf(body: Pieces | undefined): string {
  const list = body?.list ?? [];
  const [first] = list;
  if (list.length <= 1) return hash('sha256', first ?? '', 'hex');
  const digest = createHash('sha256');
  for (const piece of list) digest.update(piece);
  return digest.digest('hex');
}

interface SignedHeaders {
  readonly contentType: string;
  /** Of the service's own headers, with their line ends; `''` = none. */
  readonly lines: string;
  /** Their names, with a semicolon before each. */
  readonly names: string;
}

function signedHeaders(headers: readonly string[]): SignedHeaders {
  let contentType = '';
  const more: (readonly [name: string, value: string])[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]?.toLowerCase() ?? '';
    const value = headers[i + 1]?.trim() ?? '';
    if (name === 'content-type') contentType = value;
    else if (name.startsWith(signedPrefix)) more.push([name, value]);
  }
  if (more.length === 0) return { contentType, lines: '', names: '' };
  more.sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    contentType,
    lines: more.map(([name, value]) => `${name}:${value.replace(/ {2,}/g, ' ')}\n`).join(''),
    names: more.map(([name]) => `;${name}`).join(''),
  };
}
