/** Keys in memory. */
import { keysPortion, type KeyChanges, type KeyRecord, type KeyUse } from './records.ts';
import { StoreError } from './store-error.ts';
import { compareText } from './text-order.ts';

interface Entry {
  readonly record: KeyRecord;
  /** When it last changed, counted in changes. */
  readonly stamp: number;
}

export class MemoryKeys {
  readonly #entries = new Map<string, Entry>();
  #stamp = 0;

  list(): readonly KeyRecord[] {
    return [...this.#entries.values()]
      .map(({ record }) => record)
      .sort((a, b) => a.createdAt - b.createdAt || compareText(a.id, b.id));
  }

  add(record: KeyRecord): void {
    if (this.#entries.has(record.id)) {
      throw new StoreError('failed', `There is a key with the id ${record.id}.`);
    }
    this.#put(record);
  }

  replace(record: KeyRecord): boolean {
    const found = this.#entries.get(record.id)?.record;
    if (found === undefined || found.version !== record.version - 1) return false;
    const { lastUsedAt: _, previousUsedAt: __, ...changed } = record;
    const { lastUsedAt, previousUsedAt } = found;
    this.#put({
      ...changed,
      ...(lastUsedAt === undefined ? {} : { lastUsedAt }),
      ...(previousUsedAt === undefined ? {} : { previousUsedAt }),
    });
    return true;
  }

  revoke(id: string, at: number): boolean {
    const record = this.#entries.get(id)?.record;
    if (record === undefined) return false;
    if (record.revokedAt === undefined) {
      this.#put({ ...record, revokedAt: at, version: record.version + 1 });
    }
    return true;
  }

  touch(uses: readonly KeyUse[]): void {
    for (const { id, at, previous } of uses) {
      const entry = this.#entries.get(id);
      if (entry === undefined) continue;
      const name = previous ? 'previousUsedAt' : 'lastUsedAt';
      const latest = Math.max(at, entry.record[name] ?? at);
      this.#entries.set(id, { ...entry, record: { ...entry.record, [name]: latest } });
    }
  }

  since(stamp: number, most = keysPortion): KeyChanges {
    const changed = [...this.#entries.values()]
      .filter((entry) => entry.stamp > stamp)
      .sort((a, b) => a.stamp - b.stamp)
      .slice(0, most);
    return {
      records: changed.map(({ record }) => record),
      stamp: changed.at(-1)?.stamp ?? stamp,
      more: changed.length === most,
    };
  }

  #put(record: KeyRecord): void {
    this.#stamp += 1;
    this.#entries.set(record.id, { record, stamp: this.#stamp });
  }
}
