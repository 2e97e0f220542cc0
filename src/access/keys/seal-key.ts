/**
 * The key for everything that the gateway seals and clients carry. It survives restarts, or conversations would
 * lose their reasoning with each.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { Secret } from '../../core/secret.ts';
import type { SettingStore, Store } from '../../store/store.ts';
import { type RandomBytes, requireUsableSecret } from './key-format.ts';

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
  report: (reason: string) => void,
): Uint8Array | undefined {
  try {
    return key.need();
  } catch (error) {
    report(String(error));
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

// An operator secret that goes into the digests of keys (S2): an attacker who has only the store can neither
// test a guess nor plant a key. The digest of a stored key is HMAC-SHA-256 over its SHA-256, so that existing
// keys get a peppered digest without their secrets.

/** The store records here that its keys are peppered, and with which pepper. */
const setting = 'pepper_mark';

/** `none`: no key is peppered; `begun`: some may not be yet; `done`: a key without it is forged. */
export type PepperState = 'none' | 'begun' | 'done';

export const missingPepper =
  'The keys of this store are hashed with a pepper: set MODEL_GATEWAY_PEPPER or MODEL_GATEWAY_PEPPER_FILE.';
const wrongPepper =
  'MODEL_GATEWAY_PEPPER is not the pepper that the keys of this store were created with, so none of them would work: set the right one.';

export class Pepper {
  readonly #secret: Secret;

  /** @throws Error when it is too short. */
  constructor(secret: Secret) {
    requireUsableSecret('MODEL_GATEWAY_PEPPER', secret.reveal());
    this.#secret = secret;
  }

  /** The stored digest of a key with this SHA-256. */
  over(digest: Uint8Array): Buffer {
    return createHmac('sha256', this.#secret.reveal()).update(digest).digest();
  }

  /** The mark of a state; it reveals nothing about the pepper. */
  markOf(state: 'begun' | 'done'): string {
    return this.over(Buffer.from(`model-gateway pepper ${state}`)).toString('hex');
  }
}

/** How far the store's keys are peppered, or why they cannot be used. @throws StoreError */
export async function readPepperState(
  store: Pick<SettingStore, 'read'>,
  pepper: Pepper | undefined,
): Promise<{ readonly state: PepperState } | { readonly problem: string }> {
  const stored = await store.read(setting);
  if (stored === undefined) return { state: 'none' };
  if (pepper === undefined) return { problem: missingPepper };
  if (stored === pepper.markOf('done')) return { state: 'done' };
  return stored === pepper.markOf('begun') ? { state: 'begun' } : { problem: wrongPepper };
}

/** @throws StoreError */
export function writePepperState(
  store: Pick<SettingStore, 'write'>,
  pepper: Pepper,
  state: 'begun' | 'done',
): Promise<void> {
  return store.write(setting, pepper.markOf(state));
}
