/** Part of the composition root: where keys and ledger are stored, and who else uses that. */
import { join } from 'node:path';
import type { Settings } from '../config/settings.ts';
import type { Log } from '../core/runtime.ts';
import { systemClock } from '../observe/runtime.ts';
import type { PostgresStore } from '../store/postgres/postgres-store.ts';
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts';
import type { Store } from '../store/store.ts';

export interface OpenedStorage {
  readonly store: Store;
  /** The same store, where other gateways may use it too. */
  readonly shared?: PostgresStore;
}

/** @throws StoreError; a shared book that is only away now is none: it is waited for. */
export async function openStorage(
  { storage, dataDir, ledger }: Pick<Settings, 'storage' | 'dataDir' | 'ledger'>,
  log: Log,
): Promise<OpenedStorage> {
  switch (storage.database) {
    case 'memory': {
      const { openMemoryStore } = await import('../store/sqlite/memory-store.ts');
      return { store: openMemoryStore(systemClock) };
    }
    case 'sqlite':
      return {
        store: await openSqliteStore({ path: join(dataDir, 'gateway.db'), log, ...ledger }),
      };
    case 'postgres': {
      const { openPostgresStore } = await import('../store/postgres/postgres-store.ts');
      const shared = await openPostgresStore({
        address: storage.postgres,
        log,
        clock: systemClock,
        random: Math.random,
        spoolDirectory: join(dataDir, 'spool'),
      });
      return { store: shared, shared };
    }
    default:
      return storage satisfies never;
  }
}
