/** Edits another program's settings file: keeps what it does not touch, leaves a backup. */
import {
  chmodSync,
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
  type Stats,
} from 'node:fs';
import { dirname } from 'node:path';
import { isMap, isScalar, isSeq, parseDocument, type Document } from 'yaml';
import { isObject, type Json } from '../json/value.ts';
import {
  isElement,
  placed,
  type SettingsEdit,
  type SettingsFile,
  type Step,
} from './clients/client.ts';
import { jsonAt, stepText, withJsonAt, withoutJsonAt } from './json-text.ts';

export interface EditedFile {
  /** One line for each value that changed; empty when all were set already. */
  readonly changes: readonly string[];
  /** Where the old content is kept; absent when there was none or nothing changed. */
  readonly backup?: string;
}

/** The text of a settings file, edit by edit. */
interface SettingsText {
  at(path: readonly Step[]): Json | undefined;
  /** @param value undefined removes what is there. */
  set(path: readonly Step[], value: Json | undefined): void;
  text(): string;
}

/**
 * Applies the edits; comments and the order of what is there stay. The new file is complete or not there at
 * all, and is for its owner only where a key was written into it (S25).
 * @throws Error with the file's name where it is a link or no file, cannot be read as its format or cannot be
 * written; it is left as it was.
 */
export function editSettings(
  file: string,
  format: SettingsFile['format'],
  edits: readonly SettingsEdit[],
): EditedFile {
  const stats = ownFile(file);
  const old = stats === undefined ? undefined : readFileSync(file, 'utf8');
  const { changes, text } = edited(file, { format, old: old ?? '' }, edits);
  if (changes.length === 0) return { changes };
  const backup = stats === undefined ? undefined : keepCopy(file, stats);
  mkdirSync(dirname(file), { recursive: true });
  const isSecret = edits.some(({ secret }) => secret === true);
  replaceFile(file, text, isSecret ? 0o600 : stats === undefined ? undefined : stats.mode & 0o777);
  return { changes, ...(backup === undefined ? {} : { backup }) };
}

/** @throws Error where something else than a file stands there. */
function ownFile(file: string): Stats | undefined {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats?.isSymbolicLink() === true) {
    throw new Error(
      `${file} is a link to ${readlinkSync(file)}; it was left as it is. Name the file itself with --file.`,
    );
  }
  if (stats?.isFile() === false) throw new Error(`${file} is not a file; it was left as it is.`);
  return stats;
}

interface OldText {
  readonly format: SettingsFile['format'];
  readonly old: string;
}

function edited(
  file: string,
  { format, old }: OldText,
  edits: readonly SettingsEdit[],
): { readonly changes: readonly string[]; readonly text: string } {
  const changes: string[] = [];
  try {
    const settings = format === 'json' ? new JsonSettings(old) : new YamlSettings(old);
    for (const edit of edits) {
      const before = settings.at(edit.path);
      if (JSON.stringify(before) === JSON.stringify(edit.value)) continue;
      if (edit.onlyIfMissing === true && before !== undefined) continue;
      settings.set(edit.path, edit.value);
      changes.push(changeText(edit, before));
    }
    return { changes, text: settings.text() };
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it cannot be read';
    throw new Error(`${file} was left as it is: ${why}.`, { cause: error });
  }
}

class JsonSettings implements SettingsText {
  #text: string;

  constructor(text: string) {
    this.#text = text.trim() === '' ? '{}\n' : text;
  }

