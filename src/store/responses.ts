/**
 * Responses that clients may refer to (docs/user/responses.md), for all gateways on one store. They come sealed: the
 * store sees ids and bytes. Lifetimes are counted by the store's own clock.
 */

export interface SealedResponse {
  /** As the client was told it. */
  readonly id: string;
  /** Public id of the API key; ids of two keys never meet. */
  readonly keyId: string;
  /** The response that it goes on from; undefined = none. */
  readonly previous: string | undefined;
  readonly sealed: Uint8Array;
}

export interface ResponseToKeep extends SealedResponse {
  /** Ids of its input and output items. */
  readonly items: readonly string[];
  /** When its call began, ms since the epoch. */
  readonly startedAt: number;
  readonly keepMs: number;
}

/** How much may be read at once. */
export interface ChainLimits {
  readonly links: number;
  /** Of sealed bytes. */
  readonly bytes: number;
}

/** A response and those before it, the newest first. */
export interface ResponseChain {
  readonly responses: readonly SealedResponse[];
  /** `broken`: one of them is not there any more; `long`: a limit was reached, and some are left out. */
  readonly end: 'whole' | 'broken' | 'long';
}

/** Where items are kept. */
export interface ResponsesOfItems {
  /** Id of an item and of the response to read it from; an item that is not kept is missing. */
  readonly places: readonly (readonly [item: string, response: string])[];
  /** Those that `places` names, as far as the limit of bytes allows. */
  readonly responses: readonly SealedResponse[];
}

export interface ResponseRoom {
  /** What all responses may take. */
  readonly totalBytes: number;
  /** What those of one key may take. */
  readonly keyBytes: number;
}

export interface ResponseStore {
  /**
   * Keeps them all or none, each in place of one with the same id.
   * @returns for each: false when what its key kept was forgotten after the call began.
   * @throws StoreError
   */
  keep(responses: readonly ResponseToKeep[]): Promise<readonly boolean[]>;
  /** The response of this id with those before it; no responses = it is not there. @throws StoreError */
  chain(keyId: string, id: string, limits: ChainLimits): Promise<ResponseChain>;
  /** The responses that hold these items; of several the newest. @throws StoreError */
  holding(keyId: string, items: readonly string[], bytes: number): Promise<ResponsesOfItems>;
  /** False when there was none. @throws StoreError */
  remove(keyId: string, id: string): Promise<boolean>;
  /** Removes at most `most` responses of a key. @returns how many; 0 = done. @throws StoreError */
  removeOf(keyId: string, most: number): Promise<number>;
  /**
   * Removes at most `most`: those whose time is over, then the oldest of a key that takes too much, then the oldest
   * of all while all together take too much.
   * @returns how many; 0 = done.
   * @throws StoreError
   */
  sweep(most: number, room: ResponseRoom): Promise<number>;
}

/** What a row counts for besides its sealed bytes. */
const rowBytes = 256;
const itemBytes = 128;

export function responseBytes({ sealed, items }: Pick<ResponseToKeep, 'sealed' | 'items'>): number {
  return rowBytes + sealed.length + items.length * itemBytes;
}
