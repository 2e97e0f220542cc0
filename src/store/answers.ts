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
  /** The call that is to answer; a claim that is asked for twice by one owner is one. */
  readonly owner: string;
  /** Tells requests under one key apart. */
  readonly mark: string;
  /** How long the claim holds unless it is renewed. */
  readonly leaseMs: number;
}

/** The right to answer, its current holder, or the stored answer. */
export type Claimed =
  | { readonly state: 'mine' }
  | { readonly state: 'running'; readonly mark: string }
  | {
      readonly state: 'done';
      readonly mark: string;
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
  readonly mostBytes: number;
  readonly mostAnswers: number;
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

/** What a kept answer counts for besides its bytes. */
export const answerOverhead = 512;

/** How long a claim is remembered after its lease: an owner that stood still may find it again. */
export const claimGraceMs = 600_000;

export function keptBytes(answer: Uint8Array | undefined): number {
  return answerOverhead + (answer?.length ?? 0);
}
