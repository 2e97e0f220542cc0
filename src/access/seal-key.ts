/**
 * The key for everything that the gateway seals and clients carry. It survives restarts, or conversations would
 * lose their reasoning with each.
 */
import { hkdfSync } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { Store } from '../store/store.ts';
import { type RandomBytes, requireUsableSecret } from './key-format.ts';
import type { Secret } from '../core/secret.ts';

const sealKeySetting = 'seal_key';
const keyBytes = 32;

/** The key of this store, created at the first start. @throws StoreError */
export async function loadSealKey(store: Store, random: RandomBytes): Promise<Uint8Array> {
  const stored = Buffer.from((await store.settings.read(sealKeySetting)) ?? '', 'hex');
  if (stored.length === keyBytes) return stored;
  const made = random(keyBytes);
  await store.settings.write(sealKeySetting, Buffer.from(made).toString('hex'));
  return made;
}

// The key that seals the content of calls (docs/user/content.md). It is never in the store that it protects: it
// comes from the environment, or is in a file of the data directory if the store is not shared.

const fileForm = /^[0-9a-f]{64}$/;

export interface ContentKey {
  /** Undefined if there is none. @throws Error when its file cannot be read. */
  find(): Uint8Array | undefined;
  /** The same; creates the key if there may be one and is none yet. @throws Error when it cannot be written. */
  need(): Uint8Array | undefined;
}

/** Gateways with the same secret can open each other's content. @throws Error when it is too short. */
export function contentKeyOf(secret: Secret): ContentKey {
  const text = secret.reveal();
  requireUsableSecret('MODEL_GATEWAY_CONTENT_KEY', text);
  const key = new Uint8Array(hkdfSync('sha256', text, '', 'contents of calls', keyBytes));
  return { find: () => key, need: () => key };
}

/** @param path a file of 64 hexadecimal digits, created when first needed, readable only by its owner. */
export function contentKeyFile(path: string, random: RandomBytes): ContentKey {
  let known: Uint8Array | undefined;
  const find = (): Uint8Array | undefined => (known ??= readKeyFile(path));
  return {
    find,
    need: () => {
      if (find() !== undefined) return known;
      const made = random(keyBytes);
      // Written and renamed in one step: a half-written key on a full disk would stay for ever. No other
      // process uses the data directory.
      const unfinished = `${path}.new`;
      rmSync(unfinished, { force: true });
      const text = `${Buffer.from(made).toString('hex')}\n`;
      writeFileSync(unfinished, text, { mode: 0o600, flag: 'wx', flush: true });
      renameSync(unfinished, path);
      known = made;
      return known;
    },
  };
}

/** For a store that ends with the process. */
export function passingContentKey(random: RandomBytes): ContentKey {
  const key = random(keyBytes);
  return { find: () => key, need: () => key };
}

/**
 * Content in a shared database must be readable by all instances: without a common secret nothing is stored.
 */
export const noContentKey: ContentKey = { find: () => undefined, need: () => undefined };

/**
 * The key, created if needed; undefined if that fails, since content never blocks a call
 * (docs/user/content.md).
 */
export function keyOrNone(
  key: Pick<ContentKey, 'need'>,
  tell: (reason: string) => void,
): Uint8Array | undefined {
  try {
    return key.need();
  } catch (error) {
    tell(String(error));
    return undefined;
  }
}

function readKeyFile(path: string): Uint8Array | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  if (!fileForm.test(text)) throw new Error(`${path} holds no key of 64 hexadecimal digits.`);
  return Buffer.from(text, 'hex');
}
