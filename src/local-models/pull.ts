/**
 * Brings a model file into the folder: found, fetched or copied, checked, and only then given its name.
 *
 *   source → name → lock → is it there already? → space → NAME.gguf.part → SHA-256 → header → NAME.gguf
 *
 * A pull that dies anywhere leaves a part file, which the next one goes on with.
 */
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { readdir, rm, stat, statfs } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { makeDirectories, lockFile, type FileLock } from '../store/data-dir.ts';
import { StoreError } from '../store/store-error.ts';
import { download } from './download.ts';
import { beginsAsGguf, GgufProblem, readGgufFile } from './gguf.ts';
import { findHubFile, Hub, type Environment } from './repository.ts';
import {
  type LocalModelFile,
  isModelName,
  isPartOfSplit,
  nameOfFile,
  nameRule,
  readRecord,
  writeRecord,
  type ModelRecord,
} from './model-file.ts';
import { describeModel } from './model-folder.ts';
import { PartFile } from './part-file.ts';
import { bytesText } from '../core/display.ts';
import { codeOf, PullError } from './pull-error.ts';
import { mustNameHash, readSource, sourceText, type Source } from './source.ts';
import { tinyModel } from './known-models.ts';
import { placeOf, Web } from './web.ts';

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
export interface PullMeans {
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

const systemMeans: PullMeans = {
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
  means: PullMeans = systemMeans,
): Promise<Pulled> {
  const source = readSource(request.source);
  const given = givenHash(request.sha256);
  if (source.kind === 'web' && given === undefined && mustNameHash(source)) {
    throw new PullError(
      'Over http:// anybody on the way can put in another file: give its hash with --sha256, or use https://.',
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
    return await new Pull({ request, watcher, means, web, source, origin, name }).run(given);
  } finally {
    await web.close();
  }
}

function makeFolder(folder: string): void {
  try {
    makeDirectories(folder);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new PullError(error.message, { cause: error });
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
    const isName = /^[\w.-]+\/[\w.-]+(:\w+)?$/.test(asGiven);
    const hint = isName ? ` A file of the hub is called hf:${asGiven}.` : '';
    const why = codeOf(error) === 'ENOENT' ? 'is not there' : `cannot be read (${codeOf(error)})`;
    throw new PullError(`The file ${asGiven} ${why}.${hint}`, { cause: error });
  }
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

interface PullParts {
  readonly request: PullRequest;
  readonly watcher: PullWatcher;
  readonly means: PullMeans;
  readonly web: Web;
  readonly source: Source;
  readonly origin: Origin;
  readonly name: string;
}

/** One pull whose source and name are known. */
class Pull {
  readonly #parts: PullParts;
  readonly #path: string;

  constructor(parts: PullParts) {
    this.#parts = parts;
    this.#path = join(parts.request.folder, `${parts.name}.gguf`);
  }

  async run(given: string | undefined): Promise<Pulled> {
    const { request, origin, name } = this.#parts;
    makeFolder(request.folder);
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
    const { name } = this.#parts;
    try {
      return lockFile(path);
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'in_use') throw error;
      throw new PullError(`local/${name} is being fetched already, by another command.`);
    }
  }

  /** The model when the same file is there; undefined when there is none. */
  async #already(known: string | undefined): Promise<Pulled | undefined> {
    const { name, source } = this.#parts;
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
    const { source, origin, name, watcher } = this.#parts;
    const part = new PartFile(this.#path);
    const identity = origin.sha256 ?? ('url' in origin.place ? placeOf(origin.place.url) : '');
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
    const { origin, watcher, means, web } = this.#parts;
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
      sleep: (ms) => means.sleep(ms),
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
      this.#parts.watcher.progress('copying', part.length, total);
    }
  }

  async #requireSpace(bytes: number): Promise<void> {
    const { request, means } = this.#parts;
    const free = await means.freeBytes(request.folder);
    if (bytes <= free) return;
    throw new PullError(
      `There is not enough space in ${request.folder}: ${bytesText(bytes)} are needed, ${bytesText(free)} are free. Another folder can be set as local.models_dir in gateway.yaml.`,
    );
  }

  /** A file that is not what it shall be is removed: it would fail again and again. */
  async #check(part: PartFile, expected: string | undefined): Promise<void> {
    const { source } = this.#parts;
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
