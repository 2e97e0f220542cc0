/**
 * What calls have taken off each lease, on the disk of the instance, so that the next process in the same data
 * directory can prove what a killed one had not spent (docs/decisions/0043-budget-leases.md).
 *
 * Each draw appends the new totals before its call is sent upstream. There is no sync: what was written survives
 * the end of a process, and a journal from before a restart of the machine proves nothing. The first line names the
 * boot and the file itself, so that a copy of the directory proves nothing either.
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
  type Stats,
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

/** What a dead instance left. A lease that it does not name was never taken from. */
export interface LeftJournal {
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
/** The file is written anew when it is so much larger than what it has to say. */
const slackBytes = 4_194_304;

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
  readonly left: readonly LeftJournal[];
  readonly #options: LeaseJournalOptions;
  readonly #path: string;
  #file: number | undefined;
  #bytes = 0;
  #limit = slackBytes;

  /** @throws the system's error where the directory cannot be made or read. */
  constructor(options: LeaseJournalOptions) {
    this.#options = options;
    const { directory, instance } = options;
    makeDirectories(directory);
    this.left = readLeft(options);
    this.#path = join(directory, `${instance}${suffix}`);
    this.#rewrite([]);
  }

  /**
   * Notes what leases have had taken since the last time. Never throws: a disk that fails ends the journal.
   * @param all every lease, asked for when the file has grown too long
   */
  note(leases: readonly TakenLease[], all: () => Iterable<TakenLease>): void {
    if (this.#file === undefined) return;
    if (this.#bytes > this.#limit) return this.#rewrite(all());
    try {
      this.#bytes += writeSync(this.#file, linesOf(leases));
    } catch (error) {
      this.#end(error);
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #rewrite(leases: Iterable<TakenLease>): void {
    const { boot } = this.#options;
    if (boot === undefined) return;
    const unfinished = `${this.#path}.new`;
    const before = this.#file;
    try {
      this.#file = openSync(unfinished, 'w', 0o600);
      const head = `${JSON.stringify([boot, nameOf(fstatSync(this.#file))])}\n`;
      this.#bytes = writeSync(this.#file, head + linesOf(leases));
      this.#limit = this.#bytes + slackBytes;
      renameSync(unfinished, this.#path);
    } catch (error) {
      this.#end(error);
    }
    if (before !== undefined) closeSync(before);
  }

  /** A journal that lacks a draw would prove what is not so. */
  #end(error: unknown): void {
    const { log } = this.#options;
    log.warn('lease_journal_failed', { path: this.#path, reason: String(error) });
    try {
      if (this.#file !== undefined) ftruncateSync(this.#file);
    } catch {
      // The file goes all the same.
    }
    this.close();
    rmSync(this.#path, { force: true });
  }
}

function linesOf(leases: Iterable<TakenLease>): string {
  let lines = '';
  for (const { counter, window, taken } of leases) {
    lines += `${JSON.stringify([counter, window, taken])}\n`;
  }
  return lines;
}

function nameOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}

function readLeft({ directory, boot }: LeaseJournalOptions): readonly LeftJournal[] {
  const left: LeftJournal[] = [];
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    const leases = name.endsWith(suffix) ? readJournal(path, boot) : undefined;
    const remove = (): void => rmSync(path, { force: true });
    if (leases === undefined) remove();
    else left.push({ instance: name.slice(0, -suffix.length), leases, remove });
  }
  return left;
}

/** @returns undefined where it proves nothing. */
function readJournal(path: string, boot: string | undefined): readonly TakenLease[] | undefined {
  const file = openSync(path, 'r');
  try {
    // Bytes behind the last line end belong to a draw whose call was never sent.
    const [head, ...lines] = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    const name = nameOf(fstatSync(file));
    if (boot === undefined || head !== JSON.stringify([boot, name])) return undefined;
    const leases = new Map<string, TakenLease>();
    for (const line of lines) {
      const [counter, window, taken] = parseOwn<[string, string, number]>(line);
      leases.set(`${counter}|${window}`, { counter, window, taken });
    }
    return [...leases.values()];
  } finally {
    closeSync(file);
  }
}
