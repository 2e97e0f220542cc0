/** What Redis keeps of calls that hold money, as their rows need it (lost-calls.ts). */
import { parseOwn } from '../core/json.ts';
import type { Draw } from './counters.ts';
import { aboutHold, type LostHold } from './lost-calls.ts';

/** What is kept of a draw for the row of a call that nobody tells of; '' where no money is held. */
export function aboutDraw({ about, budgets }: Draw): string {
  if (about === undefined || budgets.length === 0) return '';
  return JSON.stringify(budgets.map((budget) => aboutHold(about, budget)));
}

interface KeptRecord {
  /** `counter|window`, nanodollars, ms to keep. An empty list is `{}` in Lua's JSON. */
  readonly b: readonly (readonly [string, string, string])[] | Record<string, never>;
  /** Absent in what an older version drew. */
  readonly n?: string;
}

/** @param records a JSON list of them */
export function holdsOf(records: string): readonly LostHold[] {
  return parseOwn<readonly KeptRecord[]>(records).flatMap(({ b, n }) => {
    const about = n === undefined || n === '' ? [] : parseOwn<readonly string[]>(n);
    return (Array.isArray(b) ? b : []).map(([name, nanodollars], i): LostHold => {
      const at = name.lastIndexOf('|');
      const amount = Number(nanodollars);
      const [counter, window] = [name.slice(0, at), name.slice(at + 1)];
      return { counter, window, nanodollars: amount, about: about[i] };
    });
  });
}
