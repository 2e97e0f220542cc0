/**
 * Answers by `Idempotency-Key` (E17), for all gateways on one store. Entries are sealed by the caller: the
 * store sees digests and bytes, no request, no answer, no client's key. Times are those of the store's own
 * clock.
 */

export interface AnswerClaim {
  /** Digest of the API key's id and the client's `Idempotency-Key`. */
  readonly id: string;
  /** Public id of the API key: what it may keep is bounded. */
  readonly keyId: string;
  /** The call that is to answer; two claims of one owner are one. */
  readonly owner: string;
  /** Distinguishes requests under one key. */
  readonly fingerprint: string;
  /** How long the claim holds unless it is renewed. */
  readonly leaseMs: number;
}

/** The right to answer, its current holder, or the stored answer. */
export type Claimed =
  | { readonly state: 'mine' }
  | { readonly state: 'running'; readonly fingerprint: string }
  | {
      readonly state: 'done';
      readonly fingerprint: string;
      /** Undefined when there was no room for it. */
      readonly answer: Uint8Array | undefined;
    };

/** A claim, as its owner names it. */
export interface OwnClaim {
  readonly id: string;
  readonly owner: string;
}

export interface AnswerToKeep extends OwnClaim {
  /** Undefined: it was answered, but the answer is not available. */
  readonly answer: Uint8Array | undefined;
  readonly keepMs: number;
  /** Of one API key; its oldest answers go first. */
  readonly maxBytes: number;
  readonly maxAnswers: number;
}

export interface AnswerStore {
  /** @throws StoreError */
  claim(wanted: AnswerClaim): Promise<Claimed>;
  /** Claims that others took over meanwhile are skipped. @throws StoreError */
  renew(claims: readonly OwnClaim[], leaseMs: number): Promise<void>;
  /** False when the claim was lost: its lease ran out and another took it. @throws StoreError */
  keep(answer: AnswerToKeep): Promise<boolean>;
  /** Releases the claim: the next request may answer. @throws StoreError */
  release(claim: OwnClaim): Promise<void>;
  /**
   * Releases all claims at the start of a process with its own store, when no other holder can be alive.
   * @throws StoreError
   */
  releaseAll(): Promise<void>;
  /**
   * Removes at most `most` answers: expired ones first, then the oldest of the largest key, while the total
   * exceeds `bytes`.
   * @returns how many; 0 = done.
   * @throws StoreError
   */
  sweep(most: number, bytes: number): Promise<number>;
}

/** What a stored answer counts for besides its bytes. */
const answerOverhead = 512;

/** How long a claim is remembered after its lease: an owner that stood still may find it again. */
export const claimGraceMs = 600_000;

export function storedBytes(answer: Uint8Array | undefined): number {
  return answerOverhead + (answer?.length ?? 0);
}

// Content of calls, for keys with content logging (docs/user/content.md). It is sealed: the store sees bytes
// and what it needs to find and remove them. Times are ms since the epoch, by the writer's clock.

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
export type ContentToRemove =
  | {
      /** Only of this key. */
      readonly keyId?: string;
      /** Only of calls that began before. */
      readonly before?: number;
      readonly bytes?: never;
    }
  | {
      /**
       * Of the key that takes the most at present, and stop after this many bytes are removed: no key pushes out what a
       * smaller one said.
       */
      readonly bytes: number;
    };

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
   * From now on nothing is stored of calls of this key that began before: those that run are not to bring back what is
   * removed after this. @throws StoreError
   */
  forget(keyId: string, before: number): Promise<void>;
}

/** What a stored content counts for besides its bytes. */
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

// Responses that clients may refer to (docs/user/responses.md), for all gateways on one store. They come sealed: the
// store sees ids and bytes. Lifetimes are counted by the store's own clock.

export interface SealedResponse {
  /** As the client got it. */
  readonly id: string;
  /** Public id of the API key; ids of two keys never meet. */
  readonly keyId: string;
  /** The response that it continues from; undefined = none. */
  readonly previous: string | undefined;
  readonly sealed: Uint8Array;
}

export interface ResponseToKeep extends SealedResponse {
  /** Ids of its input and output items: letters, digits, `_` and `-`. */
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
  /** `broken`: one of them is not there any more; `long`: a limit was reached, and some are omitted. */
  readonly end: 'whole' | 'broken' | 'long';
}

/** Where items are stored. */
export interface ResponsesOfItems {
  /** Id of an item and of the response to read it from; an item that is not stored is missing. */
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

/** How ids are remembered of which no response is to be stored. They count against no size limit. */
export interface Refusal {
  /** How long. */
  readonly ms: number;
  /** How many of one key; the oldest are forgotten first. */
  readonly most: number;
}

export interface ResponseStore {
  /**
   * Stores all or none. Each replaces one with the same id.
   * @returns for each: false when what is stored for its key was removed after the call began, or when it was removed before its end
   * @throws StoreError
   */
  keep(responses: readonly ResponseToKeep[]): Promise<readonly boolean[]>;
  /** The response of this id with those before it; no responses = it is not there. @throws StoreError */
  chain(keyId: string, id: string, limits: ChainLimits): Promise<ResponseChain>;
  /** The responses that hold these items, of several the newest; the id of a response stands for itself. @throws StoreError */
  holding(keyId: string, items: readonly string[], bytes: number): Promise<ResponsesOfItems>;
  /**
   * False when there was none. @throws StoreError
   * @param refusal if there is none, a response of this id is not stored: its stream may still run. Undefined: it may be stored
   */
  remove(keyId: string, id: string, refusal?: Refusal): Promise<boolean>;
  /** Removes at most `most` responses of a key. @returns how many; 0 = done. @throws StoreError */
  removeOf(keyId: string, most: number): Promise<number>;
  /**
   * Removes at most `most`: those whose time is over, then, while a key or all together take too much, each time the
   * oldest of the key that is the largest by then. So no key pushes out what a smaller one has.
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

/** Responses column by column, as they are sent to a thread or a server: a copy of objects takes twice as long. */
export interface ResponseColumns {
  readonly keyIds: readonly string[];
  readonly ids: readonly string[];
  /** Empty = none. */
  readonly previous: readonly string[];
  readonly startedAt: readonly number[];
  readonly keepMs: readonly number[];
  readonly bytes: readonly number[];
  /** With commas between. A row lists its items, and they go with it. */
  readonly items: readonly string[];
  /** Of each in `sealed`. */
  readonly lengths: readonly number[];
  readonly sealed: Uint8Array;
}

export function responseColumns(responses: readonly ResponseToKeep[]): ResponseColumns {
  const lengths = responses.map(({ sealed }) => sealed.length);
  // Memory of its own: of a small buffer the whole pool around it would be sent.
  const sealed = Buffer.allocUnsafeSlow(lengths.reduce((sum, length) => sum + length, 0));
  let end = 0;
  for (const each of responses) {
    sealed.set(each.sealed, end);
    end += each.sealed.length;
  }
  return {
    keyIds: responses.map(({ keyId }) => keyId),
    ids: responses.map(({ id }) => id),
    previous: responses.map(({ previous }) => previous ?? ''),
    startedAt: responses.map(({ startedAt }) => Math.round(startedAt)),
    keepMs: responses.map(({ keepMs }) => keepMs),
    bytes: responses.map(responseBytes),
    items: responses.map(({ items }) => items.join(',')),
    lengths,
    sealed,
  };
}
