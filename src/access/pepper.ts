/**
 * An operator secret that goes into the digests of keys (S2): an attacker who has only the store can neither
 * test a guess nor plant a key. The digest of a stored key is HMAC-SHA-256 over its SHA-256, so that existing
 * keys get a peppered digest without their secrets.
 */
import { createHmac } from 'node:crypto';
import type { Secret } from '../core/secret.ts';
import type { SettingStore } from '../store/store.ts';
import { requireUsableSecret } from './key-format.ts';

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
  const mark = await store.read(setting);
  if (mark === undefined) return { state: 'none' };
  if (pepper === undefined) return { problem: missingPepper };
  if (mark === pepper.markOf('done')) return { state: 'done' };
  return mark === pepper.markOf('begun') ? { state: 'begun' } : { problem: wrongPepper };
}

/** @throws StoreError */
export function writePepperState(
  store: Pick<SettingStore, 'write'>,
  pepper: Pepper,
  state: 'begun' | 'done',
): Promise<void> {
  return store.write(setting, pepper.markOf(state));
}
