/** Finds the field that a row's path speaks of in a request: `messages[user].content[text].text`. */
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';

interface Found {
  readonly path: readonly (string | number)[];
  readonly value: Json | undefined;
}

/** Concrete paths, spelled `messages.0.content.1.text`; none where the request has no such field. */
export function locate(body: JsonObject, rowPath: string): readonly string[] {
  return find(body, rowPath).map(({ path }) => path.join('.'));
}

/** What stands there. */
export function valuesAt(body: JsonObject, rowPath: string): readonly (Json | undefined)[] {
  return find(body, rowPath).map(({ value }) => value);
}

function find(body: JsonObject, rowPath: string): readonly Found[] {
  let found: readonly Found[] = [{ path: [], value: body }];
  for (const [, key = '', tagged, tag = ''] of rowPath.matchAll(
    /([a-z_0-9]+)(\[([a-z_0-9]*)\])?/gi,
  )) {
    found = found.flatMap(each).flatMap((one) => member(one, key));
    if (tagged !== undefined) found = found.flatMap(each).filter(({ value }) => isOf(value, tag));
  }
  return found;
}

function member({ path, value }: Found, key: string): readonly Found[] {
  if (!isObject(value) || value[key] === undefined) return [];
  return [{ path: [...path, key], value: value[key] }];
}

/** The entries of a list; anything else itself. */
function each({ path, value }: Found): readonly Found[] {
  if (!Array.isArray(value)) return [{ path, value }];
  return value.map((entry: Json, i) => ({ path: [...path, i], value: entry }));
}

function isOf(value: Json | undefined, tag: string): boolean {
  if (!isObject(value)) return false;
  const { type, role } = value;
  const typed = type === undefined || type === 'message' ? undefined : type;
  return (
    tag === '' || (typed ?? role ?? type ?? ('function' in value ? 'function' : 'custom')) === tag
  );
}

/** `messages[0].content` as `messages.0.content`. */
export function dotted(path: string): string {
  return path.replace(/\[(\d+)\]/g, '.$1');
}

/** Whether a note or refusal that names `named` speaks of the field at `path`. */
export function speaksOf(named: string, path: string): boolean {
  const [a, b] = [named.split('.'), path.split('.')];
  const shared = Math.min(a.length, b.length);
  return a.length >= b.length - 1 && a.slice(0, shared).join('.') === b.slice(0, shared).join('.');
}
