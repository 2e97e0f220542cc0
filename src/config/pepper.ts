/** MODEL_GATEWAY_PEPPER, or the file that MODEL_GATEWAY_PEPPER_FILE names. */
import { readFileSync } from 'node:fs';
import { Secret } from '../core/secret.ts';
import { isOpenToAll, reason, type Environment } from './references.ts';

const variable = 'MODEL_GATEWAY_PEPPER';
const fileVariable = 'MODEL_GATEWAY_PEPPER_FILE';

/** Undefined where none is set. @throws Error that names the variable and what to do. */
export function readPepper(env: Environment): Secret | undefined {
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
