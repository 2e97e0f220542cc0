/**
 * The folder of model files: `NAME.gguf` is `local/NAME`. Every file is either usable or reported as a problem;
 * no file can stop the gateway.
 */
import type { Stats } from 'node:fs';
import { lstat, readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
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
import { codeOf, PullError } from './pull-error.ts';
import { tinyModel } from './known-models.ts';

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

/** Looks at every file. Never throws: what is wrong is in `problems`. */
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
        ? `is ${path} by the config, and that file ${whyNot(error)}`
        : whyNot(error);
      problems.push({ subject: elsewhere ? name : basename(path), why });
    }
  }
  return { models: [await demonstration(ways.get(tinyModel.name)), ...models], problems };
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
