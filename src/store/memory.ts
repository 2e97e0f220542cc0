/** The store in memory, for tests and for a gateway that must leave nothing behind. */
import type { SharedPolicy } from '../core/policy.ts';
import { chained } from './audit-chain.ts';
import { MemoryAnswers } from './memory-answers.ts';
import { MemoryCalls } from './memory-calls.ts';
import { MemoryContents } from './memory-contents.ts';
import { MemoryKeys } from './memory-keys.ts';
import { StoreError } from './store-error.ts';
import type {
  AuditEntry,
  AuditQuery,
  AuditRecord,
  CallPage,
  CallQuery,
  CallRow,
  KeyChanges,
  KeyRecord,
  KeyUse,
  NotedChange,
  OpenCall,
  Retention,
  Spent,
  SpentPage,
  Store,
  SeriesQuery,
  SeriesRow,
  LatencyQuery,
  LatencySamples,
  UsageQuery,
  UsageRow,
} from './store.ts';
import { compareText } from './text-order.ts';

export class MemoryStore implements Store {
  readonly answers = new MemoryAnswers();
  readonly contents = new MemoryContents();
  readonly #keys = new MemoryKeys();
  readonly #calls = new MemoryCalls();
  readonly #policies = new Map<string, SharedPolicy>();
  readonly #settings = new Map<string, string>();
  readonly #audit: AuditRecord[] = [];
  #closed = false;

  async listKeys(): Promise<readonly KeyRecord[]> {
    this.#requireOpen();
    return this.#keys.list();
  }

  async addKey(record: KeyRecord): Promise<void> {
    this.#requireOpen();
    this.#keys.add(record);
  }

  async replaceKey(record: KeyRecord): Promise<boolean> {
    this.#requireOpen();
    return this.#keys.replace(record);
  }

  async revokeKey(id: string, at: number): Promise<boolean> {
    this.#requireOpen();
    return this.#keys.revoke(id, at);
  }

  async touchKeys(uses: readonly KeyUse[]): Promise<void> {
    this.#requireOpen();
    this.#keys.touch(uses);
  }

  async keysSince(stamp: number, most?: number): Promise<KeyChanges> {
    this.#requireOpen();
    return this.#keys.since(stamp, most);
  }

  async listPolicies(): Promise<readonly SharedPolicy[]> {
    this.#requireOpen();
    return [...this.#policies.values()].sort(
      (a, b) => compareText(a.kind, b.kind) || compareText(a.name, b.name),
    );
  }

  async putPolicy(policy: SharedPolicy): Promise<void> {
    this.#requireOpen();
    this.#policies.set(`${policy.kind}:${policy.name}`, policy);
  }

  async deletePolicy(kind: SharedPolicy['kind'], name: string): Promise<boolean> {
    this.#requireOpen();
    return this.#policies.delete(`${kind}:${name}`);
  }

  async appendAudit(entry: AuditEntry): Promise<AuditRecord> {
    this.#requireOpen();
    const record = chained(entry, this.#audit.at(-1));
    this.#audit.push(record);
    return record;
  }

  async changeNoted(change: NotedChange, entry: AuditEntry): Promise<AuditRecord | undefined> {
    return (await this.#apply(change)) ? this.appendAudit(entry) : undefined;
  }

  async listAudit({ limit, before, subject }: AuditQuery): Promise<readonly AuditRecord[]> {
    this.#requireOpen();
    return this.#audit
      .filter((record) => before === undefined || record.seq < before)
      .filter((record) => subject === undefined || record.subject === subject)
      .toReversed()
      .slice(0, limit);
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
    this.#calls.record(rows);
  }

  async openCalls(calls: readonly OpenCall[]): Promise<readonly string[]> {
    this.#requireOpen();
    this.#calls.open(calls);
    return [];
  }

  async settleOrphans(seenBefore: number): Promise<readonly CallRow[]> {
    this.#requireOpen();
    return this.#calls.settleOrphans(seenBefore);
  }

  async spent(endingAfter: number, counters?: readonly string[]): Promise<readonly Spent[]> {
    this.#requireOpen();
    const all = this.#calls.spent(endingAfter);
    return counters === undefined ? all : all.filter(({ counter }) => counters.includes(counter));
  }

  async spentPage(endingAfter: number, page: SpentPage): Promise<readonly Spent[]> {
    this.#requireOpen();
    return this.#calls.spentPage(endingAfter, page);
  }

  async usage(query: UsageQuery): Promise<readonly UsageRow[]> {
    this.#requireOpen();
    return this.#calls.usage(query);
  }

  async series(query: SeriesQuery): Promise<readonly SeriesRow[]> {
    this.#requireOpen();
    return this.#calls.series(query);
  }

  async sampleLatency(query: LatencyQuery): Promise<LatencySamples> {
    this.#requireOpen();
    return this.#calls.sampleLatency(query);
  }

  async listCalls(query: CallQuery): Promise<CallPage> {
    this.#requireOpen();
    return this.#calls.list(query);
  }

  async findCall(id: string): Promise<CallRow | undefined> {
    this.#requireOpen();
    return this.#calls.find(id);
  }

  async prune(retention: Retention, most: number): Promise<number> {
    this.#requireOpen();
    return this.#calls.prune(retention, most);
  }

  async backup(): Promise<void> {
    throw new StoreError('failed', 'The store is in memory: there is no file to copy.');
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  async #apply(change: NotedChange): Promise<boolean> {
    switch (change.op) {
      case 'addKey':
        await this.addKey(change.record);
        return true;
      case 'replaceKey':
        return this.replaceKey(change.record);
      case 'revokeKey':
        return this.revokeKey(change.id, change.at);
      case 'putPolicy':
        await this.putPolicy(change.policy);
        return true;
      case 'deletePolicy':
        return this.deletePolicy(change.kind, change.name);
    }
  }

  #requireOpen(): void {
    if (this.#closed) throw new StoreError('closed', 'The store is closed.');
  }
}
