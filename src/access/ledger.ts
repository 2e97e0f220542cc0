/**
 * Writes calls to the store. `record` only queues; a background writer writes the queue every 20 ms in one
 * transaction. A row leaves the queue when the store has it. Rows are never dropped while the process lives;
 * instead the gateway stops admitting calls (F84, F85). Longer calls are recorded while they run, so that a
 * crash does not lose them (F81).
 */
import { totalInputTokens } from '../core/generation.ts';
import { dollarsNumber } from '../core/money.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { quarantine, lineOf, recordSeparately, type RefusedRow } from '../store/refused-rows.ts';
import { noAnswerFor, StoreError } from '../store/store-error.ts';
import type { CallRow, Store } from '../store/store.ts';

/** Group commit: maximum delay after the end of a call, and maximum number of rows per transaction. */
const writeEveryMs = 20;
const batchRows = 500;

/** Most short calls end before this age and are never recorded while they run. */
const notedFromMs = 10;

/** Why a gateway is not ready while `Ledger.healthy` is false; the log and `Ledger.failure` have the cause. */
export const cannotRecord = 'finished calls cannot be written';

/** New calls are refused beyond either (F84). */
const maxQueuedRows = 10_000;
const maxFailingMs = 5000;

/** After a failed write: 100 ms, twice as long after each further one, at most a second. */
const firstRetryMs = 100;
const lastRetryMs = 1000;

/** A client's model name may be a megabyte; this much is enough to recognise it. */
const maxTextLength = 512;

export interface LedgerDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** A file for rows that the store rejects for their content; without one they wait for ever. */
  readonly refusedFile?: string;
}

/** A running call to be recorded. */
interface Running {
  /** Undefined where the entry is deleted. */
  row: (() => CallRow) | undefined;
  /** Monotonic ms at which it was reported. */
  readonly at: number;
}

export class Ledger {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #refusedFile: string | undefined;
  #queue: CallRow[] = [];
  /** Running calls to be recorded. */
  readonly #running = new Map<string, Running>();
  /** The next write includes calls of any age, since a reader requested the current state. */
  #youngToo = false;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  /** Monotonic ms at which the oldest unfinished write began. */
  #busySince: number | undefined;
  #lastWriteMs: number | undefined;
  #failure: string | undefined;
  /** Delay of the next write after a failure; 0 = the last write succeeded. */
  #retryMs = 0;
  /** Rows written to the store since the start. */
  #saved = 0;
  #failures = 0;
  #refused = 0;
  #closed = false;
  #onSettled: ((callIds: ReadonlySet<string>) => void) | undefined;

