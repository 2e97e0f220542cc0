/** Work that one instance does at a time, held together by a lock of the database. */
import type { ServerAddress } from '../core/server-address.ts';
import { asPostgresError } from './postgres-failure.ts';
import { connectionConfig } from './postgres-pool.ts';

/**
 * Waits for the turn and runs `work`. The lock ends with its connection, so that a process which dies
 * in its turn holds up nobody.
 * @throws StoreError, or what `work` throws.
 */
export async function inTurn<T>(
  address: ServerAddress,
  turn: number,
  work: () => Promise<T>,
): Promise<T> {
  const pg = await import('pg');
  const client = new pg.Client(connectionConfig(address, 'model-gateway turn'));
  client.on('error', () => undefined);
  try {
    try {
      await client.connect();
      await client.query('SELECT pg_advisory_lock($1)', [turn]);
    } catch (error) {
      throw asPostgresError(error, address.shown);
    }
    return await work();
  } finally {
    await client.end().catch(() => undefined);
  }
}
