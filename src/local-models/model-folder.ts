/**
 * The folder of model files: `NAME.gguf` is `local/NAME`. Every file is either usable or reported as a problem;
 * no file can stop the gateway.
 */
import { type Stats, statSync } from 'node:fs';
import { lstat, readFile, readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tryParseObject } from '../json/parse.ts';
import { GgufProblem, readGgufFile } from './gguf.ts';
import {
  type LocalModelFile,
  type LocalModelSettings,
  isModelName,
  isPartOfSplit,
  nameRule,
  readRecord,
  removeRecord,
} from './model-file.ts';
import { PullError, codeOf } from './part-file.ts';

/** What the config says of one local model. */
export interface DeclaredLocalModel extends LocalModelSettings {
  readonly name: string;
  /** Absolute; absent = in the folder. */
  readonly path?: string;
  readonly sha256?: string;
}

export interface FolderProblem {
  /** File, or name of the config. */
  readonly subject: string;
  readonly why: string;
}

export interface FolderContents {
  /** The demonstration model first, then by name. */
  readonly models: readonly LocalModelFile[];
  readonly problems: readonly FolderProblem[];
}

/** Examines every file. Never throws: what is wrong is in `problems`. */
export async function readModelFolder(
  folder: string,
  declared: readonly DeclaredLocalModel[] = [],
): Promise<FolderContents> {
  const problems: FolderProblem[] = [];
  const found = new Map<string, string>();
  for (const file of await filesOf(folder, problems)) {
    const name = file.slice(0, -'.gguf'.length);
    const why = nameProblem(file, name);
    if (why === undefined) found.set(name, join(folder, file));
    else problems.push({ subject: file, why });
  }
  const ways = new Map(declared.map((each) => [each.name, each]));
  for (const { name, path } of declared.filter((each) => each.name !== tinyModel.name)) {
    if (path !== undefined) found.set(name, path);
    else if (!found.has(name)) {
      problems.push({ subject: name, why: `is in the config, but ${folder} has no ${name}.gguf` });
    }
  }
  const models: LocalModelFile[] = [];
  for (const [name, path] of [...found].sort(([a], [b]) => (a < b ? -1 : 1))) {
    try {
      models.push(await describeModel(name, path, ways.get(name)));
    } catch (error) {
      const elsewhere = ways.get(name)?.path !== undefined;
      const why = elsewhere
        ? `has the path ${path} in the config, which ${whyNot(error)}`
        : whyNot(error);
      problems.push({ subject: elsewhere ? name : basename(path), why });
    }
  }
  const shipped = shippedModels.map(({ name }) => demonstration(ways.get(name)));
  return { models: [...(await Promise.all(shipped)), ...models], problems };
}

async function filesOf(folder: string, problems: FolderProblem[]): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder);
    return entries.filter((name) => name.toLowerCase().endsWith('.gguf')).sort();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') problems.push({ subject: folder, why: whyNot(error) });
    return [];
  }
}

function nameProblem(file: string, name: string): string | undefined {
  if (isPartOfSplit(file)) {
    return 'is one part of a split model; join the parts with llama.cpp: llama-gguf-split --merge FIRST-PART WHOLE.gguf';
  }
  if (!file.endsWith('.gguf')) return 'must end in .gguf in small letters';
  if (name.toLowerCase() === tinyModel.name) return 'has the name of the demonstration model';
  return isModelName(name) ? undefined : `has no usable name: ${nameRule}`;
}

function whyNot(error: unknown): string {
  if (error instanceof GgufProblem) return error.message;
  const code = codeOf(error);
  if (code === 'ENOENT') return 'is not there';
  if (code === 'EISDIR') return 'is a directory';
  return `cannot be read (${code === '' ? 'unknown reason' : code})`;
}