  constructor(deps: LedgerDeps) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#refusedFile = deps.refusedFile;
  }

  /** Queues a row; never throws, never waits. A row after `close` is logged and lost. */
  record(row: CallRow): void {
    if (this.#closed) {
      this.#log.error('ledger_rows_lost', { rows: 1, reason: 'the ledger is closed' });
      return;
    }
    this.#queue.push(cut(row));
    this.#forget(row.id);
    this.#schedule(this.#queue.length >= batchRows ? 0 : writeEveryMs);
  }

  /**
   * Records a call with the next write that finds it running for 10 ms, and until then checks with each write.
   * `row` returns the row that the call gets if it is never reported again.
   */
  running(id: string, row: () => CallRow): void {
    if (this.#closed) return;
    this.#forget(id);
    this.#running.set(id, { row, at: this.#clock.now() });
    this.#schedule(writeEveryMs);
  }

  /** Calls `listener` with calls that still run here and that another gateway has settled. */
  onSettled(listener: (callIds: ReadonlySet<string>) => void): void {
    this.#onSettled = listener;
  }

  /** Rows that are not in the store yet. */
  get queued(): number {
    return this.#queue.length;
  }

  /** How long rows have been waiting for a successful write, ms; 0 = the store accepts writes. */
  get waitMs(): number {
    return this.#busySince === undefined ? 0 : this.#clock.now() - this.#busySince;
  }

  /** How long the last successful write of finished calls took, ms; undefined = there was none. */
  get lastWriteMs(): number | undefined {
    return this.#lastWriteMs;
  }

  /** Why rows wait: the last error since a write succeeded, or that none is answered; undefined while all is well. */
  get failure(): string | undefined {
    if (this.#failure !== undefined || this.healthy()) return this.#failure;
    return this.waitMs < maxFailingMs
      ? `${this.#queue.length} finished calls wait for the store`
      : noAnswerFor(this.waitMs);
  }

  /** Since the start: rows written, failed writes, rejected rows. */
  get counts(): { readonly saved: number; readonly failures: number; readonly refused: number } {
    return { saved: this.#saved, failures: this.#failures, refused: this.#refused };
  }

  /** Whether new calls may be admitted; false is E18 `store_unavailable`. */
  healthy(): boolean {
    if (this.#queue.length >= maxQueuedRows) return false;
    return this.#busySince === undefined || this.#clock.now() - this.#busySince < maxFailingMs;
  }

  /** Writes the queue. @throws StoreError when that fails; the rows stay and are retried. */
  async flush(): Promise<void> {
    const wanted = this.#saved + this.#queue.length;
    if (this.#writing !== undefined) await this.#writing.catch(() => undefined);
    // Not "until the queue is empty": under load it never is.
    this.#youngToo = true;
    while (this.#saved < wanted) await this.#write();
  }

  /**
   * Writes the rest and stops. Rows that the store still does not accept are written to the log completely, so
   * that they can be restored from it.
   * @throws StoreError `failed` with their number when there are any.
   */
  async close(): Promise<void> {
    try {
      await this.flush();
    } catch (error) {
      throw this.#unsaved(textOf(error));
    } finally {
      this.#closed = true;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  #unsaved(reason: string): StoreError {
    const rows = this.#queue.length;
    this.#log.error('ledger_rows_lost', { rows, ...sumsOf(this.#queue), reason });
    for (const row of this.#queue)
      this.#log.error('ledger_row_lost', { call: row.id, row: lineOf(row) });
    const calls = rows === 1 ? '1 finished call is' : `${rows} finished calls are`;
    return new StoreError(
      'failed',
      `${calls} not in the ledger: ${reason.replace(/\.$/, '')}. Each is in the log, in a line with ledger_row_lost.`,
    );
  }

  #schedule(delayMs: number): void {
    if (this.#closed || this.#timer !== undefined || this.#writing !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      // The failure is logged and retried there.
      this.#write().catch(() => undefined);
    }, delayMs);
  }

  /** One write at a time: two would settle in any order. */
  #write(): Promise<void> {
    this.#writing ??= this.#writeBatch().finally(() => {
      this.#writing = undefined;
      if (this.#queue.length + this.#running.size > 0) this.#schedule(this.#nextDelay());
    });
    return this.#writing;
  }

  async #writeBatch(): Promise<void> {
    this.#busySince ??= this.#clock.now();
    try {
      await this.#writeFinished();
      await this.#writeRunning();
    } catch (error) {
      this.#retryMs = Math.min(Math.max(firstRetryMs, this.#retryMs * 2), lastRetryMs);
      this.#failures += 1;
      this.#failure = textOf(error);
      this.#log.error('ledger_write_failed', { rows: this.#queue.length, reason: this.#failure });
      throw error;
    }
    this.#busySince = undefined;
    this.#failure = undefined;
    this.#retryMs = 0;
  }

  async #writeFinished(): Promise<void> {
    const batch = this.#queue.slice(0, batchRows);
    if (batch.length === 0) return;
    const begun = this.#clock.now();
    const refused = await recordSeparately(batch, (rows) => this.#store.calls.record(rows));
    this.#lastWriteMs = this.#clock.now() - begun;
    if (refused.length > 0) await this.#quarantine(refused);
    this.#queue = this.#queue.slice(batch.length);
    this.#saved += batch.length;
  }

  /** @throws the store's rejection, if there is no file for it */
  async #quarantine(refused: readonly RefusedRow[]): Promise<void> {
    const path = this.#refusedFile;
    const reason = refused[0]?.reason ?? '';
    if (path === undefined) throw new StoreError('refused', reason);
    await quarantine(path, refused);
    this.#refused += refused.length;
    for (const { row, reason: why } of refused) {
      this.#log.error('ledger_row_refused', { call: row.id, path, reason: why });
    }
  }

  /** After the finished rows: a call that has ended by now is among them, or will be. */
  async #writeRunning(): Promise<void> {
    if (this.#running.size === 0) return;
    const notedBefore = this.#clock.now() - (this.#youngToo ? 0 : notedFromMs);
    this.#youngToo = false;
    const noted = [...this.#running].filter(([, { at }]) => at <= notedBefore);
    if (noted.length === 0) return;
    const seenAt = this.#clock.wall();
    const calls = noted.flatMap(([, { row }]) => (row ? { row: cut(row()), seenAt } : []));
    const settled = await this.#store.calls.open(calls);
    if (settled.length > 0) this.#onSettled?.(new Set(settled));
    for (const [id, running] of noted) {
      if (this.#running.get(id) === running) this.#forget(id);
    }
  }

  /**
   * Deletes an entry, and before it its reference to the call. When a map grows, its former table stays in memory until the
   * next full collection, with all that it refers to. With calls in it, a collection of the young generation took 4 ms, not 1.
   */
  #forget(id: string): void {
    const running = this.#running.get(id);
    if (running === undefined) return;
    running.row = undefined;
    this.#running.delete(id);
  }

  #nextDelay(): number {
    if (this.#retryMs > 0) return this.#retryMs;
    return this.#queue.length >= batchRows ? 0 : writeEveryMs;
  }
}

function cut(row: CallRow): CallRow {
  const notes = row.notes ?? '';
  if (row.model.length <= maxTextLength && notes.length <= maxTextLength * 4) return row;
  return {
    ...row,
    model: row.model.slice(0, maxTextLength),
    ...(notes === '' ? {} : { notes: notes.slice(0, maxTextLength * 4) }),
  };
}

/** What the rows were charged, for the log: the tokens of all, the cost of those whose price is known. */
function sumsOf(rows: readonly CallRow[]): Sums {
  let [tokens, nanodollars, unpriced] = [0, 0, 0];
  for (const { charged, cost } of rows) {
    tokens += (totalInputTokens(charged) ?? 0) + (charged.outputTokens ?? 0);
    if (cost === undefined) unpriced += 1;
    else nanodollars += cost.total;
  }
  return {
    tokens,
    ...(unpriced < rows.length ? { cost_usd: dollarsNumber(nanodollars) } : {}),
    ...(unpriced > 0 ? { unpriced_calls: unpriced } : {}),
  };
}

interface Sums {
  readonly tokens: number;
  readonly cost_usd?: number;
  /** How many rows have no cost. */
  readonly unpriced_calls?: number;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown';
}
