/**
 * Fetches one file over HTTP into a part file. A cut connection is taken up again where it broke off;
 * a part file of an earlier run likewise, if the server still has the same file:
 *
 *   206 with our range, size and validator → goes on;   200, or anything else about the file → anew
 *   cut, 408, 429, 5xx → again after a pause;           other answers → the error
 */
import type { IncomingHttpHeaders } from 'node:http';
import { beginsAsGguf } from './gguf.ts';
import type { PartFile } from './part-file.ts';
import { bytesText } from '../core/display.ts';
import { codeOf, PullError } from './pull-error.ts';
import type { Web, WebAnswer } from './web.ts';

export interface DownloadTask {
  readonly url: URL;
  /** Hex; what the file must have, if that is known beforehand. */
  readonly sha256?: string;
  /** What the file must have, if that is known beforehand. */
  readonly bytes?: number;
}

export interface DownloadParts {
  readonly web: Web;
  readonly part: PartFile;
  /** @throws PullError when the disk has not enough free space. */
  requireSpace(bytes: number): Promise<void>;
  sleep(ms: number): Promise<void>;
  progress(bytes: number, total: number | undefined): void;
  /** One sentence for the person who waits. */
  note(text: string): void;
}

export interface Downloaded {
  /** The hash that the server named for the file, if it did. */
  readonly namedSha256?: string;
}

const maxRestarts = 3;
/** Pauses between tries that bring nothing; any progress begins the count anew. */
const pausesMs: readonly number[] = [1000, 2000, 5000, 10_000, 20_000];
const longestPauseMs = 120_000;
const spareBytes = 64 * 2 ** 20;

/** @throws PullError when the file cannot be had; the part file stays and can be gone on with. */
export async function download(task: DownloadTask, parts: DownloadParts): Promise<Downloaded> {
  const running = new Download(task, parts);
  let failures = 0;
  for (;;) {
    const before = parts.part.length;
    try {
      return await running.attempt();
    } catch (error) {
      if (!(error instanceof PullError) || error.again === undefined) throw error;
      if (parts.part.length > before) failures = 0;
      const pauseMs = error.again.afterMs ?? pausesMs[failures];
      if (pauseMs === undefined || pauseMs > longestPauseMs || failures >= pausesMs.length) {
        throw error;
      }
      failures += 1;
      parts.note(`${firstLine(error.message)} Going on in ${Math.ceil(pauseMs / 1000)} s.`);
      await parts.sleep(pauseMs);
    }
  }
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? text;
}

class Download {
  readonly #task: DownloadTask;
  readonly #parts: DownloadParts;
  #restarts = 0;

  constructor(task: DownloadTask, parts: DownloadParts) {
    this.#task = task;
    this.#parts = parts;
  }

  /** One request, and as much of the file as it brings. */
  async attempt(): Promise<Downloaded> {
    const { web } = this.#parts;
    if (this.#isDone()) return {};
    const answer = await web.get(this.#task.url, this.#rangeHeaders());
    const { status, linked } = answer;
    const named = linked.sha256 === undefined ? {} : { namedSha256: linked.sha256 };
    if (status === 416 && (await this.#isWhole(answer))) return named;
    if (status === 416 || (status === 206 && !this.#goesOn(answer))) {
      await answer.body.dump().catch(() => {});
      await this.#restart('The file on the server is another now, or may be.');
      return this.attempt();
    }
    if (status !== 200 && status !== 206) throw await web.refused(answer);
    await this.#receive(answer, await this.#begin(answer));
    return named;
  }

  /** Everything is there but the last step: a process died between the two. */
  #isDone(): boolean {
    const { sha256, bytes } = this.#task;
    return sha256 !== undefined && bytes !== undefined && this.#parts.part.length === bytes;
  }

  #rangeHeaders(): { readonly [name: string]: string } {
    const { length, state } = this.#parts.part;
    if (length === 0) return {};
    const { etag } = state ?? {};
    // A weak validator is not for ranges; it is compared when the answer is there.
    const isStrong = etag !== undefined && etag.startsWith('"');
    return { range: `bytes=${length}-`, ...(isStrong ? { 'if-range': etag } : {}) };
  }

  /** Whether a 206 continues the bytes that are there. */
  #goesOn({ headers }: WebAnswer): boolean {
    const { length, state } = this.#parts.part;
    const range = rangeOf(headers);
    if (range?.start !== length) return false;
    if (state?.bytes !== undefined && range.total !== undefined && state.bytes !== range.total) {
      return false;
    }
    const etag = validatorOf(headers);
    if (state?.etag !== undefined && etag !== undefined) return state.etag === etag;
    // Nothing says that it is the same file: only a hash that is checked at the end makes that safe.
    return this.#task.sha256 !== undefined;
  }

  /** After 416: whether nothing was missing any more. */
  async #isWhole({ headers, body }: WebAnswer): Promise<boolean> {
    const { length, state } = this.#parts.part;
    const total = /^bytes \*\/(\d{1,15})$/.exec(String(headers['content-range'] ?? ''))?.[1];
    const expected = this.#task.bytes ?? state?.bytes;
    const isWhole = length > 0 && Number(total) === length && (expected ?? length) === length;
    if (isWhole) await body.dump().catch(() => {});
    return isWhole;
  }

  async #restart(why: string): Promise<void> {
    const { part, note } = this.#parts;
    this.#restarts += 1;
    if (this.#restarts > maxRestarts) {
      throw new PullError(`${why} The download began anew too often; try later.`);
    }
    if (part.length > 0) note(`${why} The download starts again.`);
    await part.restart({ identity: part.state?.identity ?? '' });
  }

