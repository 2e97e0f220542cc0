/** Edits another program's JSON settings file: keeps what it does not touch, leaves a backup. */
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { Json, JsonObject } from '../core/conversation.ts';
import { isObject, tryParseObject } from '../core/json.ts';
import type { SettingsEdit } from './clients.ts';

export interface EditedFile {
  /** One line for each value that changed; empty when all were set already. */
  readonly changes: readonly string[];
  /** Where the old content is kept; absent when there was none or nothing changed. */
  readonly backup?: string;
}

/**
 * Applies the edits. The new file is complete or not there at all, is for its owner only (it holds a
 * key: S25), and replaces what a link leads to, not the link.
 * @throws Error when the file is not plain JSON or cannot be written; it is left as it was.
 */
export function editSettings(file: string, edits: readonly SettingsEdit[]): EditedFile {
  const path = existsSync(file) ? realpathSync(file) : file;
  const text = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  const current = text === undefined || text.trim() === '' ? {} : tryParseObject(text);
  if (current === undefined) {
    throw new Error(`${file} is no plain JSON object (comments?); it was left as it is`);
  }
  let edited = current;
  const changes: string[] = [];
  for (const edit of edits) {
    const before = valueAt(current, edit.path);
    if (JSON.stringify(before) === JSON.stringify(edit.value)) continue;
    edited = withValue(edited, edit.path, edit.value);
    changes.push(changeText(edit, before));
  }
  if (changes.length === 0) return { changes };
  const backup = text === undefined ? undefined : keepCopy(path);
  mkdirSync(dirname(path), { recursive: true });
  replaceFile(path, `${JSON.stringify(edited, null, indentOf(text))}\n`);
  return { changes, ...(backup === undefined ? {} : { backup }) };
}

function replaceFile(path: string, text: string): void {
  const fresh = `${path}.new-${process.pid}`;
  try {
    writeFileSync(fresh, text, { mode: 0o600 });
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
}

function changeText({ path, value, secret }: SettingsEdit, before: Json | undefined): string {
  const name = path.join('.');
  if (secret === true) return `${name} ${before === undefined ? 'set' : 'replaced'}`;
  const now = `${name} = ${JSON.stringify(value)}`;
  return before === undefined ? now : `${now} (was ${JSON.stringify(before)})`;
}

function valueAt(root: JsonObject, path: readonly string[]): Json | undefined {
  let at: Json | undefined = root;
  for (const key of path) at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  return at;
}

function withValue(root: JsonObject, path: readonly string[], value: Json): JsonObject {
  const [key, ...rest] = path;
  if (key === undefined) return root;
  const child = Object.hasOwn(root, key) ? root[key] : undefined;
  const below = isObject(child) ? child : {};
  return { ...root, [key]: rest.length === 0 ? value : withValue(below, rest, value) };
}

/** The indentation that the file has; two spaces for a new one. */
function indentOf(text: string | undefined): string {
  return /^\{\s*?\n([ \t]+)/.exec(text ?? '')?.[1] ?? '  ';
}

/** Copies the file beside itself under the first free name; the copy may hold an old key. */
function keepCopy(path: string): string {
  for (let n = 0; ; n++) {
    const copy = n === 0 ? `${path}.bak` : `${path}.bak${n}`;
    try {
      copyFileSync(path, copy, constants.COPYFILE_EXCL);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') continue;
      throw error;
    }
    if (process.platform !== 'win32') chmodSync(copy, statSync(path).mode & 0o700);
    return copy;
  }
}
