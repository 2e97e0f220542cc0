/**
 * What the calls of one worker hold and have told. A worker that dies leaves its calls to the parent: each is
 * recorded as it was last known, or as spent in full where nobody knows (F81, Q1, Q2).
 */
import { IdTable } from '../../core/id-table.ts';
import type { CallRow, OpenCall } from '../../store/calls.ts';
import type { Counters, Draw, Used } from '../../store/counters/counters.ts';
import { aboutHold, lostCall, type LostHold } from '../../store/lost-calls.ts';

interface Drawn {
  readonly draw: Draw;
  /** Whose lease of budgets pays (`Granted`). */
  readonly lease?: string;
  /** What the worker said that it used; absent = it runs. */
  used?: Used;
}

/** A call that asks for more behind its first draw does it under these names: `call+`, `call+2`, … */
const more = /\+\d*$/;

export class WorkerCalls {
  /** By the id of the draw. */
  #drawn = new IdTable<Drawn>();
  #noted = new IdTable<OpenCall>();

  /** How many are known. */
  get size(): number {
    return this.#drawn.size + this.#noted.size;
  }

  drawn(draw: Draw, lease?: string): void {
    this.#drawn.set(draw.callId, lease === undefined ? { draw } : { draw, lease });
  }

  /** What cost something is held in mind until its row has come. */
  settled(callId: string, used: Used): void {
    const drawn = this.#drawn.get(callId);
    if (drawn === undefined) return;
    if (drawn.draw.budgets.length > 0 && (used.nanodollars ?? 0) > 0) drawn.used = used;
    else this.#drawn.delete(callId);
  }

  noted(calls: readonly OpenCall[]): void {
    for (const call of calls) this.#noted.set(call.row.id, call);
  }

  /** The ledger has their rows. */
  recorded(rows: readonly CallRow[]): void {
    for (const { id } of rows) {
      this.#noted.delete(id);
      if (this.#drawn.get(id)?.used !== undefined) this.#drawn.delete(id);
    }
  }

  /**
   * Ends all of them, since their worker is gone: what they held is settled at once.
   * @returns the rows that they shall have
   */
  end(counters: Pick<Counters, 'settle'>, now: number): readonly CallRow[] {
    const rows = new Map(this.#noted.entries().map(([id, { row }]) => [id, row]));
    for (const [id, draws] of this.#byCall()) {
      const row = this.#rowOf(id, draws, now);
      if (row !== undefined) rows.set(id, row);
      for (const { draw, used } of draws) {
        if (used === undefined) counters.settle(draw.callId, usedBy(draw, rows.get(id)));
      }
    }
    this.#drawn = new IdTable();
    this.#noted = new IdTable();
    return [...rows.values()];
  }

  #byCall(): Map<string, readonly Drawn[]> {
    const calls = new Map<string, Drawn[]>();
    for (const [id, drawn] of this.#drawn.entries()) {
      const call = id.replace(more, '');
      const draws = calls.get(call);
      if (draws === undefined) calls.set(call, [drawn]);
      else draws.push(drawn);
    }
    return calls;
  }

  /** Undefined: nothing of it is known but that it held a place. */
  #rowOf(id: string, draws: readonly Drawn[], now: number): CallRow | undefined {
    const noted = this.#noted.get(id)?.row;
    const ended = draws.find(({ used }) => used !== undefined);
    if (noted !== undefined && ended === undefined) return noted;
    const holds = (ended === undefined ? draws : [ended]).flatMap(holdsOf);
    if (holds.length === 0) return undefined;
    const lost = leased(lostCall(id, holds, now), draws);
    if (ended === undefined) return lost;
    const { cost, budgets } = lost;
    const notes = 'its worker died before it told how this call ended: booked with what it cost';
    return { ...(noted ?? lost), ...(cost === undefined ? {} : { cost }), budgets, notes };
  }
}

/** The row says which lease pays it, as the rows of calls that a worker tells of do. */
function leased(row: CallRow, [first]: readonly Drawn[]): CallRow {
  const { lease } = first ?? {};
  if (lease === undefined) return row;
  return { ...row, budgets: row.budgets.map((each) => ({ ...each, lease })) };
}

function holdsOf({ draw, used }: Drawn): readonly LostHold[] {
  return draw.budgets.map((budget) => ({
    counter: budget.counter,
    window: budget.window,
    nanodollars: used?.nanodollars ?? budget.amount,
    about: aboutHold(draw.about, budget),
  }));
}

/** All of its cost is booked by the first draw of a call; what it asked for besides is given back. */
function usedBy(draw: Draw, row: CallRow | undefined): Used {
  if (more.test(draw.callId)) return { tokens: 0, nanodollars: 0 };
  const tokens = Math.max(0, ...draw.tokens.map(({ amount }) => amount));
  return { tokens, nanodollars: row?.cost?.total ?? 0 };
}
