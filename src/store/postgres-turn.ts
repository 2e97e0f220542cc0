/** Work that one instance does at a time, held together by a lock of the database. */
import type { ServerAddress } from '../core/server-address.ts';
import { WatchedConnection } from './postgres-watched.ts';

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
  const connection = await WatchedConnection.open(address, 'model-gateway turn');
  try {
    await connection.ask("SELECT set_config('statement_timeout', '0', false)");
    await connection.work('SELECT pg_advisory_lock($1)', [turn]);
    return await work();
  } finally {
    await connection.close();
  }
}
