/** The store in memory, for tests and for a gateway that must leave nothing behind. */
import { StoreError } from './store-error.ts';
import type { CallRow, KeyRecord, Store, UsageGrouping, UsageQuery, UsageRow } from './store.ts';

type Sums = { -readonly [K in keyof UsageRow]: UsageRow[K] };

export class MemoryStore implements Store {
  readonly #keys = new Map<string, KeyRecord>();
  readonly #settings = new Map<string, string>();
  readonly #calls = new Map<string, CallRow>();
  #closed = false;

  async listKeys(): Promise<readonly KeyRecord[]> {
    this.#requireOpen();
    return [...this.#keys.values()].sort(
      (a, b) => a.createdAt - b.createdAt || compare(a.id, b.id),
    );
  }

  async addKey(record: KeyRecord): Promise<void> {
    this.#requireOpen();
    if (this.#keys.has(record.id)) {
      throw new StoreError('failed', `There is a key with the id ${record.id}.`);
    }
    this.#keys.set(record.id, record);
  }

  async revokeKey(id: string, at: number): Promise<boolean> {
    this.#requireOpen();
    const record = this.#keys.get(id);
    if (record === undefined) return false;
    this.#keys.set(id, { ...record, revokedAt: record.revokedAt ?? at });
    return true;
  }

  async readSetting(name: string): Promise<string | undefined> {
    this.#requireOpen();
    return this.#settings.get(name);
  }

  async writeSetting(name: string, value: string): Promise<void> {
    this.#requireOpen();
    this.#settings.set(name, value);
  }

  async recordCalls(rows: readonly CallRow[]): Promise<void> {
    this.#requireOpen();
    for (const row of rows) if (!this.#calls.has(row.id)) this.#calls.set(row.id, row);
  }

  async usage(query: UsageQuery): Promise<readonly UsageRow[]> {
    this.#requireOpen();
    const groups = new Map<string, Sums>();
    for (const row of this.#calls.values()) {
      if (row.startedAt >= query.since) addTo(groups, groupOf(row, query.by), row);
    }
    return [...groups.values()].sort((a, b) => compare(a.group, b.group));
  }

  async listCalls(limit: number): Promise<readonly CallRow[]> {
    this.#requireOpen();
    return [...this.#calls.values()]
      .sort((a, b) => b.startedAt - a.startedAt || compare(b.id, a.id))
      .slice(0, limit);
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #requireOpen(): void {
    if (this.#closed) throw new StoreError('closed', 'The store is closed.');
  }
}

function addTo(groups: Map<string, Sums>, group: string, row: CallRow): void {
  let sums = groups.get(group);
  if (sums === undefined) {
    sums = {
      group,
      calls: 0,
      failed: 0,
      inputTokens: 0,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 0,
    };
    groups.set(group, sums);
  }
  const { freshInputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = row.charged;
  sums.calls += 1;
  if (row.outcome === 'failed') sums.failed += 1;
  sums.inputTokens += freshInputTokens + cacheReadTokens + cacheWriteTokens;
  sums.cacheReadTokens += cacheReadTokens;
  sums.cacheWriteTokens += cacheWriteTokens;
  sums.outputTokens += row.charged.outputTokens ?? 0;
}

function groupOf(row: CallRow, by: UsageGrouping): string {
  switch (by) {
    case 'key':
      return row.keyId;
    case 'model':
      return row.model;
    case 'provider':
      return row.provider ?? '';
    case 'team':
      return row.team ?? '';
    case 'day':
      return new Date(row.startedAt).toISOString().slice(0, 10);
    default:
      return by satisfies never;
  }
}

/** By UTF-8 bytes, as SQLite compares text. */
function compare(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
