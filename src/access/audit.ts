/**
 * The audit log: who changed what (S24). Entries contain no secret and no digest. The store chains them by
 * hashes, each entry is also logged with its hash, and the newest hash is kept outside the store, so that a
 * truncated log is detected.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { JsonObject } from '../json/value.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { brokenAt, type AuditEntry, type AuditRecord, type NotedChange } from '../store/records.ts';
import type { AuditStore } from '../store/store.ts';
import { tryParseObject } from '../json/parse.ts';

/** The author of a change. */
export interface Actor {
  /**
   * `admin`: the admin token; `command`: the command line on this machine; `config`, `start`; `person:` and the id of a
   * person who signed in.
   */
  readonly name: 'admin' | 'command' | 'config' | 'start' | `person:${string}`;
  /** Client address of the request. */
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

export interface AuditLogDeps {
  readonly store: AuditStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Records the newest entry; absent if it is recorded nowhere. */
  readonly anchor?: AuditAnchor;
}

/** Result of verifying the whole log. */
export interface AuditCheck {
  readonly entries: number;
  /** The first entry that does not match its hash. */
  readonly brokenAt?: number;
  /** A recorded entry that is missing or different: the end of the log was cut off or replaced. */
  readonly missing?: AnchoredEntry;
  /** Hash of the last entry: keep it elsewhere to detect later that entries after it were removed. */
  readonly head?: string;
}

const checkAtOnce = 1000;

export class AuditLog {
  readonly #deps: AuditLogDeps;
  /** `seq` of the newest entry that is recorded outside the store. */
  #seen = 0;

  constructor(deps: AuditLogDeps) {
    this.#deps = deps;
  }

  /**
   * Logs a change that was made outside the store.
   * @throws StoreError: the change holds nevertheless; the log has the entry.
   */
  async note(change: Change): Promise<void> {
    const entry = this.#entryOf(change);
    await this.#write(entry, () => this.#deps.store.append(entry));
  }

  /**
   * Changes the store and logs the change, both or neither.
   * @returns false when the change was refused; nothing is written then.
   * @throws StoreError: the log has the entry, since the change may be in effect here (S6).
   */
  async change(change: NotedChange, summary: Change): Promise<boolean> {
    const entry = this.#entryOf(summary);
    return this.#write(entry, () => this.#deps.store.change(change, entry));
  }

  #entryOf({ actor, action, subject, before, after }: Change): AuditEntry {
    return {
      at: this.#deps.clock.wall(),
      actor: actor.name,
      ...(actor.ip === undefined ? {} : { ip: actor.ip }),
      action,
      subject,
      ...(before === undefined ? {} : { before: JSON.stringify(before) }),
      ...(after === undefined ? {} : { after: JSON.stringify(after) }),
    };
  }

  async #write(entry: AuditEntry, write: () => Promise<AuditRecord | undefined>): Promise<boolean> {
    const { log } = this.#deps;
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
      // Each page is verified from the entry before it, which the next page begins with.
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
   * At the start: checks that the log still reaches as far as recorded. If not, this is logged and is itself an
   * entry; a restored backup looks the same. @throws StoreError
   */
  async checkEnd(): Promise<void> {
    const missing = await this.#missing();
    if (missing === undefined) {
      const newest = await this.#deps.store.newest();
      if (newest !== undefined) this.#anchored(newest);
      return;
    }
    this.#deps.log.error('audit_cut', { ...missing });
    this.#seen = 0;
    const change = { actor: { name: 'start' }, action: 'audit.cut', subject: 'audit' } as const;
    await this.note({ ...change, before: { ...missing } });
  }

  /** The recorded entry, if it is no longer in the log. */
  async #missing(): Promise<AnchoredEntry | undefined> {
    const known = this.#deps.anchor?.read();
    if (known === undefined) return undefined;
    const found = await this.#deps.store.newest(known.seq + 1);
    return found?.seq === known.seq && found.hash === known.hash ? undefined : known;
  }

  #anchored({ seq, hash }: AnchoredEntry): void {
    if (seq <= this.#seen) return;
    this.#seen = seq;
    this.#deps.anchor?.write({ seq, hash });
  }

  #page(before: number | undefined): Promise<readonly AuditRecord[]> {
    const { store } = this.#deps;
    return store.list({ limit: checkAtOnce, ...(before === undefined ? {} : { before }) });
  }
}

// How far the audit log went, in a file outside the store. Entries that are cut off at the end break no hash
// chain and show only here (S24). Each gateway has a file of its own, also when several share a database.

/** A recorded entry. */
interface AnchoredEntry {
  readonly seq: number;
  readonly hash: string;
}

interface AuditAnchor {
  /** The newest recorded entry; undefined = none was recorded yet, or the file is gone. */
  read(): AnchoredEntry | undefined;
  /** Never throws: an outdated anchor proves less, but nothing wrong. */
  write(entry: AnchoredEntry): void;
}

export class FileAnchor implements AuditAnchor {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  read(): AnchoredEntry | undefined {
    try {
      const { seq, hash } = tryParseObject(readFileSync(this.#path, 'utf8')) ?? {};
      return typeof seq === 'number' && typeof hash === 'string' ? { seq, hash } : undefined;
    } catch {
      return undefined;
    }
  }

  write({ seq, hash }: AnchoredEntry): void {
    const unfinished = `${this.#path}.${process.pid}.new`;
    try {
      writeFileSync(unfinished, `${JSON.stringify({ seq, hash })}\n`, { mode: 0o600 });
      renameSync(unfinished, this.#path);
    } catch {
      // The disk is full or read-only; the entry itself is in the store and in the log.
    }
  }
}
