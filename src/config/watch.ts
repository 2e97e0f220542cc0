/** Reports when a file of the config has changed. */
import { realpathSync, statSync, unwatchFile, watch, watchFile, type FSWatcher } from 'node:fs';
import { dirname } from 'node:path';

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

  /** Watches these files, and no others. @param files absolute paths */
  follow(files: readonly string[]): void {
    if (this.#closed) return;
    for (const [file, watched] of this.#watched) {
      if (files.includes(file)) continue;
      watched.close();
      this.#watched.delete(file);
    }
    for (const file of files) {
      if (!this.#watched.has(file)) this.#watched.set(file, new WatchedFile(file, this.#onChange));
    }
  }

  close(): void {
    this.follow([]);
    this.#closed = true;
  }
}

class WatchedFile {
  readonly #file: string;
  readonly #onChange: () => void;
  readonly #watchers = new Map<string, FSWatcher>();
  #seen: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #polls = false;
  #closed = false;

  constructor(file: string, onChange: () => void) {
    this.#file = file;
    this.#onChange = onChange;
    this.#seen = fingerprint(file);
    this.#watchDirectories();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
    if (this.#polls) unwatchFile(this.#file, this.#settle);
  }

  /** The directory of the name, and that of the file it leads to. */
  #watchDirectories(): void {
    const wanted = new Set([dirname(this.#file), dirname(realPath(this.#file))]);
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
      const watcher = watch(directory, { persistent: false }, this.#settle);
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

  readonly #settle = (): void => {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), settleMs);
    this.#timer.unref();
  };

  #look(): void {
    const found = fingerprint(this.#file);
    if (found === undefined || found === this.#seen) return;
    this.#seen = found;
    this.#watchDirectories();
    this.#onChange();
  }
}

/** Changes whenever the content may have changed; undefined when there is no file to see. */
function fingerprint(file: string): string | undefined {
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
