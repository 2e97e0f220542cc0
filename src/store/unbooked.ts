/** What calls of this gateway spent and the book does not have yet. */
import { IdTable } from '../core/id-table.ts';
import type { Draw } from './counters.ts';

/** A call that ended: what it drew, and what it spent of each of its budgets; also nothing. */
export interface Spending {
  readonly draw: Draw;
  readonly nanodollars: number;
}

/** More than the ledger lets wait (F84): so many only where rows were refused for good. */
const mostCalls = 50_000;

export class Unbooked {
  readonly #calls = new IdTable<Spending>();
  /** Calls of which PostgreSQL was told as spent, and which the book did not have then. */
  readonly #told = new Set<string>();

  get calls(): readonly Spending[] {
    return this.#calls.entries().map(([, spending]) => spending);
  }

  add(spending: Spending): void {
    const { draw } = spending;
    if (draw.budgets.length === 0 || this.#calls.size >= mostCalls) return;
    this.#calls.set(draw.callId, spending);
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
    for (const callId of callIds) this.#calls.delete(callId);
    return this.#told.size === 0 ? [] : callIds.filter((callId) => this.#told.delete(callId));
  }
}
