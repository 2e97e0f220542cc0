/** The store in a SQLite database in memory, on the thread that calls it. */
import type { Clock } from '../../core/runtime.ts';
import { StoreError } from '../store-error.ts';
import type { Store } from '../store.ts';
import { openInMemory } from './database.ts';
import { SqliteEngine } from './engine.ts';
import { type Call, partsBy } from './sqlite-store.ts';

/** A store in memory; it ends with the process. */
export function openMemoryStore(clock: Pick<Clock, 'now' | 'wall'>): Store {
  const engine = new SqliteEngine({
    db: openInMemory(),
    now: () => clock.now(),
    wall: () => clock.wall(),
  });
  let closed = false;
  const call: Call = async (part, method, args) => {
    if (closed) throw new StoreError('closed', 'The store is closed.');
    return engine.call(part, method, args);
  };
  return {
    ...partsBy(call, async () => {}),
    backup: async (path) => engine.backup(path),
    close: async () => {
      if (!closed) engine.close();
      closed = true;
    },
  };
}
