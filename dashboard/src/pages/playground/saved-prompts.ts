/** Prompts that are stored in this browser, by name. */
import { isRecord } from './formats/request.ts';
import { readSnapshot, type Snapshot } from './formats/snapshot.ts';

export interface SavedPrompt {
  readonly name: string;
  /** ISO 8601. */
  readonly savedAt: string;
  readonly snapshot: Snapshot;
}

const storageKey = 'model-gateway-playground-prompts';

/** By name. What cannot be read is omitted: it may be of another version. */
export function readSaved(): readonly SavedPrompt[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey) ?? '[]');
    return Array.isArray(stored) ? stored.flatMap(savedOf) : [];
  } catch {
    return [];
  }
}

function savedOf(value: unknown): readonly SavedPrompt[] {
  if (!isRecord(value)) return [];
  const { name, savedAt } = value;
  const snapshot = readSnapshot(value['snapshot']);
  if (typeof name !== 'string' || typeof savedAt !== 'string' || snapshot === undefined) return [];
  return [{ name, savedAt, snapshot }];
}

/** Replaces the one of the same name. @returns all; undefined: the browser does not keep it */
export function savePrompt(prompt: SavedPrompt): readonly SavedPrompt[] | undefined {
  const others = readSaved().filter(({ name }) => name !== prompt.name);
  return write([...others, prompt].toSorted((a, b) => a.name.localeCompare(b.name)));
}

/** @returns all others; undefined: the browser does not keep the change */
export function deletePrompt(name: string): readonly SavedPrompt[] | undefined {
  return write(readSaved().filter((each) => each.name !== name));
}

function write(prompts: readonly SavedPrompt[]): readonly SavedPrompt[] | undefined {
  try {
    localStorage.setItem(storageKey, JSON.stringify(prompts));
    return prompts;
  } catch {
    // Full, or switched off.
    return undefined;
  }
}
