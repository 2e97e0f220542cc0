/**
 * Brings the book to the schema that this program knows. Instances that start together take turns: who
 * comes second finds the work done. A step and its record are one transaction (N2).
 */
import type { Client } from 'pg';
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
import { connectionConfig } from './postgres-pool.ts';
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
): Promise<void> {
  const pg = await import('pg');
  const client = new pg.Client(connectionConfig(address, 'model-gateway migrate'));
  // A connection that dies is told by the statement that needs it.
  client.on('error', () => undefined);
  try {
    await client.connect();
    for (;;) {
      const version = await readVersion(client);
      refuseNewer(version, { newest: steps.length, shown: address.shown });
      if (version === steps.length) return;
      await applyNext(client, steps);
    }
  } catch (error) {
    const failure = asPostgresError(error, address.shown);
    // No row of a caller is at fault here.
    throw failure.kind === 'refused' ? new StoreError('failed', failure.message, error) : failure;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function readVersion(client: Client): Promise<number> {
  const { rows } = await client.query<{ readonly known: string | null }>(
    "SELECT to_regclass('gateway_schema')::text AS known",
  );
  if (rows[0]?.known === null) return 0;
  const found = await client.query<{ readonly version: number }>(
    'SELECT coalesce(max(version), 0)::integer AS version FROM gateway_schema',
  );
  return found.rows[0]?.version ?? 0;
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

/** One step, or none where another instance was faster. */
async function applyNext(client: Client, steps: readonly string[]): Promise<void> {
  await client.query('BEGIN');
  try {
    // Ends with the transaction, however that ends.
    await client.query('SELECT pg_advisory_xact_lock($1)', [turn]);
    await client.query("SELECT set_config('lock_timeout', $1, true)", [String(lockMs)]);
    const version = await readVersion(client);
    const step = steps[version];
    if (step !== undefined) {
      if (version === 0) await client.query(versionTable);
      await client.query(step);
      await client.query('INSERT INTO gateway_schema (version) VALUES ($1)', [version + 1]);
    }
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

const versionTable = `CREATE TABLE gateway_schema (
  version integer PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT now()
)`;
