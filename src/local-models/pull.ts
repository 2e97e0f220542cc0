/**
 * Brings a model file into the folder: found, fetched or copied, checked, and only then given its name.
 *
 *   source → name → lock → is it there already? → space → NAME.gguf.part → SHA-256 → header → NAME.gguf
 *
 * A pull that dies anywhere leaves a part file, which the next one continues.
 */
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { readdir, rm, stat, statfs } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { basename, join, resolve } from 'node:path';
import { bytesText } from '../core/display.ts';
import { type FileLock, lockFile, makeDirectories } from '../store/data-dir.ts';
import { StoreError } from '../store/store-error.ts';
import { GgufProblem, beginsAsGguf, readGgufFile } from './gguf.ts';
import { describeModel, tinyModel } from './model-folder.ts';
import {
  type LocalModelFile,
  type ModelRecord,
  isModelName,
  isPartOfSplit,
  nameOfFile,
  nameRule,
  readRecord,
  writeRecord,
} from './model-file.ts';
import { PartFile, PullError, codeOf } from './part-file.ts';
import {
  type Environment,
  Hub,
  type Source,
  findHubFile,
  mustNameHash,
  readSource,
  sourceText,
} from './repository.ts';
import { Web, type WebAnswer, addressText } from './web.ts';

export interface PullRequest {
  readonly source: string;
  readonly name?: string;
  /** Hex; the file must have it. */
  readonly sha256?: string;
  /** Where models lie; made where it is not there. */
  readonly folder: string;
  readonly cwd: string;
  readonly env: Environment;
}

export interface PullWatcher {
  progress(step: 'reading' | 'fetching' | 'copying', bytes: number, total?: number): void;
  /** One sentence for the person who waits. */
  note(text: string): void;
}

/** What tests replace. */
export interface PullDeps {
  /** Bytes that may be written where the folder is. */
  freeBytes(folder: string): Promise<number>;
  sleep(ms: number): Promise<void>;
}

export interface Pulled {
  readonly model: LocalModelFile;
  readonly record: ModelRecord;
  /** It was there before. */
  readonly already: boolean;
}

const systemDeps: PullDeps = {
  freeBytes: async (folder) => {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  },
  sleep: (ms) => new Promise((done) => void setTimeout(done, ms)),
};

const unchecked =
  'The server states no hash of this file, so it could not be checked that it is the right one. If you know its SHA-256, give it with --sha256.';

/** Where the bytes come from, and what is known of them beforehand. */
interface Origin {
  readonly fileName: string;
  readonly place: { readonly url: URL } | { readonly path: string };
  readonly bytes?: number;
  readonly sha256?: string;
}

/** @throws PullError, with what was tried and what to do. */
export async function pull(
  request: PullRequest,
  watcher: PullWatcher,
  deps: PullDeps = systemDeps,
): Promise<Pulled> {
  const source = readSource(request.source);
  const given = givenHash(request.sha256);
  if (source.kind === 'web' && given === undefined && mustNameHash(source)) {
    throw new PullError(
      'Over http:// the file can be replaced on the way: give its hash with --sha256, or use https://.',
    );
  }
  const hub = new Hub(request.env);
  const web = new Web(request.env, hub);
  try {
    const origin = await find(source, { hub, web, cwd: request.cwd });
    if (given !== undefined && origin.sha256 !== undefined && given !== origin.sha256) {
      throw new PullError(
        `The file on the server has the SHA-256 ${origin.sha256}; --sha256 asks for ${given}. Nothing was fetched.`,
      );
    }
    const name = await nameFor(request, origin);
    return await new Pull({ request, watcher, deps, web, source, origin, name }).run(given);
  } finally {
    await web.close();
  }
}

function givenHash(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const hash = text.toLowerCase().replace(/^sha256:/, '');
  if (!/^[0-9a-f]{64}$/.test(hash))
    throw new PullError('--sha256: expected 64 hexadecimal digits.');
  return hash;
}

