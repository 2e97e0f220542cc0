/** When a key was last used, in words. */
import { ago } from '../../format/time.ts';
import type { Key } from './api.ts';

/** Of keys of the config and the environment nothing is written down: after a start, or by a worker, it is not known. */
export function lastUsed({
  last_used_at: used,
  source,
}: Pick<Key, 'last_used_at' | 'source'>): string {
  if (used !== null) return ago(used);
  return source === 'store' ? 'never' : 'unknown';
}
