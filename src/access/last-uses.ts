/** When keys were last used: noted in memory with each call, told to the store now and then. */
import type { Log } from '../core/runtime.ts';
import type { KeyStore } from '../store/store.ts';
import type { KeyEntry, Match } from './key-entry.ts';

/** A crash loses so much of it; it is a hint for people, nothing is decided by it. */
const writeEveryMs = 10_000;

export class LastUses {
  readonly #store: Pick<KeyStore, 'touch'>;
  readonly #log: Log;
  #current = new Set<KeyEntry>();
  #previous = new Set<KeyEntry>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Pick<KeyStore, 'touch'>, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  note(entry: KeyEntry, match: Match, now: number): void {
    entry.used(now, match);
    if (entry.source !== 'store') return;
    (match === 'previous' ? this.#previous : this.#current).add(entry);
    this.#timer ??= setTimeout(() => void this.flush(), writeEveryMs).unref();
  }

  /** Tells the store; what it does not take is told with the next ones. Never rejects. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const [current, previous] = [this.#current, this.#previous];
    if (current.size + previous.size === 0) return;
    this.#current = new Set();
    this.#previous = new Set();
    const uses = [
      ...[...current].map(({ record, lastUsedAt = 0 }) => ({
        id: record.id,
        at: lastUsedAt,
        previous: false,
      })),
      ...[...previous].map(({ record, previousUsedAt = 0 }) => ({
        id: record.id,
        at: previousUsedAt,
        previous: true,
      })),
    ];
    try {
      await this.#store.touch(uses);
    } catch (error) {
      for (const entry of current) this.#current.add(entry);
      for (const entry of previous) this.#previous.add(entry);
      const reason = error instanceof Error ? error.message : 'unknown';
      this.#log.warn('key_uses_not_written', { keys: uses.length, reason });
    }
  }
}
