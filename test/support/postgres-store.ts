/** A store on the shared book for a test, its spool in a folder of its own. */
import { join } from 'node:path';
import type { Log } from '../../src/core/runtime.ts';
import { systemClock } from '../../src/observe/runtime.ts';
import { openPostgresStore, type PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { temporaryFolder } from './folders.ts';
import { postgresAddress } from './postgres.ts';

export interface TestStore {
  readonly store: PostgresStore;
  readonly spoolDirectory: string;
  /** What was logged, one line each: the event and its fields. */
  readonly log: readonly string[];
  /** Closes it; a second call does nothing. */
  close(): Promise<void>;
}

export async function openTestStore(url: string, spool?: string): Promise<TestStore> {
  const folder = temporaryFolder('spool');
  const log: string[] = [];
  const note = (event: string, fields: object = {}): void => {
    log.push(`${event} ${JSON.stringify(fields)}`);
  };
  const all: Log = { debug: note, info: note, warn: note, error: note };
  const spoolDirectory = spool ?? join(folder, 'spool');
  const store = await openPostgresStore({
    address: postgresAddress(url),
    log: all,
    clock: systemClock,
    random: Math.random,
    spoolDirectory,
  });
  let closed = false;
  return {
    store,
    spoolDirectory,
    log,
    close: async () => {
      if (closed) return;
      closed = true;
      await store.close();
    },
  };
}

/** Asks again until it is so; gives up after a while that nothing healthy takes. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  what: string,
  maxMs = 120_000,
): Promise<void> {
  const deadline = performance.now() + maxMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not within ${maxMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
