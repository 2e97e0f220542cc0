/**
 * Finished calls that the server cannot take now, on the disk of this instance (F88): appended to files,
 * synced, and handed over in their order when the server is back, at the latest after the next start.
 * Handing over twice does no harm: the ledger has each id once.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { open, readFile, rename, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../core/runtime.ts';
import type { CallRow } from '../calls.ts';
import { makeDirectories } from '../data-dir.ts';
import { callText, readCallText } from '../call-rows.ts';
import { recordSeparately } from '../refused-rows.ts';
import { StoreError } from '../store-error.ts';

export interface SpoolOptions {
  /** Made where it is missing, 0700 (S25). */
  readonly directory: string;
  readonly log: Log;
  /** Most rows that it takes; F88 when absent. */
  readonly maxRows?: number;
}

const mostRowsOfF88 = 100_000;
const rowsOfFile = 5000;
const rowsAtOnce = 500;
const fileForm = /^\d{10}\.jsonl$/;

interface SpoolFile {
  readonly path: string;
  rows: number;
}

interface OpenFile {
  readonly file: SpoolFile;
  readonly handle: FileHandle;
}

export class Spool {
  readonly #directory: string;
  readonly #log: Log;
  readonly #maxRows: number;
  /** Oldest first; the last one may be open. */
  readonly #files: SpoolFile[] = [];
  #open: OpenFile | undefined;
  #last = 0;
  /** One thing at a time: appends and the ends of files. */
  #busy: Promise<unknown> = Promise.resolve();
  #draining: Promise<void> | undefined;

  /** Counts what an earlier process left. @throws the system's error. */
  constructor(options: SpoolOptions) {
    this.#directory = options.directory;
    this.#log = options.log;
    this.#maxRows = options.maxRows ?? mostRowsOfF88;
    makeDirectories(this.#directory);
    for (const name of readdirSync(this.#directory)
      .filter((each) => fileForm.test(each))
      .sort()) {
      const path = join(this.#directory, name);
      this.#files.push({ path, rows: linesOf(readFileSync(path, 'utf8')).length });
      this.#last = Number.parseInt(name, 10);
    }
  }

  /** Rows that the ledger does not have yet. */
  get rows(): number {
    return this.#files.reduce((sum, { rows }) => sum + rows, 0);
  }

  /** Resolves when the rows are on the disk. @throws StoreError `full` when they are not taken. */
  append(rows: readonly CallRow[]): Promise<void> {
    return this.#inTurn(() => this.#append(rows));
  }

  /**
   * Hands everything over that is here now; two at once are one. What was taken is removed.
   * @throws what `write` throws; the rest stays.
   */
  drain(write: (rows: readonly CallRow[]) => Promise<void>): Promise<void> {
    this.#draining ??= this.#drain(write).finally(() => {
      this.#draining = undefined;
    });
    return this.#draining;
  }

  async close(): Promise<void> {
    await this.#draining?.catch(() => undefined);
    await this.#inTurn(() => this.#endFile());
  }

  async #append(rows: readonly CallRow[]): Promise<void> {
    if (this.rows + rows.length > this.#maxRows) {
      throw new StoreError(
        'full',
        `${this.#directory} holds ${this.rows} calls; it takes no more.`,
      );
    }
    try {
      const { file, handle } = (this.#open ??= await this.#newFile());
      await handle.appendFile(rows.map((row) => `${callText(row)}\n`).join(''));
      await handle.datasync();
      file.rows += rows.length;
      if (file.rows >= rowsOfFile) await this.#endFile();
    } catch (cause) {
      // Half of it may be there; the rows come again, and the ledger takes each once.
      await this.#endFile().catch(() => undefined);
      throw new StoreError(
        'full',
        `${this.#directory}: ${cause instanceof Error ? cause.message : 'it cannot be written'}`,
        cause,
      );
    }
  }

  async #newFile(): Promise<OpenFile> {
    this.#last += 1;
    const path = join(this.#directory, `${String(this.#last).padStart(10, '0')}.jsonl`);
    const handle = await open(path, 'ax', 0o600);
    const file: SpoolFile = { path, rows: 0 };
    this.#files.push(file);
    return { file, handle };
  }

  async #endFile(): Promise<void> {
    const { handle } = this.#open ?? {};
    this.#open = undefined;
    await handle?.close();
  }

  async #drain(write: (rows: readonly CallRow[]) => Promise<void>): Promise<void> {
    await this.#inTurn(() => this.#endFile());
    const until = this.#last;
    for (;;) {
      const [file] = this.#files;
      if (
        file === undefined ||
        Number.parseInt(file.path.slice(-'0000000000.jsonl'.length), 10) > until
      )
        return;
      await this.#handOver(file, write);
      this.#files.splice(this.#files.indexOf(file), 1);
    }
  }

  async #handOver(
    { path }: SpoolFile,
    write: (rows: readonly CallRow[]) => Promise<void>,
  ): Promise<void> {
    const { rows, unread } = readRows(await readFile(path, 'utf8'));
    let lines = unread;
    let reason = 'lines that are not calls';
    for (let from = 0; from < rows.length; from += rowsAtOnce) {
      const refused = await recordSeparately(rows.slice(from, from + rowsAtOnce), write);
      lines += refused.length;
      reason = refused[0]?.reason ?? reason;
    }
    if (lines === 0) await rm(path);
    else {
      // Only a person can decide what to do with an unreadable spool.
      await rename(path, `${path}.unread`);
      this.#log.error('spool_unreadable', { path: `${path}.unread`, lines, reason });
    }
    this.#log.info('spool_written', { rows: rows.length + unread - lines });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#busy.then(work);
    this.#busy = done.catch(() => undefined);
    return done;
  }
}

function readRows(text: string): { readonly rows: readonly CallRow[]; readonly unread: number } {
  const rows: CallRow[] = [];
  let unread = 0;
  for (const line of linesOf(text)) {
    try {
      rows.push(readCallText(line));
    } catch {
      unread += 1;
    }
  }
  return { rows, unread };
}

/** Bytes after the last line end were being written when the process died and are ignored. */
function linesOf(text: string): readonly string[] {
  return text.split('\n').slice(0, -1);
}