async function find(
  source: Source,
  { hub, web, cwd }: { readonly hub: Hub; readonly web: Web; readonly cwd: string },
): Promise<Origin> {
  if (source.kind === 'hub') {
    const { path, url, bytes, sha256 } = await findHubFile(source, hub, web);
    return {
      fileName: path.slice(path.lastIndexOf('/') + 1),
      place: { url },
      ...(bytes === undefined ? {} : { bytes }),
      ...(sha256 === undefined ? {} : { sha256 }),
    };
  }
  if (source.kind === 'path') return findPath(resolve(cwd, source.path), source.path);
  const last = source.url.pathname.split('/').at(-1) ?? '';
  return { fileName: decoded(last), place: { url: source.url } };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function findPath(path: string, asGiven: string): Promise<Origin> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new PullError(`${asGiven} is not a file.`);
    return { fileName: basename(path), place: { path }, bytes: found.size };
  } catch (error) {
    if (error instanceof PullError) throw error;
    throw new PullError(missingText(asGiven, codeOf(error)), { cause: error });
  }
}

function missingText(asGiven: string, code: string): string {
  if (code !== 'ENOENT') return `The file ${asGiven} cannot be read (${code}).`;
  if (/^[\w.:-]+$/.test(asGiven) && !asGiven.endsWith('.gguf')) {
    return `${asGiven} is neither a file nor a source such as hf:OWNER/REPOSITORY; model-gateway pull --list names some.`;
  }
  const isName = /^[\w.-]+\/[\w.-]+(:\w+)?$/.test(asGiven);
  const hint = isName ? ` A file of the hub is called hf:${asGiven}.` : '';
  return `The file ${asGiven} is not there.${hint}`;
}

async function nameFor({ name, folder }: PullRequest, { fileName }: Origin): Promise<string> {
  if (isPartOfSplit(fileName)) {
    throw new PullError(
      `${fileName} is one part of a split model, which is not supported. Join the parts with llama.cpp (llama-gguf-split --merge FIRST-PART WHOLE.gguf) and run: model-gateway pull WHOLE.gguf`,
    );
  }
  const wanted = name ?? nameOfFile(fileName);
  if (wanted === undefined) throw new PullError('Say what to call the model: --name NAME.');
  if (!isModelName(wanted)) throw new PullError(`--name: ${nameRule}.`);
  if (wanted.toLowerCase() === tinyModel.name) {
    throw new PullError(`local/${tinyModel.name} is the model that ships: choose another --name.`);
  }
  // Some file systems take names for the same that differ in capitals.
  const there = await readdir(folder).catch(() => []);
  const twin = there.find((file) => file.toLowerCase() === `${wanted}.gguf`.toLowerCase());
  if (twin !== undefined && twin !== `${wanted}.gguf`) {
    throw new PullError(
      `${twin} is there already, and differs in capitals only: choose another --name.`,
    );
  }
  return wanted;
}

interface PullJob {
  readonly request: PullRequest;
  readonly watcher: PullWatcher;
  readonly deps: PullDeps;
  readonly web: Web;
  readonly source: Source;
  readonly origin: Origin;
  readonly name: string;
}

/** One pull whose source and name are known. */
class Pull {
  readonly #job: PullJob;
  readonly #path: string;

  constructor(job: PullJob) {
    this.#job = job;
    this.#path = join(job.request.folder, `${job.name}.gguf`);
  }

