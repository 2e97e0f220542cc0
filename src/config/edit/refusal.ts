/** Why a config file was refused, for people who may not read the file. */
import { readFileOnDisk } from './file-on-disk.ts';
import { maskFile } from './masked-file.ts';

/**
 * The message without secrets of the file. Where they cannot be told from the rest, it quotes nothing.
 * @param path of the config file; undefined: there is none
 */
export function withoutValuesOf(path: string | undefined, message: string): string {
  if (path === undefined) return message;
  const file = readFileOnDisk(path);
  const masked = 'problem' in file ? file : maskFile(file.text);
  if ('scrub' in masked) return masked.scrub(message);
  return message
    .split('\n')
    .map((line) => {
      const [from, to] = [line.indexOf('"'), line.lastIndexOf('"')];
      return from === to ? line : `${line.slice(0, from + 1)}…${line.slice(to)}`;
    })
    .join('\n');
}
