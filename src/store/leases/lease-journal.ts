/**
 * The amounts that calls have taken off each lease, on the disk of the instance, so that the next process in the same data
 * directory can prove the unspent amount of a killed one (docs/decisions/0043-budget-leases.md).
 *
 * Each reservation writes the new totals before its call is sent upstream. There is no sync: written bytes survive
 * the end of a process, and a journal from before a restart of the machine proves nothing. The first line names the
 * boot and the file itself, so that a copy of the directory proves nothing either.
 *
 * Each lease has one line, and its total is overwritten in it: that costs half of what an appended line costs. Lines are
 * whole blocks, and a total lies in the last block of its line, so that it never crosses a page: a kill between two pages
 * is the only way to write a part of it.
 */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../core/runtime.ts';
import { parseOwn } from '../../json/parse.ts';
import { makeDirectories } from '../data-dir.ts';

/** Nanodollars that calls have taken off one lease since it began, net of what they gave back. */
export interface TakenLease {
  readonly counter: string;
  readonly window: string;
  readonly taken: number;
}

/** The journal of a dead instance. A lease that it does not name was never used. */
export interface OrphanedJournal {
  readonly instance: string;
  readonly leases: readonly TakenLease[];
  /** Removes it, once it has served. */
  remove(): void;
}

export interface LeaseJournalOptions {
  /** Of this data directory alone; made where it is missing. */
  readonly directory: string;
  readonly instance: string;
  readonly log: Log;
  /** Names the time since the machine started; undefined = unknown, and no journal is kept. */
  readonly boot: string | undefined;
}

const suffix = '.journal';
/** The excess size at which the file is rewritten. */
const slackBytes = 4_194_304;
/** A line is a multiple of it, and a page is too. */
const blockBytes = 64;
/** The longest text of a number. */
const totalLength = 24;
const lineEnd = ']\n';

/** The kernel's name of this boot; undefined on systems without one. */
export function bootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return undefined;
  }
}

export class LeaseJournal {
  /** Journals of processes that ran in this directory before. Its lock says that they are dead. */
  readonly left: readonly OrphanedJournal[];
  readonly #options: LeaseJournalOptions;
  readonly #path: string;
  #file: number | undefined;
  #bytes = 0;
  #limit = slackBytes;
  /** Where the total of each lease is in the file. */
  #positions = new WeakMap<TakenLease, number>();
  #isStuck = false;

  /** @throws the system's error where the directory cannot be made or read. */
  constructor(options: LeaseJournalOptions) {
    this.#options = options;
    const { directory, instance } = options;
    makeDirectories(directory);
    this.left = readOrphaned(options);
    this.#path = join(directory, `${instance}${suffix}`);
    this.#rewrite([]);
  }