  async run(given: string | undefined): Promise<Pulled> {
    const { request, origin, name } = this.#job;
    try {
      makeDirectories(request.folder);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      throw new PullError(error.message, { cause: error });
    }
    const lockPath = join(request.folder, `.${name}.lock`);
    const lock = this.#lock(lockPath);
    try {
      const known = given ?? origin.sha256;
      return (await this.#already(known)) ?? (await this.#bring(known, given !== undefined));
    } finally {
      // An open file that cannot be removed stays; it does no harm.
      await rm(lockPath, { force: true }).catch(() => {});
      lock.release();
    }
  }

  #lock(path: string): FileLock {
    const { name } = this.#job;
    try {
      return lockFile(path);
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'in_use') throw error;
      throw new PullError(`local/${name} is being fetched already, by another command.`);
    }
  }

  /** The model when the same file is there; undefined when there is none. */
  async #already(known: string | undefined): Promise<Pulled | undefined> {
    const { name, source } = this.#job;
    if ((await stat(this.#path).catch(() => undefined)) === undefined) return undefined;
    const record = await readRecord(this.#path);
    const isSame =
      known === undefined ? record?.source === sourceText(source) : record?.sha256 === known;
    if (record === undefined || !isSame) {
      throw new PullError(
        `local/${name} is there already, from ${record?.source ?? 'elsewhere'}. Give another --name, or first run: model-gateway models remove ${name}`,
      );
    }
    return { model: await describeModel(name, this.#path), record, already: true };
  }

  async #bring(known: string | undefined, isGiven: boolean): Promise<Pulled> {
    const { source, origin, name, watcher } = this.#job;
    const part = new PartFile(this.#path);
    const identity = origin.sha256 ?? ('url' in origin.place ? addressText(origin.place.url) : '');
    try {
      await part.open(identity, (bytes) => watcher.progress('reading', bytes));
      const named = await this.#fill(part, known);
      const expected = known ?? named;
      if (expected === undefined && source.kind !== 'path') watcher.note(unchecked);
      await this.#check(part, expected);
      const record: ModelRecord = {
        source: sourceText(source),
        sha256: part.sha256(),
        bytes: part.length,
        verified: isGiven ? 'given' : expected === undefined ? 'none' : 'server',
      };
      await writeRecord(this.#path, record);
      await part.finish(this.#path);
      return { model: await describeModel(name, this.#path), record, already: false };
    } finally {
      await part.close();
    }
  }

  /** @returns the hash that the server named on the way, if it did. */
  async #fill(part: PartFile, known: string | undefined): Promise<string | undefined> {
    const { origin, watcher, deps, web } = this.#job;
    if ('path' in origin.place) {
      await this.#copy(part, origin.place.path, origin.bytes ?? 0);
      return undefined;
    }
    const task = {
      url: origin.place.url,
      ...(known === undefined ? {} : { sha256: known }),
      ...(origin.bytes === undefined ? {} : { bytes: origin.bytes }),
    };
    const { namedSha256 } = await download(task, {
      web,
      part,
      requireSpace: (bytes) => this.#requireSpace(bytes),
      sleep: (ms) => deps.sleep(ms),
      progress: (bytes, total) => watcher.progress('fetching', bytes, total),
      note: (text) => watcher.note(text),
    });
    return namedSha256;
  }

  async #copy(part: PartFile, path: string, total: number): Promise<void> {
    await part.restart({ identity: '' });
    await this.#requireSpace(total);
    const file = createReadStream(path);
    await once(file, 'open').catch((error: unknown) => {
      throw new PullError(`${path} cannot be read (${codeOf(error)}).`, { cause: error });
    });
    for await (const piece of file) {
      const bytes = Buffer.from(piece);
      if (part.length === 0 && !beginsAsGguf(bytes)) {
        file.destroy();
        await part.remove();
        throw new PullError(`${path} is not a GGUF file.`);
      }
      await part.append(bytes);
      this.#job.watcher.progress('copying', part.length, total);
    }
  }

  async #requireSpace(bytes: number): Promise<void> {
    const { request, deps } = this.#job;
    const free = await deps.freeBytes(request.folder);
    if (bytes <= free) return;
    throw new PullError(
      `There is not enough space in ${request.folder}: ${bytesText(bytes)} are needed, ${bytesText(free)} are free. Another folder can be set as local.models_dir in gateway.yaml.`,
    );
  }

  /** A file that is not what it shall be is removed: it would fail again and again. */
  async #check(part: PartFile, expected: string | undefined): Promise<void> {
    const { source } = this.#job;
    const found = part.sha256();
    if (expected !== undefined && found !== expected) {
      await part.remove();
      throw new PullError(
        `The file has the SHA-256 ${found}; ${expected} was expected. It was removed. The same command fetches it anew; if that fails too, ${sourceText(source)} is not what it claims to be.`,
      );
    }
    try {
      await readGgufFile(part.path);
    } catch (error) {
      if (!(error instanceof GgufProblem)) throw error;
      await part.remove();
      throw new PullError(`The file ${error.message}. It was removed.`, { cause: error });
    }
  }
}

// Fetches one file over HTTP into a part file. A cut connection is taken up again where it broke off;
// a part file of an earlier run likewise, if the server still has the same file:
//
//   206 with our range, size and validator → continues;   200, or anything else about the file → anew
//   cut, 408, 429, 5xx → again after a pause;           other answers → the error

interface DownloadTask {
  readonly url: URL;
  /** Hex; what the file must have, if that is known beforehand. */
  readonly sha256?: string;
  /** What the file must have, if that is known beforehand. */
  readonly bytes?: number;
}

interface DownloadDeps {
  readonly web: Web;
  readonly part: PartFile;
  /** @throws PullError when the disk has not enough free space. */
  requireSpace(bytes: number): Promise<void>;
  sleep(ms: number): Promise<void>;
  progress(bytes: number, total: number | undefined): void;
  /** One sentence for the person who waits. */
  note(text: string): void;
}

interface Downloaded {
  /** The hash that the server named for the file, if it did. */
  readonly namedSha256?: string;
}

const maxRestarts = 3;
/** Pauses between tries that bring nothing; any progress begins the count anew. */
const pausesMs: readonly number[] = [1000, 2000, 5000, 10_000, 20_000];
const maxPauseMs = 120_000;
const spareBytes = 64 * 2 ** 20;

/** @throws PullError when the file cannot be had; the part file stays and can be continued. */
async function download(task: DownloadTask, job: DownloadDeps): Promise<Downloaded> {
  const running = new Download(task, job);
  let failures = 0;
  for (;;) {
    const before = job.part.length;
    try {
      return await running.attempt();
    } catch (error) {
      if (!(error instanceof PullError) || error.again === undefined) throw error;
      if (job.part.length > before) failures = 0;
      const pauseMs = error.again.afterMs ?? pausesMs[failures];
      if (pauseMs === undefined || pauseMs > maxPauseMs || failures >= pausesMs.length) {
        throw error;
      }
      failures += 1;
      job.note(
        `${error.message.split('\n')[0] ?? error.message} Going on in ${Math.ceil(pauseMs / 1000)} s.`,
      );
      await job.sleep(pauseMs);
    }
  }
}

class Download {
  readonly #task: DownloadTask;
  readonly #job: DownloadDeps;
  #restarts = 0;

  constructor(task: DownloadTask, job: DownloadDeps) {
    this.#task = task;
    this.#job = job;
  }

  /** One request, and as much of the file as it brings. */
  async attempt(): Promise<Downloaded> {
    const { web } = this.#job;
    if (this.#isDone()) return {};
    const answer = await web.get(this.#task.url, this.#rangeHeaders());
    const { status, linked } = answer;
    const named = linked.sha256 === undefined ? {} : { namedSha256: linked.sha256 };
    if (status === 416 && (await this.#isWhole(answer))) return named;
    if (status === 416 || (status === 206 && !this.#continues(answer))) {
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
    return sha256 !== undefined && bytes !== undefined && this.#job.part.length === bytes;
  }

  #rangeHeaders(): { readonly [name: string]: string } {
    const { length, state } = this.#job.part;
    if (length === 0) return {};
    const { etag } = state ?? {};
    // A weak validator is not for ranges; it is compared when the answer is there.
    const isStrong = etag !== undefined && etag.startsWith('"');
    return { range: `bytes=${length}-`, ...(isStrong ? { 'if-range': etag } : {}) };
  }

  /** Whether a 206 continues the bytes that are there. */
  #continues({ headers }: WebAnswer): boolean {
    const { length, state } = this.#job.part;
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
    const { length, state } = this.#job.part;
    const total = /^bytes \*\/(\d{1,15})$/.exec(String(headers['content-range'] ?? ''))?.[1];
    const expected = this.#task.bytes ?? state?.bytes;
    const isWhole = length > 0 && Number(total) === length && (expected ?? length) === length;
    if (isWhole) await body.dump().catch(() => {});
    return isWhole;
  }

  async #restart(why: string): Promise<void> {
    const { part, note } = this.#job;
    this.#restarts += 1;
    if (this.#restarts > maxRestarts) {
      throw new PullError(`${why} The download began anew too often; try later.`);
    }
    if (part.length > 0) note(`${why} The download starts again.`);
    await part.restart({ identity: part.state?.identity ?? '' });
  }

  /** Checks what is known before the body. @returns the size of the whole file. */
  async #begin(answer: WebAnswer): Promise<number | undefined> {
    const { part, requireSpace } = this.#job;
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
    const { part, progress } = this.#job;
    progress(part.length, total);
    try {
      for await (const piece of body) {
        const bytes = Buffer.from(piece);
        if (part.length === 0) {
          // The first piece of a body is at least four bytes long wherever the bytes matter.
          if (bytes.length >= 4 && !beginsAsGguf(bytes)) {
            const isPage = /^\s*<(!doctype|html)/i.test(bytes.toString('latin1', 0, 64));
            throw new PullError(
              `${place} is ${isPage ? 'a web page' : 'no GGUF file'}. Give the address of the file itself.`,
            );
          }
        }
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
