/**
 * A response as a store holds it: packed, and sealed with a key that stands in no store (docs/user/responses.md). Where
 * the gateways of a shared store have no common secret, the key comes out of the client's own API key.
 */
import { hkdfSync } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw, type ZlibOptions } from 'node:zlib';
import type { SealedResponse } from '../../store/sealed.ts';
import { openBytes, sealBytes, sealKey, type SealKey } from '../sealed-bytes.ts';

/** What is kept of one call. JSON bytes. */
export interface OpenedResponse {
  /** The array of the request's own items. */
  readonly input: Buffer;
  /** The response object. */
  readonly response: Buffer;
}

type Place = Pick<SealedResponse, 'id' | 'keyId'>;

const pack = promisify<Buffer, ZlibOptions, Buffer>(deflateRaw);
const unpack = promisify(inflateRaw);
const keyBytes = 32;
/** A shorter one takes little room, and packing it would take longer than all else that is done to keep it. */
const packedFrom = 16_384;
/** Of zlib: a third of the time of its default, for a tenth more bytes. */
const packing = { level: 1 };
/** What is kept is far smaller. */
const maxOpenedBytes = 64 * 1024 * 1024;

/** The key that seals the responses of one API key. @param root the gateway's secret or the client's key */
export function responseKey(root: Uint8Array | string, keyId: string): SealKey {
  return sealKey(new Uint8Array(hkdfSync('sha256', root, keyId, 'kept responses', keyBytes)));
}

/** @param iv 12 random bytes, other ones each time. */
export async function sealResponse(
  { input, response }: OpenedResponse,
  place: Place,
  { key, iv }: { readonly key: SealKey; readonly iv: Uint8Array },
): Promise<Buffer> {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(input.length, 1);
  const plain = Buffer.concat([head, input, response]);
  if (plain.length < packedFrom) return sealBytes(plain, boundTo(place), { key, iv });
  const packed = await pack(plain.subarray(1), packing);
  const marked = Buffer.concat([Buffer.of(1), packed]);
  return sealBytes(marked, boundTo(place), { key, iv });
}

/** Undefined for what another key sealed, for another place, or what was changed since. */
export async function openResponse(
  { sealed, ...place }: SealedResponse,
  key: SealKey,
): Promise<OpenedResponse | undefined> {
  const opened = openBytes(sealed, boundTo(place), key);
  if (!(opened instanceof Uint8Array)) return undefined;
  const rest = opened.subarray(1);
  const plain = opened[0] === 1 ? await unpack(rest, { maxOutputLength: maxOpenedBytes }) : rest;
  const end = 4 + plain.readUInt32BE();
  return { input: plain.subarray(4, end), response: plain.subarray(end) };
}

function boundTo({ id, keyId }: Place): string {
  return `response ${keyId} ${id}`;
}
