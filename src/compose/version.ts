/** The version of this program, from its package file. */
import { readFileSync } from 'node:fs';
import { tryParseObject } from '../json/parse.ts';

function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const found = tryParseObject(text)?.['version'];
  return typeof found === 'string' ? found : 'unknown';
}

export const version = readVersion();
