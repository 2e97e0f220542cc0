/**
 * The key for everything that the gateway seals and clients carry. It survives restarts, or conversations would
 * lose their reasoning with each.
 */
import type { Store } from '../store/store.ts';
import type { RandomBytes } from './key-format.ts';

const setting = 'seal_key';
const keyBytes = 32;

/** The key of this store, created at the first start. @throws StoreError */
export async function loadSealKey(store: Store, random: RandomBytes): Promise<Uint8Array> {
  const stored = Buffer.from((await store.settings.read(setting)) ?? '', 'hex');
  if (stored.length === keyBytes) return stored;
  const made = random(keyBytes);
  await store.settings.write(setting, Buffer.from(made).toString('hex'));
  return made;
}
