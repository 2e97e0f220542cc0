/**
 * How far the audit log went, in a file outside the store. Entries that are cut off at the end break no hash
 * chain and show only here (S24). Each gateway keeps its own file, also when several share a database.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { tryParseObject } from '../json/parse.ts';

/** A recorded entry. */
export interface AnchoredEntry {
  readonly seq: number;
  readonly hash: string;
}

export interface AuditAnchor {
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
