/** The record of a downloaded model, in a small file next to it: its source and its hash. */
import { readFile, rm } from 'node:fs/promises';
import { tryParseObject } from '../json/parse.ts';
import { replaceFile } from './replace-file.ts';

export interface ModelRecord {
  /** As it was asked for. */
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
