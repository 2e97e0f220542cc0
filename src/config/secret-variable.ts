/** A secret in a variable of the environment, or in the file that a variable of the same name and _FILE names. */
import { readFileSync } from 'node:fs';
import { Secret } from '../core/secret.ts';
import { isOpenToAll, reason, type Environment } from './references.ts';

/** Undefined where none is set. @throws Error that names the variable and what to do. */
export function readSecretVariable(env: Environment, variable: string): Secret | undefined {
  const fileVariable = `${variable}_FILE`;
  const text = env[variable] ?? '';
  const path = env[fileVariable] ?? '';
  if (path === '') return text === '' ? undefined : new Secret(text);
  if (text !== '') throw new Error(`Set ${variable} or ${fileVariable}, not both.`);
  let read: string;
  try {
    if (isOpenToAll(path)) {
      throw new Error(
        `${fileVariable}: every user of this machine can read ${path}; chmod 600 it.`,
      );
    }
    // One final line end is the editor's, not the secret's.
    read = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    if (error instanceof Error && !('code' in error)) throw error;
    throw new Error(`${fileVariable}: ${path} cannot be read (${reason(error)}).`, {
      cause: error,
    });
  }
  if (read === '') throw new Error(`${fileVariable}: ${path} is empty.`);
  return new Secret(read);
}
