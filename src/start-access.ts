/** Part of the composition root: the data directory and who may come in: store, keys, ledger, admin. */
import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { loadAdminToken, makeRunToken, type AdminToken } from './access/admin-token.ts';
import type { KeyRing } from './access/keys.ts';
import { Ledger } from './access/ledger.ts';
import { loadSealKey } from './access/seal-key.ts';
import type { PolicySource } from './access/policies.ts';
import type { Settings } from './config/settings.ts';
import type { Log } from './core/runtime.ts';
import { Secret } from './core/secret.ts';
import { createSealer, type Sealer } from './core/sealer.ts';
import { systemClock } from './observe/clock.ts';
import { createAdminHandler, createAdminServer, type AdminParts } from './server/admin.ts';
import type { AdminHandler } from './server/admin-route.ts';
import { removeRunFile, writeRunFile } from './server/run-file.ts';
import { openCounters, type OpenedCounters } from './start-limits.ts';
import { lockDataDir, type DataDirLock } from './store/lock.ts';
import { MemoryStore } from './store/memory.ts';
import { noteMade, openDoor, type Door } from './start-keys.ts';
import { openSqliteStore } from './store/sqlite.ts';
import { StoreError } from './store/store-error.ts';
import type { Store } from './store/store.ts';
import { version } from './version.ts';

export interface AccessOptions {
  readonly settings: Settings;
  readonly env: { readonly [name: string]: string | undefined };
  readonly log: Log;
}

/** What the running gateway adds to the admin API. */
export type GatewayAdmin = Pick<
  AdminParts,
  'models' | 'modelProblems' | 'prices' | 'defaultPrice' | 'status' | 'reload'
>;

/** The opened data directory. */
export interface Access {
  readonly keys: KeyRing;
  readonly door: Door;
  readonly ledger: Ledger;
  /** What counts limits and budgets. */
  readonly counting: OpenedCounters;
  /** Teams' and tags'. */
  readonly policies: PolicySource;
  /** Seals what clients carry for upstreams; the same over restarts. */
  readonly sealer: Sealer;
  /** Present when this start made them; shown once. */
  readonly newKey?: string;
  readonly newAdminToken?: string;
  adminServer(gateway: GatewayAdmin): Server;
  /** Lets the commands on this machine find the admin plane. */
  announce(adminUrl: string): void;
  close(): Promise<void>;
}

const random = (count: number): Uint8Array => randomBytes(count);

/**
 * Opens the data directory for a running gateway and makes the first key and the admin token.
 * @throws StoreError when the directory is in use, open to others, or its database is broken.
 */
export async function openAccess(options: AccessOptions): Promise<Access> {
  const { settings, env, log } = options;
  const lock = lockDataDir(settings.dataDir);
  let store: Store | undefined;
  try {
    store = await openStore(settings, log);
    const door = await openDoor({ store, settings, env, log });
    const { keys } = door;
    if (keys.pepperProblem !== undefined) throw new Error(keys.pepperProblem);
    const first = await keys.ensureFirstKey();
    const literal = env['MODEL_GATEWAY_ADMIN_TOKEN'];
    const admin = await loadAdminToken({
      store,
      keys,
      random,
      ...(literal === undefined || literal === '' ? {} : { literal: new Secret(literal) }),
    });
    await noteMade(door, { keyId: first?.id, adminToken: admin.made !== undefined });
    const sealer = createSealer(await loadSealKey(store, random));
    const counting = await openCounters({ store, clock: systemClock, log });
    const parts = { store, counting, door, admin, sealer, lock, dataDir: settings.dataDir, log };
    return new OpenAccess(parts, first?.key.reveal());
  } catch (error) {
    // An open store is a living thread: the process would not end.
    await store?.close();
    lock.release();
    throw error;
  }
}

/** The admin API on the data directory itself, for commands while no gateway runs on it. */
export async function openAdminHandler(
  options: AccessOptions & { readonly gateway: GatewayAdmin },
): Promise<{ readonly handle: AdminHandler; close(): Promise<void> }> {
  const { settings, env, log, gateway } = options;
  const lock = lockDataDir(settings.dataDir);
  let store: Store | undefined;
  try {
    store = await openStore(settings, log);
    const opened = store;
    const { keys, policies, audit } = await openDoor({ store, settings, env, log });
    const handle = createAdminHandler({
      ...gateway,
      keys,
      policies,
      audit,
      store: opened,
      clock: systemClock,
      log,
      version,
    });
    const close = async (): Promise<void> => {
      await opened.close();
      lock.release();
    };
    return { handle, close };
  } catch (error) {
    await store?.close();
    lock.release();
    throw error;
  }
}

async function openStore(settings: Settings, log: Log): Promise<Store> {
  if (settings.storage.book === 'memory') return new MemoryStore();
  if (settings.storage.book === 'postgres') {
    throw new StoreError('failed', 'storage: PostgreSQL is not available yet.');
  }
  return openSqliteStore({ path: join(settings.dataDir, 'gateway.db'), log });
}

interface OpenParts {
  readonly store: Store;
  readonly counting: OpenedCounters;
  readonly door: Door;
  readonly admin: AdminToken;
  readonly sealer: Sealer;
  readonly lock: DataDirLock;
  readonly dataDir: string;
  readonly log: Log;
}

class OpenAccess implements Access {
  readonly keys: KeyRing;
  readonly door: Door;
  readonly ledger: Ledger;
  readonly counting: OpenedCounters;
  readonly policies: PolicySource;
  readonly sealer: Sealer;
  readonly newKey?: string;
  readonly newAdminToken?: string;
  readonly #parts: OpenParts;
  readonly #control = makeRunToken(random);

  constructor(parts: OpenParts, newKey: string | undefined) {
    this.#parts = parts;
    this.door = parts.door;
    this.keys = parts.door.keys;
    this.sealer = parts.sealer;
    this.counting = parts.counting;
    this.policies = parts.door.policies;
    this.ledger = new Ledger({ store: parts.store, clock: systemClock, log: parts.log });
    if (newKey !== undefined) this.newKey = newKey;
    if (parts.admin.made !== undefined) this.newAdminToken = parts.admin.made.reveal();
  }

  adminServer(gateway: GatewayAdmin): Server {
    const { store, door, admin, log } = this.#parts;
    const { keys, policies, audit } = door;
    return createAdminServer({
      ...gateway,
      keys,
      policies,
      audit,
      version,
      store,
      flushLedger: () => this.ledger.flush(),
      clock: systemClock,
      log,
      adminToken: admin.check,
      controlToken: this.#control,
    });
  }

  announce(adminUrl: string): void {
    writeRunFile(this.#parts.dataDir, {
      pid: process.pid,
      admin: adminUrl,
      control: this.#control,
    });
  }

  async close(): Promise<void> {
    removeRunFile(this.#parts.dataDir, process.pid);
    await this.ledger.close();
    await this.#parts.counting.counters.close();
    await this.keys.flushUses();
    await this.#parts.store.close();
    this.#parts.lock.release();
  }
}
