/** What differs between a request that was sent and the one that a vendor got, and whether a note says so. */
import { isDeepStrictEqual } from 'node:util';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { listAt } from '../support/reading.ts';

/** Members that every relayed request may differ in (docs/maintainer/path.md). */
const own: ReadonlySet<string> = new Set(['model', 'stream_options']);
/** What is meant where nothing is said: it may be left out (wire/translation.md, principle 1). */
const defaults: JsonObject = { n: 1, store: false, logprobs: false, parallel_tool_calls: true };

/**
 * Paths of changes that no note names. A member that was added stands for one that a note names. In the
 * messages the first change of a kind must be named, by the path of its message or of what it changed.
 */
export function unnamedChanges(
  sent: JsonObject,
  received: JsonObject,
  notes: string,
): readonly string[] {
  const named = notes.split('; ').map((note) => note.slice(0, note.indexOf(':')));
  const missing: string[] = [];
  for (const name of Object.keys(sent)) {
    if (own.has(name) || name === 'messages') continue;
    if (isDeepStrictEqual(sent[name], received[name])) continue;
    if (!(name in received) && sent[name] === defaults[name]) continue;
    if (!named.some((path) => path === name || path.startsWith(`${name}.`))) missing.push(name);
  }
  for (const name of Object.keys(received)) {
    if (own.has(name) || name in sent) continue;
    if (!notes.includes(name) && named.every((path) => path === '')) missing.push(`+${name}`);
  }
  return [...missing, ...unnamedMessages(sent, received, named)];
}

/**
 * What no note tells of: names that stand for names (ids of calls), hints (marks of caches; wire/translation.md §8),
 * and what an upstream wants back of its own answers (docs/user/reasoning.md).
 */
const silent = /(\.tool_calls\.\d+\.id|\.tool_call_id|\.cache_control|\.reasoning_content)$/;

function unnamedMessages(
  sent: JsonObject,
  received: JsonObject,
  named: readonly string[],
): readonly string[] {
  const before = listAt(sent, 'messages');
  const after = listAt(received, 'messages');
  const roles = (messages: readonly JsonObject[]): string =>
    messages.map(({ role }) => (role === 'developer' ? 'system' : role)).join();
  if (before.length !== after.length || roles(before) !== roles(after)) {
    return unnamedMoves(before, after, named);
  }
  const kinds = new Map<string, string>();
  before.forEach((message, i) => {
    for (const path of changedPaths(message, after[i], `messages.${i}`)) {
      const kind = path.replace(/\d+/g, '#');
      if (!kinds.has(kind) && !silent.test(path)) kinds.set(kind, path);
    }
  });
  return [...kinds.values()].filter((path) => {
    // What stands where nothing stood is told by the note of what it was made of.
    const [, i = '', ...inner] = path.split('.');
    const added = saysNothing(before[Number(i)]?.[inner.join('.')] ?? null);
    const about = added ? `messages.${i}` : path;
    return !named.some((name) => isWithin(path, name) || isWithin(name, about));
  });
}

/** Where messages came, went or moved, a note names one of each role that is not as it was. */
function unnamedMoves(
  before: readonly JsonObject[],
  after: readonly JsonObject[],
  named: readonly string[],
): readonly string[] {
  const there = after.map(plain);
  const moved = before.filter(
    (message) => !there.some((each) => isDeepStrictEqual(each, plain(message))),
  );
  const told = before.filter((_, i) => named.some((name) => isWithin(name, `messages.${i}`)));
  const missing = moved.filter(({ role }) => !told.some((message) => message['role'] === role));
  if (missing.length > 0) return missing.map((message) => `messages: ${JSON.stringify(message)}`);
  // A format that the vendor does not know is asked for in an instruction.
  const asked = named.some((name) => name.startsWith('response_format'));
  return told.length === 0 && !asked ? ['messages'] : [];
}

/** A message without what no note tells of. */
function plain(message: JsonObject): JsonObject {
  const text = JSON.stringify(message, (key, value: Json) =>
    key === 'id' || key === 'extra_content' || silent.test(`.${key}`) ? undefined : value,
  );
  return tryParseObject(text) ?? {};
}

function isWithin(path: string, outer: string): boolean {
  return path === outer || (outer.startsWith('messages.') && path.startsWith(`${outer}.`));
}

/** Of the innermost values that differ. A member that says nothing may be there or not. */
function changedPaths(before: Json | undefined, after: Json | undefined, path: string): string[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((value, i) => changedPaths(value, after[i], `${path}.${i}`));
  }
  if (!isObject(before) || !isObject(after)) return [path];
  return Object.keys(before)
    .filter((key) => key in after || !saysNothing(before[key]))
    .flatMap((key) => changedPaths(before[key], after[key], `${path}.${key}`));
}

function saysNothing(value: Json | undefined): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}
