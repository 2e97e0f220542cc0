/** Reports when a file of the config has changed. */
import { realpathSync, statSync, unwatchFile, watch, watchFile, type FSWatcher } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Editors write in several steps; one edit is one call. */
const settleMs = 100;
const pollMs = 2000;

/**
 * Calls `onChange` once after each edit of a file. Watches directories, not the file: editors and
 * Kubernetes replace files and links instead of writing into them. A file that does not exist yet is
 * waited for; one that disappears is not a change (many editors save that way). Does not keep the
 * process alive.
 */
export class ConfigWatch {
  readonly #onChange: () => void;
  readonly #watched = new Map<string, WatchedFile>();
  #closed = false;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /**
   * Watches these files, and no others. @param files absolute paths
   * @param read fingerprints from before files were read: a change since then is reported. Default: as they are now
   */
  follow(files: readonly string[], read: Fingerprints = new Map()): void {
    if (this.#closed) return;
    for (const [file, watched] of this.#watched) {
      if (files.includes(file)) continue;
      watched.close();
      this.#watched.delete(file);
    }
    for (const file of files) {
      if (this.#watched.has(file)) continue;
      const seen = read.has(file) ? read.get(file) : fingerprint(file);
      this.#watched.set(file, new WatchedFile(file, { seen, onChange: this.#onChange }));
    }
  }

  close(): void {
    this.follow([]);
    this.#closed = true;
  }
}

/** Of files by path; undefined: the file did not exist. */
export type Fingerprints = ReadonlyMap<string, string | undefined>;

interface WatchedHow {
  /** Undefined: the file was not there. */
  readonly seen: string | undefined;
  readonly onChange: () => void;
}

class WatchedFile {
  readonly #file: string;
  readonly #onChange: () => void;
  readonly #watchers = new Map<string, FSWatcher>();
  /** Of the file itself and of the one it leads to. */
  #names: ReadonlySet<string> = new Set();
  #seen: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #polls = false;
  #closed = false;

  constructor(file: string, { seen, onChange }: WatchedHow) {
    this.#file = file;
    this.#onChange = onChange;
    this.#seen = seen;
    this.#watchDirectories();
    this.#settle();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
    if (this.#polls) unwatchFile(this.#file, this.#settle);
  }

  /** The directory of the name, and that of the file it leads to. */
  #watchDirectories(): void {
    const real = realPath(this.#file);
    this.#names = new Set([basename(this.#file), basename(real)]);
    const wanted = new Set([dirname(this.#file), dirname(real)]);
    for (const [directory, watcher] of this.#watchers) {
      if (wanted.has(directory)) continue;
      watcher.close();
      this.#watchers.delete(directory);
    }
    for (const directory of wanted) {
      if (!this.#watchers.has(directory)) this.#watch(directory);
    }
  }

  #watch(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, (_, name) => this.#heard(name));
      watcher.on('error', () => this.#poll());
      this.#watchers.set(directory, watcher);
    } catch {
      this.#poll();
    }
  }

  /** Where the system has no watches left, or the directory cannot be watched. */
  #poll(): void {
    if (this.#polls || this.#closed) return;
    this.#polls = true;
    watchFile(this.#file, { persistent: false, interval: pollMs }, this.#settle);
  }

  /**
   * An entry of another name, or of a name that the system does not say, may be a link on the way to the file, or a log
   * that is written all the time: it never puts off a look that is due.
   */
  #heard(name: string | null): void {
    if (this.#timer === undefined || (name !== null && this.#names.has(name))) this.#settle();
  }

  readonly #settle = (): void => {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), settleMs);
    this.#timer.unref();
  };

  #look(): void {
    this.#timer = undefined;
    const found = fingerprint(this.#file);
    if (found === undefined || found === this.#seen) return;
    this.#seen = found;
    this.#watchDirectories();
    this.#onChange();
  }
}

/** Changes whenever the content may have changed; undefined when there is no file to see. */
export function fingerprint(file: string): string | undefined {
  try {
    const { ino, size, mtimeNs } = statSync(file, { bigint: true });
    return `${ino} ${size} ${mtimeNs}`;
  } catch {
    return undefined;
  }
}

function realPath(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
