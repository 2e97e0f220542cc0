/** The tries of one call, for its ledger row: each leaves one, in order (reliability.md §2C). */
import type { GatewayError } from '../core/errors.ts';
import type { Usage } from '../core/generation.ts';
import type { Target } from '../core/provider.ts';
import type { AttemptReceipt, ClientEnd, CutReason, UpstreamWords } from './receipt.ts';

/** How a try ended. */
export interface AttemptEnd {
  /** Monotonic ms. */
  readonly now: number;
  readonly outcome: AttemptReceipt['outcome'];
  readonly error?: GatewayError | ClientEnd | undefined;
  /** HTTP status of the upstream; 0 when none came. */
  readonly status: number;
  /** When the upstream began to answer, monotonic ms. */
  readonly firstEventAt: number | undefined;
  readonly said: UpstreamWords | undefined;
  readonly cut: CutReason | undefined;
  readonly errorBody: string | undefined;
  readonly reported: Usage | undefined;
}

export class AttemptLog {
  readonly #ended: AttemptReceipt[];
  #target: Target | undefined;
  #startedAt = 0;
  #spanId: string | undefined;

  /** @param ended where tries are put that are over; those of a hedge stand in one list. */
  constructor(ended: AttemptReceipt[] = []) {
    this.#ended = ended;
  }

  /** @param now monotonic ms. @param spanId where the call is traced. */
  begin(target: Target, now: number, spanId: string | undefined): void {
    this.#target = target;
    this.#startedAt = now;
    this.#spanId = spanId;
  }

  /** Of the try that has begun, monotonic ms. */
  get startedAt(): number {
    return this.#startedAt;
  }

  /** The try that has begun was none. */
  drop(): void {
    this.#target = undefined;
  }

  /** Ends the try that has begun; nothing without one. */
  end(how: AttemptEnd): void {
    const target = this.#target;
    if (target === undefined) return;
    this.#target = undefined;
    const { now, outcome, error, status, reported, firstEventAt, said, cut, errorBody } = how;
    const code = typeof error === 'string' ? error : error?.code;
    this.#ended.push({
      target,
      startedAt: this.#startedAt,
      ms: now - this.#startedAt,
      status: status === 0 ? undefined : status,
      outcome,
      error: code,
      reported,
      maybeBilled: firstEventAt === undefined && mayBeBilled(how),
      spanId: this.#spanId,
      firstEventMs: firstEventAt === undefined ? undefined : firstEventAt - this.#startedAt,
      said,
      cut,
      ...(errorBody === undefined ? {} : { errorBody }),
    });
  }

  get all(): readonly AttemptReceipt[] {
    return this.#ended;
  }
}

/** Sent, and no answer came that tells: the vendor may have worked for it (R5). */
function mayBeBilled({ outcome, error, status }: AttemptEnd): boolean {
  if (outcome === 'ok' || error === undefined) return false;
  if (typeof error === 'string') return true;
  if (status !== 0) return status === 200;
  // A connection that never stood has a cause of its own.
  if (error.code === 'timeout') return error.cause === undefined;
  return error.code === 'upstream_unavailable' && brokenSockets.has(codeOf(error.cause));
}

const brokenSockets: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

function codeOf(cause: unknown): string {
  return typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : '';
}
