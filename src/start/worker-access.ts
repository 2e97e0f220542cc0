/** Part of the composition root: who may call a worker, and what counts and keeps it: its parent's. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { ContentKey } from '../access/content-key.ts';
import { Ledger } from '../access/ledger.ts';
import { loadSealKey } from '../access/seal-key.ts';
import type { Settings } from '../config/settings.ts';
import type { Log } from '../core/runtime.ts';
import { createSealer, type Sealer } from '../core/sealer.ts';
import { systemClock } from '../observe/clock.ts';
import { makeDoor, type Door } from './keys.ts';
import type { OpenedCounters } from './limits.ts';
import type { Environment } from './options.ts';
import type { PlaneAccess } from './plane.ts';
import type { ParentState } from './worker-protocol.ts';
import { StoreError } from '../store/store-error.ts';
import type { AnswerStore, Store } from '../store/store.ts';
import { RemoteCounters, remoteStore, type BookLink } from '../workers/remote-book.ts';

export interface WorkerAccessParts {
  readonly link: BookLink;
  readonly settings: Settings;
  readonly env: Environment;
  readonly log: Log;
  readonly state: ParentState;
  readonly stillMs?: number;
  readonly contentKey: Uint8Array | undefined;
}

const againMs = 500;

export class WorkerAccess implements PlaneAccess {
  readonly door: Door;
  readonly keys: PlaneAccess['keys'];
  readonly policies: PlaneAccess['policies'];
  readonly ledger: Ledger;
  readonly counting: OpenedCounters;
  readonly answers: AnswerStore;
  readonly contents: Store['contents'];
  readonly contentKey: ContentKey;
  readonly sealer: Sealer;
  readonly stillMs?: number;
  readonly #store: Store;
  readonly #log: Log;
  #state: ParentState;
  #sealing: Sealer | undefined;
  #again: NodeJS.Timeout | undefined;
  #loading: Promise<void> | undefined;

  /** @throws Error when a secret of the environment or a declared key cannot serve. */
  constructor({ link, settings, env, log, state, stillMs, contentKey }: WorkerAccessParts) {
    this.#state = state;
    this.#log = log;
    const store = remoteStore(link);
    this.#store = store;
    this.door = makeDoor({ store, settings, env, log, shared: true });
    this.keys = this.door.keys;
    this.policies = this.door.policies;
    this.answers = store.answers;
    this.contents = store.contents;
    this.contentKey = { find: () => contentKey, need: () => contentKey };
    const refusedFile = join(settings.dataDir, 'refused-calls.jsonl');
    this.ledger = new Ledger({ store, clock: systemClock, log, refusedFile });
    const counters = new RemoteCounters({ link, clock: systemClock, state: () => this.#state });
    this.counting = { counters, spent: [] };
    this.sealer = {
      seal: (record) => this.#requireSealer().seal(record),
      open: (sealed) => this.#requireSealer().open(sealed),
      digest: (text) => this.#requireSealer().digest(text),
    };
    if (stillMs !== undefined) this.stillMs = stillMs;
  }

  heard(state: ParentState): void {
    this.#state = state;
    if (state.loaded && this.#sealing === undefined) void this.begin();
  }

  /** Reads keys and secrets; what the parent has not read yet is read when it has. Never rejects. */
  begin(): Promise<void> {
    this.#loading ??= this.#begin().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** Resolves once keys and policies are as they are now, or as they were while nobody can tell. */
  async keysChanged(): Promise<void> {
    await this.door.policies.load();
    await this.door.keys.loadAnew();
  }

  mayAdmit(): boolean {
    return this.#sealing !== undefined && this.#state.mayAdmit && this.ledger.healthy();
  }

  trouble(): string | undefined {
    if (this.#sealing === undefined) return 'the store was not read yet';
    if (this.#state.trouble !== undefined) return this.#state.trouble;
    return this.ledger.healthy() ? undefined : 'the store does not answer';
  }

  /** The parent does. */
  watchSpending(): void {}

  status(): ReturnType<PlaneAccess['status']> {
    return {};
  }

  storeFacts(): ReturnType<PlaneAccess['storeFacts']> {
    const { queued, waitMs, counts } = this.ledger;
    const up = this.#state.trouble === undefined && this.ledger.healthy();
    return {
      store: { up, queued, spooled: 0, waitMs, ...counts },
      countersUp: this.#state.countersUp,
    };
  }

  async close(): Promise<void> {
    clearTimeout(this.#again);
    await this.ledger.close();
    await this.keys.flushUses();
  }

  async #begin(): Promise<void> {
    if (!this.#state.loaded || this.#sealing !== undefined) return;
    try {
      await this.door.load();
      this.#sealing = createSealer(await loadSealKey(this.#store, (count) => randomBytes(count)));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#log.error('store_not_loaded', { reason });
      this.#again = setTimeout(() => void this.begin(), againMs).unref();
    }
  }

  #requireSealer(): Sealer {
    if (this.#sealing !== undefined) return this.#sealing;
    throw new StoreError('unavailable', 'The store was not read yet.');
  }
}