/** @throws GgufProblem, or the file system's error. */
export async function describeModel(
  name: string,
  path: string,
  declared?: DeclaredLocalModel,
): Promise<LocalModelFile> {
  const [{ size, mtimeMs }, facts, record] = await Promise.all([
    stat(path),
    readGgufFile(path),
    readRecord(path),
  ]);
  const sha256 = declared?.sha256 ?? record?.sha256;
  return {
    name,
    path,
    bytes: size,
    writtenAt: Math.floor(mtimeMs),
    ...facts,
    ...(sha256 === undefined ? {} : { sha256 }),
    settings: settingsOf(declared),
  };
}

async function demonstration(declared: DeclaredLocalModel | undefined): Promise<LocalModelFile> {
  try {
    const described = await describeModel(tinyModel.name, tinyModel.path, declared);
    return { ...described, ...tinyModel, settings: described.settings };
  } catch {
    // The engine says what is wrong with it when it is called.
    return tinyModel;
  }
}

function settingsOf(declared: DeclaredLocalModel | undefined): LocalModelSettings {
  const { context, threads, parallel, idleUnloadMs } = declared ?? {};
  return {
    ...(context === undefined ? {} : { context }),
    ...(threads === undefined ? {} : { threads }),
    ...(parallel === undefined ? {} : { parallel }),
    ...(idleUnloadMs === undefined ? {} : { idleUnloadMs }),
  };
}

/**
 * Deletes a fetched model with all that belongs to it.
 * @returns the bytes that are free again.
 * @throws PullError when there is none of this name, or it cannot be deleted.
 */
export async function removeModel(folder: string, name: string): Promise<number> {
  if (name === tinyModel.name) {
    throw new PullError(`local/${name} ships with the gateway and cannot be removed.`);
  }
  if (!isModelName(name)) throw new PullError(`${name.slice(0, 100)}: ${nameRule}.`);
  const path = join(folder, `${name}.gguf`);
  const parts = [`${path}.part`, `${path}.part.json`];
  const found = await Promise.all([path, ...parts].map(lookAt));
  if (found.every((each) => each === undefined)) {
    throw new PullError(`There is no model local/${name} in ${folder}.`);
  }
  if (found.some((each) => each?.isDirectory())) {
    throw new PullError(
      `${path} is a folder, no model that pull brought: nothing was removed. Delete it yourself if you mean it.`,
    );
  }
  try {
    for (const each of [path, ...parts]) await rm(each, { force: true });
    await removeRecord(path);
  } catch (error) {
    throw new PullError(`${path} cannot be deleted (${codeOf(error)}).`, { cause: error });
  }
  return found.reduce((sum, each) => sum + (each?.size ?? 0), 0);
}

/** Undefined when it is not there. */
async function lookAt(path: string): Promise<Stats | undefined> {
  // A link to nowhere is there all the same.
  return stat(path).catch(() => lstat(path).catch(() => undefined));
}

/**
 * Well-known small instruct models for `pull --list`. Sizes and licences come from the published model cards
 * and are not verified; the cards are authoritative.
 */

interface KnownModel {
  readonly title: string;
  /** What `pull` takes. */
  readonly source: string;
  /** Of the file; about. */
  readonly size: string;
  readonly licence: string;
  readonly tools: 'yes' | 'good' | 'weak' | 'no';
  readonly remark: string;
}

