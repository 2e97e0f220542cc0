/** Downloads that are under way, or were broken off and can be gone on with: by the files they leave. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { tryParseObject } from '../json/parse.ts';

export interface Download {
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
