/**
 * The calls that ended last, in the order in which the ledger wrote them, for those who watch. A list of the ledger is
 * ordered by the begin of calls: one that took long would be found far below.
 */
import type { Clock } from '../core/runtime.ts';
import type { CallQuery, CallRow } from '../store/calls.ts';

/** Rows that are kept: some seconds of a busy gateway. */
const maxRows = 2000;
/** Rows are kept for this time after the last request for them; then no page watches, and none are kept. */
const watchedMs = 60_000;

/** The filters of calls in lists of the ledger. */
export type CallFilter = Omit<CallQuery, 'limit' | 'before'>;

export interface Look {
  /** `next` of the look before; undefined: the first look. */
  readonly after: string | undefined;
  readonly filter: CallFilter;
  /** Calls that are listed at most: the newest ones. */
  readonly limit: number;
}

export interface Ended {
  /** The one that ended last first. */
  readonly calls: readonly CallRow[];
  /** Calls of the filter since the look before; `calls` has the newest of them. */
  readonly ended: number;
  /** Calls since the look before that are not kept any more, whatever the filter. */
  readonly lost: number;
  /** False: the first look, or the one before was too long ago. What ended in between is not known. */
  readonly continued: boolean;
  readonly next: string;
}

export class EndedCalls {
  readonly #clock: Pick<Clock, 'now' | 'wall'>;
  #rows: CallRow[] = [];
  /** Number of rows since the watch began, those that are gone included. */
  #count = 0;
  /** Distinguishes the watches, also from those of another start of the gateway. */
  #watch = 0;
  #lookedAt: number | undefined;

  constructor(clock: Pick<Clock, 'now' | 'wall'>) {
    this.#clock = clock;
  }

  /** Notes calls that the ledger has written. */
  add(rows: readonly CallRow[]): void {
    if (!this.#isWatched()) return;
    this.#rows.push(...rows);
    this.#count += rows.length;
    // Not with each row: moving two thousand rows up costs more than keeping as many more for a while.
    if (this.#rows.length > 2 * maxRows) this.#rows = this.#rows.slice(-maxRows);
  }

  look({ after, filter, limit }: Look): Ended {
    if (!this.#isWatched()) {
      this.#count = 0;
      this.#watch = this.#clock.wall();
    }
    this.#lookedAt = this.#clock.now();
    const seen = this.#seen(after);
    const fresh = this.#count - (seen ?? this.#count);
    const kept = Math.min(fresh, this.#rows.length);
    const calls = this.#rows.slice(this.#rows.length - kept).filter((row) => fits(row, filter));
    return {
      calls: calls.slice(Math.max(0, calls.length - limit)).toReversed(),
      ended: calls.length,
      lost: fresh - kept,
      continued: seen !== undefined,
      next: `${this.#watch}.${this.#count}`,
    };
  }

  /** Rows that the look before knew of; undefined: it was of another watch. */
  #seen(after: string | undefined): number | undefined {
    const [, watch, count] = /^(\d{1,15})\.(\d{1,15})$/.exec(after ?? '') ?? [];
    const isOfThis = Number(watch) === this.#watch && Number(count) <= this.#count;
    return isOfThis ? Number(count) : undefined;
  }

  #isWatched(): boolean {
    const at = this.#lookedAt;
    if (at !== undefined && this.#clock.now() - at < watchedMs) return true;
    this.#rows = [];
    this.#lookedAt = undefined;
    return false;
  }
}

/** Members of a filter that a call must have exactly. */
const exact: readonly (readonly [name: keyof CallFilter, of: (row: CallRow) => unknown])[] = [
  ['key', ({ keyId }) => keyId],
  ['team', ({ team }) => team ?? ''],
  ['model', ({ model }) => model],
  ['provider', ({ provider }) => provider ?? ''],
  ['outcome', ({ outcome }) => outcome],
  ['endpoint', ({ endpoint }) => endpoint],
  ['user', ({ user }) => user],
  ['status', ({ status }) => status],
  ['mode', ({ mode }) => mode],
  ['fault', ({ failure }) => failure?.fault],
  ['error', ({ error }) => error],
  ['reason', ({ failure }) => failure?.reason],
  ['upstreamModel', ({ upstreamModel }) => upstreamModel],
];

/** Whether a list of the ledger with this filter has the call. */
function fits(row: CallRow, filter: CallFilter): boolean {
  const isOther = ([name, of]: (typeof exact)[number]): boolean =>
    filter[name] !== undefined && of(row) !== filter[name];
  return !exact.some(isOther) && isWithin(row, filter) && hasWords(row, filter);
}

function isWithin(
  { startedAt, totalMs, cost }: CallRow,
  { since = 0, until = Infinity, minMs = 0, minNanodollars }: CallFilter,
): boolean {
  if (startedAt < since || startedAt >= until || totalMs < minMs) return false;
  return minNanodollars === undefined || (cost !== undefined && cost.total >= minNanodollars);
}

function hasWords(row: CallRow, { notes, tag }: CallFilter): boolean {
  const text = row.notes?.toLowerCase() ?? '';
  if (notes !== undefined && !text.includes(notes.toLowerCase())) return false;
  if (tag === undefined) return true;
  return tag === '' ? row.tags.length === 0 : row.tags.includes(tag);
}
