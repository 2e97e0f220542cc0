/**
 * Brings the book to the schema that this program knows. Instances that start together take turns: who
 * comes second finds the work done. A step and its record are one transaction (N2).
 */
import type { QueryResult } from 'pg';
import type { ServerAddress } from '../core/server-address.ts';
import { asPostgresError } from './postgres-failure.ts';
import { book } from './postgres-migrations/0001-book.ts';
import { counters } from './postgres-migrations/0002-counters.ts';
import { groupsOfKey } from './postgres-migrations/0003-groups-of-key.ts';
import { lostCalls } from './postgres-migrations/0004-lost-calls.ts';
import { attemptCredential } from './postgres-migrations/0005-attempt-credential.ts';
import { keptAnswers } from './postgres-migrations/0006-kept-answers.ts';
import { pieceCounts } from './postgres-migrations/0007-pieces.ts';
import { keptContents } from './postgres-migrations/0008-kept-contents.ts';
import { forgottenContents } from './postgres-migrations/0009-forgotten-contents.ts';
import { gateways } from './postgres-migrations/0010-gateways.ts';
import type { Row } from './postgres-pool.ts';
import { usualPatience, WatchedConnection, type Patience } from './postgres-watched.ts';
import { StoreError } from './store-error.ts';

/** In the order of their versions, 1, 2, … What is released is never changed. */
const migrations: readonly string[] = [
  book,
  counters,
  groupsOfKey,
  lostCalls,
  attemptCredential,
  keptAnswers,
  pieceCounts,
  keptContents,
  forgottenContents,
  gateways,
];

export const newestPostgresSchema = migrations.length;

/** Any number; the same in all versions. */
const turn = 5_563_204_119;

/** A table that is in use is not waited for without end: everybody else would queue behind it. */
const lockMs = 10_000;

/**
 * Applies what is missing.
 * @param steps the migrations; others only in tests.
 * @throws StoreError `newer_schema`; `unavailable`; `failed` when the user may not, or a step went wrong:
 * then nothing of it is there, and nothing is recorded.
 */
export async function migratePostgres(
  address: ServerAddress,
  steps: readonly string[] = migrations,
  patience: Patience = usualPatience,
): Promise<void> {
  const client = await WatchedConnection.open(address, 'model-gateway migrate', patience);
  try {
    for (;;) {
      const version = await readVersion((text) => client.ask(text));
      refuseNewer(version, { newest: steps.length, shown: address.shown });
      if (version === steps.length) return;
      await applyNext(client, steps);
    }
  } catch (error) {
    const failure = asPostgresError(error, address.shown);
    // No row of a caller is at fault here.
    throw failure.kind === 'refused' ? new StoreError('failed', failure.message, error) : failure;
  } finally {
    await client.close();
  }
}

async function readVersion(ask: (text: string) => Promise<QueryResult<Row>>): Promise<number> {
  // Not by `to_regclass`: that may remember, from before the wait for the turn, that there was none.
  const { rows } = await ask(
    "SELECT relname FROM pg_class WHERE relname = 'gateway_schema' AND pg_table_is_visible(oid)",
  );
  if (rows.length === 0) return 0;
  const found = await ask(
    'SELECT coalesce(max(version), 0)::integer AS version FROM gateway_schema',
  );
  return Number(found.rows[0]?.['version'] ?? 0);
}

function refuseNewer(
  version: number,
  { newest, shown }: { readonly newest: number; readonly shown: string },
): void {
  if (version <= newest) return;
  throw new StoreError(
    'newer_schema',
    `${shown} has schema ${version}, written by a newer version; this one knows schemas up to ` +
      `${newest}. Start the newer version, or restore a backup from before the upgrade.`,
  );
}

/**
 * One step, or none where another instance was faster. Both that one and the step may take long: they are
 * watched, and nothing ends them while the server is at work on them.
 */
async function applyNext(client: WatchedConnection, steps: readonly string[]): Promise<void> {
  await client.ask('BEGIN');
  try {
    await client.ask("SELECT set_config('statement_timeout', '0', true)");
    // One that is cut off between two statements, and cannot say so, keeps its lock from nobody.
    await client.ask("SELECT set_config('idle_in_transaction_session_timeout', '20000', true)");
    // Ends with the transaction, however that ends.
    await client.work('SELECT pg_advisory_xact_lock($1)', [turn]);
    await client.ask("SELECT set_config('lock_timeout', $1, true)", [String(lockMs)]);
    const version = await readVersion((text) => client.work(text));
    const step = steps[version];
    if (step !== undefined) {
      if (version === 0) await client.work(versionTable);
      await client.work(step);
      await client.work('INSERT INTO gateway_schema (version) VALUES ($1)', [version + 1]);
    }
    await client.work('COMMIT');
  } catch (error) {
    await client.ask('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

const versionTable = `CREATE TABLE gateway_schema (
  version integer PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT now()
)`;
