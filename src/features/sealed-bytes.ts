/** Bytes sealed for a store with a key that no store holds, and bound to where they are stored. */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hash,
  type KeyObject,
} from 'node:crypto';

/** Of what is sealed; another form would have another number. */
const version = 1;
/** Identifies the key that sealed it, without revealing the key. */
const fingerprintBytes = 4;
const ivBytes = 12;
const tagBytes = 16;
const headBytes = 1 + fingerprintBytes + ivBytes + tagBytes;

/** A key that is ready to seal: to make one of bytes takes longer than to seal a short text. */
export interface SealKey {
  readonly secret: KeyObject;
  readonly fingerprint: Buffer;
}

/** @param bytes 32 of them */
export function sealKey(bytes: Uint8Array): SealKey {
  return {
    secret: createSecretKey(bytes),
    fingerprint: hash(
      'sha256',
      Buffer.concat([Buffer.from('content key mark\n'), bytes]),
      'buffer',
    ).subarray(0, fingerprintBytes),
  };
}

/**
 * @param binding identifies the row; bytes of another row do not open
 * @param sealing `iv`: 12 random bytes, other ones each time
 */
export function sealBytes(
  plain: Uint8Array,
  binding: string,
  { key, iv }: { readonly key: SealKey; readonly iv: Uint8Array },
): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key.secret, iv);
  cipher.setAAD(Buffer.from(binding));
  const parts = [cipher.update(plain), cipher.final()];
  const head = [Buffer.of(version), key.fingerprint, iv, cipher.getAuthTag()];
  // Memory of its own: the store's thread gets a copy, which of a small buffer is one of the whole pool around it.
  const sealed = Buffer.allocUnsafeSlow(headBytes + plain.length);
  let end = 0;
  for (const piece of [...head, ...parts]) {
    sealed.set(piece, end);
    end += piece.length;
  }
  return sealed;
}

/** @param key undefined where there is none: then nothing opens. */
export function openBytes(
  sealed: Uint8Array,
  binding: string,
  key: SealKey | undefined,
): Buffer | 'other key' | 'unreadable' {
  if (sealed.length < headBytes || sealed[0] !== version) return 'unreadable';
  const fingerprint = sealed.subarray(1, 1 + fingerprintBytes);
  if (key === undefined || !key.fingerprint.equals(fingerprint)) return 'other key';
  const ivAt = 1 + fingerprintBytes;
  const tagAt = ivAt + ivBytes;
  const cipher = createDecipheriv('aes-256-gcm', key.secret, sealed.subarray(ivAt, tagAt), {
    authTagLength: tagBytes,
  });
  cipher.setAAD(Buffer.from(binding));
  cipher.setAuthTag(sealed.subarray(tagAt, headBytes));
  try {
    return Buffer.concat([cipher.update(sealed.subarray(headBytes)), cipher.final()]);
  } catch {
    // The seal does not fit: what was decrypted means nothing.
    return 'unreadable';
  }
}
