/**
 * The unfinished file of a download, and what must still hold when it is continued. The bytes are
 * appended only, so that a process that dies at any moment leaves a beginning of the file.
 */
import { type Hash, createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { type FileHandle, lstat, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { bytesText } from '../core/display.ts';
import { tryParseObject } from '../json/parse.ts';

// Small private files that are there as a whole or not at all.

/** Written to a new file first: the existing path may be a link to another file. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const unfinished = `${path}.new`;
  await rm(unfinished, { force: true });
  await writeFile(unfinished, text, { mode: 0o600, flag: 'wx' });
  await rename(unfinished, path);
}

const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants;
/** Windows knows no such flag. */
const appendHere = O_APPEND | O_CREAT | O_WRONLY | (O_NOFOLLOW ?? 0);

/** What was fetched from where; without it the bytes are worth nothing. */
export interface PartState {
  /** The hash that the whole file shall have, or the address. */
  readonly identity: string;
  /** As the server gave it. */
  readonly etag?: string;
  readonly bytes?: number;
}

export class PartFile {
  readonly path: string;
  #file: FileHandle | undefined;
  #hash: Hash = createHash('sha256');
  #length = 0;
  #state: PartState | undefined;

  /** @param destination where the whole file will be. */
  constructor(destination: string) {
    this.path = `${destination}.part`;
  }

  get length(): number {
    return this.#length;
  }

  get state(): PartState | undefined {
    return this.#state;
  }

  /** Opens what an earlier download of the same file left; starts an empty one where it left none. */
  async open(identity: string, onRead: (bytes: number) => void): Promise<void> {
    const state = await this.#readState();
    const found = await lstat(this.path).catch(() => undefined);
    // Through a link another file would be written over.
    if (found !== undefined && !found.isFile()) await rm(this.path, { force: true });
    const length = found?.isFile() === true ? found.size : 0;
    this.#file = await open(this.path, appendHere, 0o600);
    if (state?.identity !== identity) {
      await this.restart({ identity });
      return;
    }
    this.#state = state;
    for await (const piece of createReadStream(this.path)) {
      const bytes = Buffer.from(piece);
      this.#hash.update(bytes);
      this.#length += bytes.length;
      onRead(this.#length);
    }
    if (this.#length !== length) throw new PullError(`${this.path} is being written by another.`);
  }

  /** Throws the bytes away. */
  async restart(state: PartState): Promise<void> {
    await this.#opened().truncate(0);
    this.#length = 0;
    this.#hash = createHash('sha256');
    await this.describe(state);
  }

  async describe(state: PartState): Promise<void> {
    this.#state = state;
    await replaceFile(this.#statePath, `${JSON.stringify(state)}\n`);
  }

  /** @throws PullError when the disk takes no more; what it took stays. */
  async append(bytes: Buffer): Promise<void> {
    try {
      await this.#opened().appendFile(bytes);
    } catch (error) {
      throw diskError(error, this.path, this.#length);
    }
    this.#hash.update(bytes);
    this.#length += bytes.length;
  }

  /** Hex, of all bytes so far. */
  sha256(): string {
    return this.#hash.copy().digest('hex');
  }

  /** Brings the bytes to the disk and gives the file its name. */
  async finish(destination: string): Promise<void> {
    await this.#opened().sync();
    await this.close();
    await rename(this.path, destination);
    await rm(this.#statePath, { force: true });
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  async remove(): Promise<void> {
    await this.close();
    await rm(this.path, { force: true });
    await rm(this.#statePath, { force: true });
  }

  get #statePath(): string {
    return `${this.path}.json`;
  }

  #opened(): FileHandle {
    if (this.#file === undefined) throw new Error('the part file is not open');
    return this.#file;
  }

  async #readState(): Promise<PartState | undefined> {
    const text = await readFile(this.#statePath, 'utf8').catch(() => '');
    const { identity, etag, bytes } = tryParseObject(text) ?? {};
    if (typeof identity !== 'string') return undefined;
    return {
      identity,
      ...(typeof etag === 'string' ? { etag } : {}),
      ...(typeof bytes === 'number' ? { bytes } : {}),
    };
  }
}

function diskError(error: unknown, path: string, length: number): PullError {
  const code = codeOf(error);
  const why =
    code === 'ENOSPC' || code === 'EDQUOT' ? 'there is no space left' : `writing failed (${code})`;
  return new PullError(
    `${path}: ${why} after ${bytesText(length)}. The same command goes on from there.`,
    { cause: error },
  );
}

/** Why a model could not be fetched; the message says what was tried and what to do, and may be shown. */
export class PullError extends Error {
  /** Set where the same may well work a moment later. */
  readonly again: { readonly afterMs?: number } | undefined;

  constructor(message: string, options: { cause?: unknown; again?: { afterMs?: number } } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PullError';
    this.again = options.again;
  }
}

/** The system's code of an error, e.g. `ENOSPC`; '' when it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