  /**
   * Whether calls may reserve from leases: not while the disk holds a journal that lacks reservations and cannot be
   * removed, since it would prove a wrong amount. Each call tries to remove it.
   */
  mayReserve(): boolean {
    if (this.#isStuck) this.#isStuck = !attempt(() => rmSync(this.#path, { force: true }));
    return !this.#isStuck;
  }

  /**
   * Notes what a lease has had taken. Never throws: a disk that fails ends the journal.
   * @param lease the same object each time; another one of that name counts instead of it
   * @param all every lease, requested when the file has grown too long
   */
  note(lease: TakenLease, all: () => Iterable<TakenLease>): void {
    const file = this.#file;
    if (file === undefined) return;
    try {
      const position = this.#positions.get(lease);
      if (position !== undefined) write(file, totalOf(lease), position);
      else if (this.#bytes > this.#limit) this.#rewrite(all());
      else this.#append(file, [lease]);
    } catch (error) {
      this.#end(error);
    }
  }

  #append(file: number, leases: Iterable<TakenLease>): void {
    const start = this.#bytes;
    let lines = '';
    for (const lease of leases) {
      const { counter, window } = lease;
      const names = `${JSON.stringify([counter, window]).slice(0, -1)},`;
      const line = lineOf(names, totalOf(lease) + lineEnd);
      lines += line;
      this.#bytes += Buffer.byteLength(line);
      this.#positions.set(lease, this.#bytes - lineEnd.length - totalLength);
    }
    write(file, lines, start);
  }

  close(): void {
    const file = this.#file;
    this.#file = undefined;
    if (file !== undefined) closeSync(file);
  }

  #rewrite(leases: Iterable<TakenLease>): void {
    const { boot } = this.#options;
    if (boot === undefined) return;
    const unfinished = `${this.#path}.new`;
    let file: number | undefined;
    try {
      file = openSync(unfinished, 'w', 0o600);
      const head = headOf(boot, file);
      write(file, head, 0);
      this.#bytes = Buffer.byteLength(head);
      this.#positions = new WeakMap();
      this.#append(file, leases);
      this.#limit = this.#bytes + slackBytes;
      renameSync(unfinished, this.#path);
    } catch (error) {
      if (file !== undefined) closeSync(file);
      return this.#end(error);
    }
    this.close();
    this.#file = file;
  }

  /** A journal that lacks a reservation would prove a wrong amount. */
  #end(error: unknown): void {
    const { log } = this.#options;
    const file = this.#file;
    const isEmptied = file === undefined || attempt(() => ftruncateSync(file));
    const isRemoved = attempt(() => rmSync(this.#path, { force: true }));
    attempt(() => this.close());
    this.#isStuck = !isEmptied && !isRemoved;
    const fields = { path: this.#path, reason: String(error) };
    if (this.#isStuck) log.error('lease_journal_stuck', fields);
    else log.warn('lease_journal_failed', fields);
  }
}

/** @returns whether it could be done */
function attempt(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

/** @throws the system's error, also where a full disk takes only a part. */
function write(file: number, text: string, position: number): void {
  if (writeSync(file, text, position) !== Buffer.byteLength(text)) {
    throw new Error('The disk took only a part of a line.');
  }
}

function totalOf({ taken }: TakenLease): string {
  return String(taken).padStart(totalLength);
}

/** A line of whole blocks. */
function lineOf(start: string, end: string): string {
  const length = Buffer.byteLength(start) + end.length;
  return start + ' '.repeat(-length & (blockBytes - 1)) + end;
}

/**
 * Names the boot and the file. Its creation time distinguishes it from a copy that got the same inode number after it
 * was deleted; 0 where the file system does not know it.
 */
function headOf(boot: string, file: number): string {
  const { dev, ino, birthtimeNs } = fstatSync(file, { bigint: true });
  return lineOf(`[${JSON.stringify(boot)},`, `"${dev}:${ino}:${birthtimeNs}"]\n`);
}

function readOrphaned(options: LeaseJournalOptions): readonly OrphanedJournal[] {
  const { directory, log } = options;
  const left: OrphanedJournal[] = [];
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    const remove = (): void => {
      // A journal that is used twice gives nothing back the second time.
      attempt(() => rmSync(path, { force: true }));
    };
    try {
      const leases = name.endsWith(suffix) ? readJournal(path, options.boot) : undefined;
      if (leases === undefined) remove();
      else left.push({ instance: name.slice(0, -suffix.length), leases, remove });
    } catch (error) {
      log.warn('lease_journal_failed', { path, reason: String(error) });
      remove();
    }
  }
  return left;
}

/**
 * @returns undefined where it proves nothing.
 * @throws an error where it cannot be read, or a line of it
 */
function readJournal(path: string, boot: string | undefined): readonly TakenLease[] | undefined {
  const file = openSync(path, 'r');
  try {
    // Bytes after the last line end belong to a reservation whose call was never sent.
    const [head, ...lines] = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    if (boot === undefined || `${head}\n` !== headOf(boot, file)) return undefined;
    const leases = new Map<string, TakenLease>();
    for (const line of lines) {
      const [counter, window, taken] = parseOwn<[string, string, number]>(line);
      if (!Number.isSafeInteger(taken)) throw new Error(`"${line}" is no line of it`);
      leases.set(`${counter}|${window}`, { counter, window, taken });
    }
    return [...leases.values()];
  } finally {
    closeSync(file);
  }
}
