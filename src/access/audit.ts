/**
 * Who changed what (S24). Entries hold no secret and no digest; the store chains them by hashes, and
 * each goes to the log with its hash, and the newest is noted beside the store, so that even a log cut at its
 * end shows.
 */
import type { JsonObject } from '../json/value.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { brokenAt, type AuditEntry, type AuditRecord, type NotedChange } from '../store/records.ts';
import type { AuditStore } from '../store/store.ts';
import type { AnchoredEntry, AuditAnchor } from './audit-anchor.ts';

/** Who acts. */
export interface Actor {
  /** `admin`: the admin token; `command`: the command line on this machine; `config`, `start`. */
  readonly name: 'admin' | 'command' | 'config' | 'start';
  /** Where a request came from. */
  readonly ip?: string;
}

export interface Change {
  readonly actor: Actor;
  /** Noun and verb: `key.create`. */
  readonly action: string;
  /** `key:a1b2c3d4` */
  readonly subject: string;
  readonly before?: JsonObject;
  readonly after?: JsonObject;
}

export interface AuditLogParts {
  readonly store: AuditStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Where the newest entry is noted; absent where there is no place for it. */
  readonly anchor?: AuditAnchor;
}

/** Whether the whole log is as it was written. */
export interface AuditCheck {
  readonly entries: number;
  /** The first entry that is not. */
  readonly brokenAt?: number;
  /** An entry that was there, and is not any more as it was: the end of the log was cut off or replaced. */
  readonly missing?: AnchoredEntry;
  /** Hash of the last entry: note it elsewhere to see later that none behind it was taken away. */
  readonly head?: string;
}

const checkAtOnce = 1000;

export class AuditLog {
  readonly #parts: AuditLogParts;
  /** `seq` of the newest entry that is noted beside the store. */
  #seen = 0;

  constructor(parts: AuditLogParts) {
    this.#parts = parts;
  }

  /**
   * Writes what was done outside of the store.
   * @throws StoreError: what was done holds all the same; the log has the entry.
   */
  async note(change: Change): Promise<void> {
    const entry = this.#entryOf(change);
    await this.#write(entry, () => this.#parts.store.append(entry));
  }

  /**
   * Changes the store and writes what was changed, both or neither.
   * @returns false when the change did not fit; nothing is written then.
   * @throws StoreError: the log has the entry, since what was asked for may hold here (S6).
   */
  async change(change: NotedChange, told: Change): Promise<boolean> {
    const entry = this.#entryOf(told);
    return this.#write(entry, () => this.#parts.store.change(change, entry));
  }

  #entryOf({ actor, action, subject, before, after }: Change): AuditEntry {
    return {
      at: this.#parts.clock.wall(),
      actor: actor.name,
      ...(actor.ip === undefined ? {} : { ip: actor.ip }),
      action,
      subject,
      ...(before === undefined ? {} : { before: JSON.stringify(before) }),
      ...(after === undefined ? {} : { after: JSON.stringify(after) }),
    };
  }

  async #write(entry: AuditEntry, write: () => Promise<AuditRecord | undefined>): Promise<boolean> {
    const { log } = this.#parts;
    try {
      const record = await write();
      if (record === undefined) return false;
      const { seq, actor, ip, action, subject, hash } = record;
      log.info('audit', { seq, actor, ip, action, subject, hash });
      this.#anchored({ seq, hash });
      return true;
    } catch (error) {
      log.error('audit_not_written', { ...entry });
      throw error;
    }
  }

  /** Reads the whole log, newest first, and proves the chain. @throws StoreError */
  async check(): Promise<AuditCheck> {
    let entries = 0;
    let head: string | undefined;
    let broken: number | undefined;
    const missing = await this.#missing();
    let page = await this.#page(undefined);
    while (page.length > 0) {
      head ??= page[0]?.hash;
      entries += page.length;
      const oldest = page.at(-1);
      const next = await this.#page(oldest?.seq);
      // Each page is proven from the entry before it, which the next page begins with.
      broken = brokenAt(page.toReversed(), next[0]) ?? broken;
      page = next;
    }
    return {
      entries,
      ...(broken === undefined ? {} : { brokenAt: broken }),
      ...(missing === undefined ? {} : { missing }),
      ...(head === undefined ? {} : { head }),
    };
  }

  /**
   * At a start: whether the log still reaches as far as it did. Where it does not, that is told in the
   * gateway's log and is an entry itself; a restored backup looks the same. @throws StoreError
   */
  async checkEnd(): Promise<void> {
    const missing = await this.#missing();
    if (missing === undefined) {
      const [newest] = await this.#page(undefined, 1);
      if (newest !== undefined) this.#anchored(newest);
      return;
    }
    this.#parts.log.error('audit_cut', { ...missing });
    this.#seen = 0;
    const change = { actor: { name: 'start' }, action: 'audit.cut', subject: 'audit' } as const;
    await this.note({ ...change, before: { ...missing } });
  }

  /** What was there as far as is known here, and is not. */
  async #missing(): Promise<AnchoredEntry | undefined> {
    const known = this.#parts.anchor?.read();
    if (known === undefined) return undefined;
    const [found] = await this.#page(known.seq + 1, 1);
    return found?.seq === known.seq && found.hash === known.hash ? undefined : known;
  }

  #anchored({ seq, hash }: AnchoredEntry): void {
    if (seq <= this.#seen) return;
    this.#seen = seq;
    this.#parts.anchor?.write({ seq, hash });
  }

  #page(before: number | undefined, limit = checkAtOnce): Promise<readonly AuditRecord[]> {
    const { store } = this.#parts;
    return store.list({ limit, ...(before === undefined ? {} : { before }) });
  }
}
