/**
 * Goldens: what the product shows, kept as text under `files/`. `npm run goldens` writes them again; the diff is
 * what a review reads. Prose (help texts, descriptions) has files of its own, so that a reworded sentence changes
 * no file that a program depends on.
 */
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { isObject, type Json } from '../../src/json/value.ts';

const width = 110;

/** Compares `text` with its golden, or writes the golden under `--test-update-snapshots`. */
export function assertGolden(t: TestContext, name: string, text: string): void {
  const path = join(import.meta.dirname, 'files', name);
  t.assert.fileSnapshot(text, path, { serializers: [String] });
}

/** JSON with a line for each value that does not fit into one. */
export function laidOut(value: Json): string {
  return lines(value, '', '', undefined);
}

/** Compares values that are longer than this, and writes each only once. */
const longValue = 300;

function lines(value: Json, path: string, indent: string, seen?: Map<string, string>): string {
  const short = JSON.stringify(value);
  if (indent.length + short.length <= width || value === null || typeof value !== 'object') {
    return short;
  }
  const first = seen?.get(short);
  if (first !== undefined) return `"as ${first}"`;
  if (short.length > longValue) seen?.set(short, path);
  const deeper = `${indent}  `;
  const isList = Array.isArray(value);
  const members = isList
    ? value.map((each: Json, i) => lines(each, `${path}/${i}`, deeper, seen))
    : Object.entries(value).map(
        ([key, each]) =>
          `${JSON.stringify(key)}: ${lines(each ?? null, `${path}/${key}`, deeper, seen)}`,
      );
  const [open, close] = isList ? ['[', ']'] : ['{', '}'];
  return `${open}\n${deeper}${members.join(`,\n${deeper}`)}\n${indent}${close}`;
}

const proseKeys = new Set(['description', 'summary', 'title']);

/**
 * A schema or an OpenAPI document as two texts: what programs read, and the sentences. A long part that stands
 * in several places is written once.
 */
export function splitProse(document: Json): { readonly form: string; readonly prose: string } {
  const sentences = new Set<string>();
  const visit = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(visit);
    if (!isObject(value)) return value;
    const members = Object.entries(value).flatMap(([key, each]): [string, Json][] => {
      if (each === undefined) return [];
      if (!proseKeys.has(key) || typeof each !== 'string') return [[key, visit(each)]];
      sentences.add(each);
      return [];
    });
    return Object.fromEntries(members);
  };
  const form = `${lines(visit(document), '', '', new Map())}\n`;
  return { form, prose: `${[...sentences].join('\n')}\n` };
}
