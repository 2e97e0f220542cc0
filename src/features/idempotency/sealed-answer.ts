/**
 * What the store may know of a request with an `Idempotency-Key` and of its answer: nothing readable. The key
 * for both is derived from the client's own API key, which the store never holds (S2). A stolen database or
 * backup shows no text of an answer and confirms no guess of a prompt. Only a request with the same API key and
 * the same `Idempotency-Key` can decrypt the answer.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import type { Sealer } from '../../core/sealer.ts';
import { tryParseObject } from '../../json/parse.ts';

export interface KeptAnswer {
  readonly status: number;
  /** Flat: name, value, …; without the ids of its request. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export interface IdempotentRequest {
  /** Whose request it is: two clients may choose the same key. */
  readonly keyId: string;
  /** The API key as the client presented it. */
  readonly secret: string;
  readonly idempotencyKey: string;
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
}

/** A request as the store knows it, and what opens its answer. */
export interface SealedRequest {
  readonly id: string;
  readonly keyId: string;
  /** Two parts: the secret that it was sent with, and the request. */
  readonly mark: string;
  readonly sealKey: Buffer;
}

const keyBytes = 32;
const ivBytes = 12;
const tagBytes = 16;
/** Of what is sealed; another form would have another number. */
const version = 1;
const headBytes = 1 + ivBytes + tagBytes;
const proofLength = 16;

/** @param sealer digests with a key of the store: ids cannot be made outside of this installation. */
export function sealRequest(request: IdempotentRequest, sealer: Sealer): SealedRequest {
  const { keyId, secret, idempotencyKey, method, path, body } = request;
  const id = sealer.digest(`idempotency\n${keyId}\n${idempotencyKey}`);
  // A key of an installation may be short (MODEL_GATEWAY_KEY): the client's other key adds what it has.
  const root = Buffer.from(
    hkdfSync('sha256', `${secret}\n${idempotencyKey}`, id, 'idempotent answer', 2 * keyBytes),
  );
  const markKey = root.subarray(keyBytes);
  const proof = createHmac('sha256', markKey).update('secret').digest('base64url');
  const whole = createHmac('sha256', markKey).update(`${method} ${path}\n`).update(body);
  const mark = `${proof.slice(0, proofLength)}.${whole.digest('base64url')}`;
  return { id, keyId, mark, sealKey: root.subarray(0, keyBytes) };
}

/** Whether both were sent with the same API key text; one of a rotation's two secrets is not the other. */
export function sameSecret({ mark }: SealedRequest, other: string): boolean {
  return mark.slice(0, proofLength) === other.slice(0, proofLength);
}

/** @param iv 12 random bytes, other ones each time. */
export function sealAnswer(request: SealedRequest, answer: KeptAnswer, iv: Uint8Array): Buffer {
  const head = Buffer.from(JSON.stringify({ status: answer.status, headers: answer.headers }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  const cipher = createCipheriv('aes-256-gcm', request.sealKey, iv);
  cipher.setAAD(boundTo(request));
  const parts = [length, head, answer.body].map((part) => cipher.update(part));
  parts.push(cipher.final());
  return Buffer.concat([Buffer.of(version), iv, cipher.getAuthTag(), ...parts]);
}

/** Undefined for what was sealed for another request, with another secret, or was changed since. */
export function openAnswer(request: SealedRequest, sealed: Uint8Array): KeptAnswer | undefined {
  if (sealed.length < headBytes || sealed[0] !== version) return undefined;
  const iv = sealed.subarray(1, 1 + ivBytes);
  const cipher = createDecipheriv('aes-256-gcm', request.sealKey, iv, { authTagLength: tagBytes });
  cipher.setAAD(boundTo(request));
  cipher.setAuthTag(sealed.subarray(1 + ivBytes, headBytes));
  try {
    const opened = cipher.update(sealed.subarray(headBytes));
    cipher.final();
    return readOpened(opened);
  } catch {
    // The seal does not fit: what was decrypted means nothing.
    return undefined;
  }
}

/** An answer that was moved to another row does not open there. */
function boundTo({ id, mark }: SealedRequest): Buffer {
  return Buffer.from(`${id} ${mark}`);
}

function readOpened(opened: Buffer): KeptAnswer | undefined {
  const start = 4 + opened.readUInt32BE();
  const head = tryParseObject(opened.toString('utf8', 4, start));
  const status = head?.['status'];
  const headers = head?.['headers'];
  if (typeof status !== 'number' || !Array.isArray(headers)) return undefined;
  return { status, headers: headers.map(String), body: opened.subarray(start) };
}