  at(path: readonly Step[]): Json | undefined {
    return jsonAt(this.#text, path);
  }

  set(path: readonly Step[], value: Json | undefined): void {
    this.#text =
      value === undefined ? withoutJsonAt(this.#text, path) : withJsonAt(this.#text, path, value);
  }

  text(): string {
    return this.#text;
  }
}

class YamlSettings implements SettingsText {
  readonly #document: Document;

  constructor(text: string) {
    this.#document = parseDocument(text);
    const [error] = this.#document.errors;
    if (error !== undefined) throw new Error(error.message.split('\n')[0]?.replace(/:$/, ''));
  }

  at(path: readonly Step[]): Json | undefined {
    const { keys, missing } = this.#keys(path);
    if (missing.length > 0) return undefined;
    const value: Json | undefined = this.#json(keys);
    return value;
  }

  set(path: readonly Step[], value: Json | undefined): void {
    const { keys, missing } = this.#keys(path);
    if (value === undefined) return void this.#document.deleteIn(keys);
    const [step, ...rest] = missing;
    if (step === undefined) return this.#document.setIn(keys, this.#document.createNode(value));
    const parent = keys.length === 0 ? this.#document.contents : this.#document.getIn(keys, true);
    const isRight = typeof step === 'string' ? isMap(parent) : isSeq(parent);
    const isEmpty = parent === null || parent === undefined || isNull(parent);
    if (!isEmpty && !isRight) {
      const name = keys.length === 0 ? 'the whole' : keys.join('.');
      throw new Error(`${name} is not ${typeof step === 'string' ? 'an object' : 'a list'}`);
    }
    const made = placed(undefined, missing, value);
    if (!isRight) {
      const node = this.#document.createNode(made);
      if (keys.length === 0) this.#document.contents = node;
      else this.#document.setIn(keys, node);
    } else if (typeof step === 'string') {
      const node = this.#document.createNode(placed(undefined, rest, value));
      this.#document.setIn([...keys, step], node);
    } else {
      this.#document.addIn(keys, this.#document.createNode(placed({ ...step }, rest, value)));
    }
  }

  text(): string {
    return this.#document.toString({ lineWidth: 0 });
  }

  #json(keys: readonly (string | number)[]): Json | undefined {
    let at: Json | undefined = this.#document.toJS() ?? undefined;
    for (const key of keys) {
      if (Array.isArray(at)) at = at[Number(key)];
      else at = isObject(at) ? at[key] : undefined;
    }
    return at;
  }

  /** The path as far as it is there, elements by their place, and what is missing of it. */
  #keys(path: readonly Step[]): { keys: readonly (string | number)[]; missing: readonly Step[] } {
    const keys: (string | number)[] = [];
    for (const [depth, step] of path.entries()) {
      const at = this.#json(keys);
      const key =
        typeof step === 'string'
          ? step
          : Array.isArray(at)
            ? at.findIndex((item) => isElement(item, step))
            : -1;
      if (key === -1 || this.#json([...keys, key]) === undefined) {
        return { keys, missing: path.slice(depth) };
      }
      keys.push(key);
    }
    return { keys, missing: [] };
  }
}

/** `name:` with nothing behind it. */
function isNull(node: unknown): boolean {
  return isScalar(node) && node.value === null;
}

function replaceFile(path: string, text: string, mode: number | undefined): void {
  const fresh = `${path}.new-${process.pid}`;
  try {
    writeFileSync(fresh, text, mode === undefined ? {} : { mode });
    if (mode !== undefined && process.platform !== 'win32') chmodSync(fresh, mode);
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
}

function changeText({ path, value, secret }: SettingsEdit, before: Json | undefined): string {
  const name = path.map(stepText).join('.');
  if (value === undefined) return `${name} removed (was ${JSON.stringify(before)})`;
  if (secret === true) return `${name} ${before === undefined ? 'set' : 'replaced'}`;
  const now = `${name} = ${JSON.stringify(value)}`;
  return before === undefined ? now : `${now} (was ${JSON.stringify(before)})`;
}

/**
 * Copies the file under the first free name in the same folder, readable by the owner only: it may contain an
 * old key.
 */
function keepCopy(path: string, { mode }: Stats): string {
  for (let n = 0; ; n++) {
    const copy = n === 0 ? `${path}.bak` : `${path}.bak${n}`;
    try {
      copyFileSync(path, copy, constants.COPYFILE_EXCL);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') continue;
      throw error;
    }
    if (process.platform !== 'win32') chmodSync(copy, mode & 0o700);
    return copy;
  }
}
