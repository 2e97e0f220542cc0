/** What calls of this gateway spent and the book does not have yet. */
import { IdTable } from '../core/id-table.ts';
import type { Draw } from './counters.ts';

/** A call that ended: what it drew, and what it spent of each of its budgets; also nothing. */
export interface Spending {
  readonly draw: Draw;
  readonly nanodollars: number;
}

/** As many as may wait for a book that is away; beyond it the others cannot be told. */
const mostCalls = 200_000;
/** Calls that spent nothing may never have a row: the latest are enough. */
const mostFree = 10_000;

export class Unbooked {
  readonly #calls = new IdTable<Spending>();
  /** Of them those that spent nothing, the oldest first. */
  readonly #free = new Set<string>();
  /** Calls of which PostgreSQL was told as spent, and which the book did not have then. */
  readonly #told = new Set<string>();

  get calls(): readonly Spending[] {
    return this.#calls.entries().map(([, spending]) => spending);
  }

  /** @returns false where there is no room */
  add(spending: Spending): boolean {
    const { draw, nanodollars } = spending;
    // What a call drew behind its first draw has no row, and spends nothing of its own.
    if (draw.budgets.length === 0 || draw.callId.includes('+')) return true;
    if (nanodollars > 0 && this.#calls.size >= mostCalls) return false;
    this.#calls.set(draw.callId, spending);
    if (nanodollars === 0) this.#addFree(draw.callId);
    return true;
  }

  #addFree(callId: string): void {
    this.#free.add(callId);
    if (this.#free.size <= mostFree) return;
    for (const oldest of this.#free) {
      this.#free.delete(oldest);
      this.#calls.delete(oldest);
      return;
    }
  }

  /** PostgreSQL was told of these. @returns those that the book has got meanwhile */
  told(calls: readonly Spending[]): readonly string[] {
    const booked: string[] = [];
    for (const { draw } of calls) {
      if (this.#calls.has(draw.callId)) this.#told.add(draw.callId);
      else booked.push(draw.callId);
    }
    return booked;
  }

  /** The book has these. @returns those of which PostgreSQL was told before */
  booked(callIds: readonly string[]): readonly string[] {
    for (const callId of callIds) {
      this.#calls.delete(callId);
      this.#free.delete(callId);
    }
    return this.#told.size === 0 ? [] : callIds.filter((callId) => this.#told.delete(callId));
  }
}