/** From small to large. */
export const knownModels: readonly KnownModel[] = [
  {
    title: 'Gemma 3 270M it',
    source: 'hf:unsloth/gemma-3-270m-it-GGUF:Q8_0',
    size: '0.29 GB',
    licence: 'Gemma terms (restrictions of use)',
    tools: 'no',
    remark: 'the smallest; weak chat',
  },
  {
    title: 'Qwen3.5 0.8B',
    source: 'hf:unsloth/Qwen3.5-0.8B-GGUF:Q4_K_M',
    size: '0.5 GB',
    licence: 'Apache-2.0',
    tools: 'yes',
    remark: 'for little memory',
  },
  {
    title: 'Qwen3 0.6B',
    source: 'hf:Qwen/Qwen3-0.6B-GGUF:Q8_0',
    size: '0.64 GB',
    licence: 'Apache-2.0',
    tools: 'yes',
    remark: 'reasons unless the request turns it off',
  },
  {
    title: 'Gemma 3 1B it',
    source: 'hf:ggml-org/gemma-3-1b-it-GGUF:Q4_K_M',
    size: '0.81 GB',
    licence: 'Gemma terms (restrictions of use)',
    tools: 'no',
    remark: 'good prose for its size',
  },
  {
    title: 'Llama 3.2 1B Instruct',
    source: 'hf:bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M',
    size: '0.81 GB',
    licence: 'Llama 3.2 Community',
    tools: 'weak',
    remark: 'trained on long contexts',
  },
  {
    title: 'Qwen3 1.7B',
    source: 'hf:bartowski/Qwen_Qwen3-1.7B-GGUF:Q4_K_M',
    size: '1.3 GB',
    licence: 'Apache-2.0',
    tools: 'yes',
    remark: 'reasons unless the request turns it off',
  },
  {
    title: 'SmolLM3 3B',
    source: 'hf:ggml-org/SmolLM3-3B-GGUF:Q4_K_M',
    size: '1.92 GB',
    licence: 'Apache-2.0',
    tools: 'yes',
    remark: 'its training data is open too',
  },
  {
    title: 'Qwen3 4B Instruct 2507',
    source: 'hf:unsloth/Qwen3-4B-Instruct-2507-GGUF:Q4_K_M',
    size: '2.5 GB',
    licence: 'Apache-2.0',
    tools: 'good',
    remark: 'no reasoning; a good first choice with 16 GB of memory',
  },
  {
    title: 'Qwen3.5 4B',
    source: 'hf:unsloth/Qwen3.5-4B-GGUF:Q4_K_M',
    size: '2.7 GB',
    licence: 'Apache-2.0',
    tools: 'good',
    remark: 'reasons unless the request turns it off',
  },
  {
    title: 'Gemma 4 E2B it',
    source: 'hf:giladgd/gemma-4-E2B-it-GGUF:Q6_K',
    size: '3.9 GB',
    licence: 'see its card',
    tools: 'yes',
    remark: '5.1 billion parameters, 2.3 of them active',
  },
];

// The model that ships with the gateway.

const path = fileURLToPath(new URL('../../models/tiny/tiny.gguf', import.meta.url));

export const tinyModel: LocalModelFile & { readonly sha256: string } = {
  name: 'tiny',
  path,
  bytes: statSync(path, { throwIfNoEntry: false })?.size ?? 0,
  sha256: '26f834c00b24b5f8d06f4ad354a1c631c22e9eba9c50e576b3c645f09bfc7ed0',
  demo: true,
  settings: {},
};

/** None in an image without the engine, which leaves the file out. */
export const shippedModels: readonly LocalModelFile[] = tinyModel.bytes > 0 ? [tinyModel] : [];

// Downloads that are under way, or were broken off and can be continued: by the files they leave.

interface Download {
  /** Id of the model after the download. */
  readonly name: string;
  readonly bytes: number;
  /** Absent = the server did not say. */
  readonly totalBytes?: number;
  /** When bytes last came; wall time in ms. */
  readonly writtenAt: number;
}

const end = '.gguf.part';
const most = 100;

/** Never throws: a folder that is not there has none. */
export async function readDownloads(folder: string): Promise<readonly Download[]> {
  const names = await readdir(folder).catch(() => []);
  const parts = names.filter((name) => name.endsWith(end)).toSorted();
  const found = await Promise.all(parts.slice(0, most).map((part) => read(folder, part)));
  return found.filter((each) => each !== undefined);
}

async function read(folder: string, part: string): Promise<Download | undefined> {
  const path = join(folder, part);
  const about = await stat(path).catch(() => undefined);
  // Finished or given up between the two looks.
  if (about?.isFile() !== true) return undefined;
  const state = tryParseObject(await readFile(`${path}.json`, 'utf8').catch(() => ''));
  const total = state?.['bytes'];
  return {
    name: part.slice(0, -end.length),
    bytes: about.size,
    ...(typeof total === 'number' ? { totalBytes: total } : {}),
    writtenAt: Math.round(about.mtimeMs),
  };
}
