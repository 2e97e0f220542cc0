/** The ledger as it lies on disk, beside what clients and upstream know of the same calls. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Called } from './callers.ts';
import type { CountingUpstream } from './counting-upstream.ts';

export interface LedgerRow {
  readonly user: string;
  readonly outcome: string;
  readonly error: string | null;
  readonly source: string;
  readonly input: number;
  readonly output: number;
  readonly cost: number;
  readonly attempts: number;
}

/** @throws Error when the database is damaged. */
export function readLedger(directory: string): readonly LedgerRow[] {
  const db = new DatabaseSync(join(directory, 'data', 'gateway.db'), {
    readOnly: true,
    // Its writer may be at work in just this moment.
    timeout: 60_000,
  });
  try {
    const [check] = db.prepare('PRAGMA integrity_check').all();
    if (check?.['integrity_check'] !== 'ok') throw new Error(`damaged: ${JSON.stringify(check)}`);
    const columns = 'user_name, outcome, error, usage_source, charged_fresh_input_tokens, attempts';
    const rows = db.prepare(`SELECT ${columns}, charged_output_tokens, cost FROM calls`).all();
    return rows.map((row) => ({
      user: String(row['user_name'] ?? ''),
      outcome: String(row['outcome']),
      error: row['error'] === null ? null : String(row['error']),
      source: String(row['usage_source']),
      input: Number(row['charged_fresh_input_tokens'] ?? 0),
      output: Number(row['charged_output_tokens'] ?? 0),
      cost: Number(row['cost'] ?? 0),
      attempts: Number(row['attempts']),
    }));
  } finally {
    db.close();
  }
}

export interface Comparison {
  /** What does not fit; empty when all is well. */
  readonly wrong: readonly string[];
  readonly rows: number;
  readonly succeeded: number;
  /** Tokens of calls whose usage was reported, by the ledger and by the upstream. */
  readonly booked: number;
  readonly counted: number;
}

export interface Compared {
  readonly rows: readonly LedgerRow[];
  readonly calls: ReadonlyMap<string, Called>;
  readonly upstream: CountingUpstream;
  /** Whether a call's row may be missing, or be that of a call that was cut. */
  readonly excused: (called: Called) => boolean;
}

export function compare({ rows, calls, upstream, excused }: Compared): Comparison {
  const wrong: string[] = [];
  const byUser = new Map<string, LedgerRow>();
  let succeeded = 0;
  let booked = 0;
  let counted = 0;
  for (const row of rows) {
    const twin = byUser.get(row.user);
    // What was refused before its body was read has no user.
    if (twin !== undefined && row.user !== '') wrong.push(`${row.user} has two rows`);
    byUser.set(row.user, row);
    const called = calls.get(row.user);
    if (row.user !== '' && called === undefined) wrong.push(`${row.user} was never called`);
    if (row.outcome === 'ok') succeeded += 1;
    if (row.outcome !== 'ok' || row.source !== 'reported') continue;
    const account = upstream.calls.get(row.user);
    booked += row.input + row.output;
    counted += (account?.input ?? 0) + (account?.output ?? 0);
    if (account?.input !== row.input || account.output !== row.output) {
      const told = `${account?.input}+${account?.output}`;
      wrong.push(`${row.user}: booked ${row.input}+${row.output}, counted ${told}`);
    }
  }
  for (const called of calls.values()) {
    const row = byUser.get(called.name);
    if (row === undefined) {
      const known = called.heard || called.refused || upstream.calls.has(called.name);
      if (known && !excused(called)) wrong.push(`${called.name} has no row`);
    } else if (called.heard && row.outcome !== 'ok' && !excused(called)) {
      wrong.push(`${called.name} was heard whole, and its row says ${row.outcome} ${row.error}`);
    } else if (!called.heard && !called.left && row.outcome === 'ok' && !excused(called)) {
      wrong.push(`${called.name} was not heard whole, and its row says ok`);
    }
  }
  return { wrong, rows: rows.length, succeeded, booked, counted };
}
