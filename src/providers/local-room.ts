/** The rule by which models share the machine's memory. */
import { totalmem } from 'node:os';

export interface RoomLimits {
  /** Models that may be loaded at once; the demonstration model does not count. */
  readonly maxLoaded: number;
  /** What their files may take together. */
  readonly maxBytes: number;
}

/** A model that is loaded, or wants to be. */
export interface Tenant {
  readonly bytes: number;
  readonly lastUsedAt: number;
}

const defaultMaxLoaded = 3;
const shareOfMemory = 0.6;

/** Three models, whose files take at most 60 % of the memory that this process may use. */
export function defaultRoom(): RoomLimits {
  const constrained = process.constrainedMemory();
  const total = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return { maxLoaded: defaultMaxLoaded, maxBytes: Math.floor(total * shareOfMemory) };
}

/**
 * Whom to ask to leave, the least recently used first, before a model of `bytes` may be loaded; empty
 * = there is room. A model that is alone is always tried: the limit guesses, the machine knows.
 */
export function whoBlocks<T extends Tenant>(
  loaded: readonly T[],
  bytes: number,
  { maxLoaded, maxBytes }: RoomLimits,
): readonly T[] {
  const taken = loaded.reduce((sum, tenant) => sum + tenant.bytes, 0);
  if (loaded.length === 0 || (loaded.length < maxLoaded && taken + bytes <= maxBytes)) return [];
  return loaded.toSorted((a, b) => a.lastUsedAt - b.lastUsedAt);
}
