/** Small private files that are there as a whole or not at all. */
import { rename, rm, writeFile } from 'node:fs/promises';

/** Written to a new file first: the existing path may be a link to another file. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const unfinished = `${path}.new`;
  await rm(unfinished, { force: true });
  await writeFile(unfinished, text, { mode: 0o600, flag: 'wx' });
  await rename(unfinished, path);
}
