import { readFile, rm } from 'node:fs/promises';
import { tryParseObject } from '../json/parse.ts';
import { replaceFile } from './part-file.ts';

/** A model that the embedded engine can run: where its file is, what is known of it, how to run it. */

/** What the file says of itself; absent = it does not say. */
export interface LocalModelFacts {
  /** E.g. `llama`, `qwen3`. */
  readonly architecture?: string;
  /** Tokens of prompt and answer together that the model was trained on. */
  readonly contextLength?: number;
  readonly parameters?: number;
  /** E.g. `Q4_K_M`. */
  readonly quantization?: string;
  readonly hasChatTemplate?: boolean;
  /** It reasons, and a request can switch that off or cannot; absent = it does not reason. */
  readonly reasoning?: 'switchable' | 'always';
  /** Its template knows levels of reasoning (`reasoning_effort`). */
  readonly reasoningLevels?: true;
}

export interface LocalModelFile extends LocalModelFacts {
  /** As in `local/NAME`. */
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  /** Size of the file. */
  readonly bytes: number;
  /** When the file was written, in ms since the epoch. */
  readonly writtenAt?: number;
  /** The engine refuses a file with another hash (hex). */
  readonly sha256?: string;
  /** Ships with the gateway to show how it works; stays loaded and is never a fallback. */
  readonly demo?: true;
  readonly settings: LocalModelSettings;
}

/** How the engine runs a model; what is absent is decided by the engine or by `LocalEngines`. */
export interface LocalModelSettings {
  /** Tokens of prompt and answer together, of each request. */
  readonly context?: number;
  readonly threads?: number;
  /** Requests that generate at the same time. */
  readonly parallel?: number;
  /** Ends the engine after this time without a call; 0 = never. */
  readonly idleUnloadMs?: number;
}

/** The engine's own limit: longer contexts take memory that small machines do not have. */
const usualContext = 8192;

/** The engine's own default. */
const usualParallel = 4;

/** Requests that are answered at once; with little memory the engine takes fewer. */
export function parallelOf({ settings }: LocalModelFile): number {
  return settings.parallel ?? usualParallel;
}

/** Tokens of prompt and answer together as the model is run; with little memory the engine takes fewer. */
export function contextOf({ contextLength, settings }: LocalModelFile): number | undefined {
  if (settings.context !== undefined || contextLength === undefined) return settings.context;
  return Math.min(contextLength, usualContext);
}

/** Names of local models: one word that is a safe file name everywhere and a model name at once. */

const nameForm = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?$/;
/** Windows opens devices by these names. */
const devices = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

export const nameRule =
  'a name is 1 to 100 letters, digits, ".", "_" and "-", begins with a letter or digit and does not end in "."';

export function isModelName(text: string): boolean {
  return nameForm.test(text) && !devices.test(text);
}

/** The name that a file gets when none is given: `Qwen3-0.6B-Q8_0.gguf` → `qwen3-0.6b-q8_0`. */
export function nameOfFile(fileName: string): string | undefined {
  const name = fileName
    .replace(/\.gguf$/i, '')
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 100)
    .replace(/[.-]+$/, '');
  return isModelName(name) ? name : undefined;
}

const partForm = /-(\d{5})-of-(\d{5})\.gguf$/i;

/** Whether the file's name says that it is one part of several. */
export function isPartOfSplit(fileName: string): boolean {
  const parts = partForm.exec(fileName)?.[2];
  return parts !== undefined && Number(parts) > 1;
}

// The record of a downloaded model, in a small file next to it: its source and its hash.

export interface ModelRecord {
  /** As it was requested. */
  readonly source: string;
  /** Hex. */
  readonly sha256: string;
  readonly bytes: number;
  /** Source of the hash that the file was checked against; `none` = it was not checked. */
  readonly verified: 'given' | 'server' | 'none';
}

function recordPath(modelPath: string): string {
  return `${modelPath.replace(/\.gguf$/, '')}.json`;
}

/** Undefined when there is none, or it is unreadable. */
export async function readRecord(modelPath: string): Promise<ModelRecord | undefined> {
  const text = await readFile(recordPath(modelPath), 'utf8').catch(() => '');
  const { source, sha256, bytes, verified } = tryParseObject(text) ?? {};
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) return undefined;
  if (typeof source !== 'string' || typeof bytes !== 'number') return undefined;
  const by = verified === 'given' || verified === 'server' ? verified : 'none';
  return { source, sha256, bytes, verified: by };
}

export async function writeRecord(modelPath: string, record: ModelRecord): Promise<void> {
  await replaceFile(recordPath(modelPath), `${JSON.stringify(record, null, 2)}\n`);
}

export async function removeRecord(modelPath: string): Promise<void> {
  await rm(recordPath(modelPath), { force: true });
}

/** The names of the ways in which a model's numbers are stored, as file names spell them. */

/** By the number in the file: `llama_ftype` of llama.cpp. */
const names: ReadonlyMap<number, string> = new Map([
  [0, 'F32'],
  [1, 'F16'],
  [2, 'Q4_0'],
  [3, 'Q4_1'],
  [7, 'Q8_0'],
  [8, 'Q5_0'],
  [9, 'Q5_1'],
  [10, 'Q2_K'],
  [11, 'Q3_K_S'],
  [12, 'Q3_K_M'],
  [13, 'Q3_K_L'],
  [14, 'Q4_K_S'],
  [15, 'Q4_K_M'],
  [16, 'Q5_K_S'],
  [17, 'Q5_K_M'],
  [18, 'Q6_K'],
  [19, 'IQ2_XXS'],
  [20, 'IQ2_XS'],
  [21, 'Q2_K_S'],
  [22, 'IQ3_XS'],
  [23, 'IQ3_XXS'],
  [24, 'IQ1_S'],
  [25, 'IQ4_NL'],
  [26, 'IQ3_S'],
  [27, 'IQ3_M'],
  [28, 'IQ2_S'],
  [29, 'IQ2_M'],
  [30, 'IQ4_XS'],
  [31, 'IQ1_M'],
  [32, 'BF16'],
  [36, 'TQ1_0'],
  [37, 'TQ2_0'],
  [38, 'MXFP4'],
  [39, 'NVFP4'],
]);

/** Undefined for numbers that are not known here. */
export function quantizationName(fileType: number): string | undefined {
  return names.get(fileType);
}

const inFileName =
  /(?:^|[-._/])((?:UD-)?(?:I?Q\d+_[A-Z0-9]+(?:_[A-Z0-9]+)*|BF16|F16|F32|MXFP4|TQ[12]_0))(?:[-.]|$)/i;

/** The quantisation in a file's name, in capitals; undefined when there is none. */
export function quantizationOf(fileName: string): string | undefined {
  return inFileName.exec(fileName.replace(/\.gguf$/i, ''))?.[1]?.toUpperCase();
}
