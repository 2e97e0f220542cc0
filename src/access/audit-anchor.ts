/**
 * How far the audit log went, in a file beside the store: entries that are cut off at its end break no chain,
 * and are missed by this (S24). It is this gateway's own knowledge; of several on one book each has one.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { tryParseObject } from '../json/parse.ts';

/** An entry that was there. */
export interface AnchoredEntry {
  readonly seq: number;
  readonly hash: string;
}

export interface AuditAnchor {
  /** The newest entry that is known; undefined = none was noted yet, or the file is gone. */
  read(): AnchoredEntry | undefined;
  /** Never throws: an anchor that is behind proves less, and nothing wrong. */
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
