/** What AWS does, by AWS's own libraries: frames of event streams, and the signature of a request worked out anew. */
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { EventStreamCodec } from '@smithy/eventstream-codec';
import { SignatureV4 } from '@smithy/signature-v4';
import type { JsonObject } from '../../src/json/value.ts';
import type { Answer, Received } from './scripted.ts';

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString('utf8'),
  (text) => Buffer.from(text, 'utf8'),
);

/** The messages of an event stream. @throws Error for one whose sums do not hold */
export function messagesIn(
  bytes: Buffer,
): readonly { readonly type: string; readonly payload: string }[] {
  return piecesIn(bytes).map((piece) => {
    const { headers, body } = codec.decode(piece);
    const type = headers[':event-type'] ?? headers[':exception-type'];
    return { type: String(type?.value ?? ''), payload: Buffer.from(body).toString('utf8') };
  });
}

/** The bytes of each message: the first four tell how many. */
export function piecesIn(bytes: Buffer): readonly Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32BE(at);
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

/** One message of an event stream. @param headers texts by name, such as `:event-type` */
export function eventMessage(
  headers: { readonly [name: string]: string },
  payload: Buffer | string,
): Buffer {
  const typed = Object.entries(headers).map(
    ([name, value]) => [name, { type: 'string' as const, value }] as const,
  );
  return Buffer.from(
    codec.encode({ headers: Object.fromEntries(typed), body: Buffer.from(payload) }),
  );
}

const json = { ':content-type': 'application/json' };

/** An event of the model's own dialect, as InvokeModelWithResponseStream wraps it. */
export function invokeChunk(event: JsonObject): Buffer {
  const bytes = Buffer.from(JSON.stringify(event)).toString('base64');
  const payload = JSON.stringify({ bytes, p: 'abcdefghijkl' });
  return eventMessage({ ':event-type': 'chunk', ...json, ':message-type': 'event' }, payload);
}

export function converseEvent(type: string, payload: JsonObject): Buffer {
  return eventMessage(
    { ':event-type': type, ...json, ':message-type': 'event' },
    JSON.stringify({ ...payload, p: 'abcd' }),
  );
}

export function exceptionMessage(type: string, payload: JsonObject): Buffer {
  return eventMessage(
    { ':exception-type': type, ...json, ':message-type': 'exception' },
    JSON.stringify(payload),
  );
}

export const eventStreamType = 'application/vnd.amazon.eventstream';

export function eventStream(pieces: readonly Buffer[], more: Partial<Answer> = {}): Answer {
  return {
    headers: { 'content-type': eventStreamType },
    body: pieces,
    ...more,
  };
}

/** An error over HTTP: its type stands in a header. */
export function awsError(status: number, type: string, body: JsonObject): Answer {
  return {
    status,
    headers: { 'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/` },
    body: JSON.stringify(body),
  };
}

export interface TestKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** The hash that AWS's signer wants, by Node's. */
class Sha256 {
  readonly #hash;

  constructor(secret?: unknown) {
    this.#hash =
      secret === undefined
        ? createHash('sha256')
        : createHmac('sha256', secret as string | Uint8Array);
  }

  update(data: Uint8Array | string): void {
    this.#hash.update(data);
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }

  reset(): void {
    throw new Error('not used');
  }
}

/** Signs what came over the wire with AWS's own library; what the gateway sent must be the same. */
export async function assertSigned(
  received: Received,
  keys: TestKeys,
  { region, service = 'bedrock' }: { region: string; service?: string },
): Promise<void> {
  const authorization = received.header('authorization') ?? '';
  const names = /SignedHeaders=([^,]+)/.exec(authorization)?.[1]?.split(';') ?? [];
  const date = received.header('x-amz-date') ?? '';
  const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? [];
  const headers = names
    .filter((name) => name !== 'x-amz-date' && name !== 'x-amz-security-token')
    .map((name) => [name, received.header(name) ?? ''] as const);
  const [path = '', query = ''] = received.path.split('?');
  const signer = new SignatureV4({ service, region, credentials: keys, sha256: Sha256 });
  const signed = await signer.sign(
    {
      method: received.method,
      protocol: 'http:',
      hostname: '127.0.0.1',
      path,
      query: Object.fromEntries(new URLSearchParams(query)),
      headers: Object.fromEntries(headers),
      body: received.body,
    },
    {
      signingDate: new Date(
        Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi), Number(s)),
      ),
    },
  );
  assert.equal(authorization, signed.headers['authorization']);
  assert.equal(received.header('x-amz-security-token'), keys.sessionToken);
  const digest = createHash('sha256').update(received.body).digest('hex');
  assert.equal(received.header('x-amz-content-sha256'), digest);
  assert.ok(names.includes('host') && names.includes('content-type'), names.join());
}
