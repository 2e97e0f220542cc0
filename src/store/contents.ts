/**
 * Content of calls, for keys with content logging (docs/user/content.md). It is sealed: the store sees bytes
 * and what it needs to find and remove them. Times are ms since the epoch, by the writer's clock.
 */

export interface SealedContent {
  /** Of the call, as in the ledger. */
  readonly id: string;
  /** Public id of the API key. */
  readonly keyId: string;
  /** When the call began. */
  readonly startedAt: number;
  readonly sealed: Uint8Array;
}

/** Which to remove; the oldest go first. */
export interface ContentToRemove {
  /** Only of this key. */
  readonly keyId?: string;
  /** Only of calls that began before. */
  readonly before?: number;
  /** Stop after this many bytes are removed. */
  readonly bytes?: number;
}

export interface RemovedContent {
  readonly rows: number;
  readonly bytes: number;
}

export interface ContentStore {
  /** All or none. What is there already stays as it is, and what is forgotten is passed over. @throws StoreError */
  keep(contents: readonly SealedContent[]): Promise<void>;
  /** @throws StoreError */
  find(id: string): Promise<SealedContent | undefined>;
  /** What all of it takes. @throws StoreError */
  bytes(): Promise<number>;
  /** Removes at most `most`; no rows = done. @throws StoreError */
  remove(which: ContentToRemove, most: number): Promise<RemovedContent>;
  /**
   * From now on nothing is kept of calls of this key that began before: those that run are not to bring back what is
   * removed behind this. @throws StoreError
   */
  forget(keyId: string, before: number): Promise<void>;
}

/** What a kept content counts for besides its bytes. */
const overheadBytes = 256;

export function contentBytes({ sealed }: Pick<SealedContent, 'sealed'>): number {
  return overheadBytes + sealed.length;
}

/** How many of these, in their order, make the bytes that are to go; all of them without a limit. */
export function enough(sizes: readonly number[], bytes = Infinity): RemovedContent {
  let sum = 0;
  let rows = 0;
  for (const size of sizes) {
    if (sum >= bytes) break;
    sum += size;
    rows += 1;
  }
  return { rows, bytes: sum };
}