  /** Checks what is known before the body. @returns the size of the whole file. */
  async #begin(answer: WebAnswer): Promise<number | undefined> {
    const { part, requireSpace } = this.#parts;
    const { status, headers } = answer;
    if (headers['content-encoding'] !== undefined) {
      throw new PullError(`${answer.place} sends the file compressed, which was not asked for.`);
    }
    const etag = validatorOf(headers);
    if (status === 200 && part.length > 0) {
      const isSame = etag !== undefined && part.state?.etag === etag;
      await this.#restart(
        isSame
          ? 'The server cannot go on in the middle of a file.'
          : 'The file on the server is another now.',
      );
    }
    const bytes = this.#sizeOf(answer);
    if (bytes !== undefined) await requireSpace(bytes - part.length + spareBytes);
    await part.describe({
      identity: part.state?.identity ?? '',
      ...(etag === undefined ? {} : { etag }),
      ...(bytes === undefined ? {} : { bytes }),
    });
    return bytes;
  }

  #sizeOf({ status, headers, linked, place }: WebAnswer): number | undefined {
    const total = status === 206 ? rangeOf(headers)?.total : lengthOf(headers);
    const expected = this.#task.bytes ?? linked.bytes;
    if (expected !== undefined && total !== undefined && expected !== total) {
      throw new PullError(`${place} has ${total} bytes; ${expected} were announced.`);
    }
    return total ?? expected;
  }

  async #receive({ body, place }: WebAnswer, total: number | undefined): Promise<void> {
    const { part, progress } = this.#parts;
    progress(part.length, total);
    try {
      for await (const piece of body) {
        const bytes = Buffer.from(piece);
        if (part.length === 0) requireGguf(bytes, place);
        if (total !== undefined && part.length + bytes.length > total) {
          throw new PullError(`${place} sends more than the ${total} bytes it announced.`);
        }
        await part.append(bytes);
        progress(part.length, total);
      }
    } catch (error) {
      if (error instanceof PullError) throw error;
      throw cutOff({ place, length: part.length, total, error });
    }
    if (total !== undefined && part.length < total) {
      throw cutOff({ place, length: part.length, total, error: undefined });
    }
  }
}

/** The first piece of a body is at least four bytes long wherever that can tell anything. */
function requireGguf(bytes: Buffer, place: string): void {
  if (bytes.length < 4 || beginsAsGguf(bytes)) return;
  const isPage = /^\s*<(!doctype|html)/i.test(bytes.toString('latin1', 0, 64));
  throw new PullError(
    `${place} is ${isPage ? 'a web page' : 'no GGUF file'}. Give the address of the file itself.`,
  );
}

function cutOff(cut: {
  readonly place: string;
  readonly length: number;
  readonly total: number | undefined;
  readonly error: unknown;
}): PullError {
  const { place, length, total, error } = cut;
  const code = codeOf(error);
  const of = total === undefined ? '' : ` of ${bytesText(total)}`;
  const why = code === 'UND_ERR_BODY_TIMEOUT' ? 'fell silent' : 'was cut';
  return new PullError(
    `The connection to ${new URL(place).host} ${why} after ${bytesText(length)}${of}${code === '' ? '' : ` (${code})`}.\nThe same command goes on from there.`,
    { cause: error, again: {} },
  );
}

interface Range {
  readonly start: number;
  readonly total?: number;
}

function rangeOf(headers: IncomingHttpHeaders): Range | undefined {
  const text = String(headers['content-range'] ?? '');
  const [, start, total] = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15}|\*)$/.exec(text) ?? [];
  if (start === undefined) return undefined;
  return { start: Number(start), ...(total === '*' ? {} : { total: Number(total) }) };
}

function lengthOf(headers: IncomingHttpHeaders): number | undefined {
  const text = headers['content-length'];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** What changes when the file does: its tag, else its date. */
function validatorOf({ etag, 'last-modified': modified }: IncomingHttpHeaders): string | undefined {
  return etag ?? modified;
}
