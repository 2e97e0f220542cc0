/** The frames of a stream with what legality needs to know of their lines. */
import assert from 'node:assert/strict';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';

export interface WireFrame {
  readonly event: string | undefined;
  readonly data: string;
}

/**
 * Who made the frames: `own` = written by the gateway, which must be legal to the letter; `relayed` =
 * an upstream's own words, which must only hold what the official clients need.
 */
export type Origin = 'own' | 'relayed';

/** Splits a stream into its frames; comments are left out, everything else must be an event. */
export function wireFrames(text: string): readonly WireFrame[] {
  assert.ok(
    text === '' || /(?:\r\n|\n|\r){2}$/.test(text),
    `cut within a frame: ${text.slice(-80)}`,
  );
  return text
    .split(/\r\n\r\n|\n\n|\r\r/)
    .map((block) =>
      block.split(/\r\n|\n|\r/).filter((line) => line !== '' && !line.startsWith(':')),
    )
    .filter((lines) => lines.length > 0)
    .map(wireFrame);
}

function wireFrame(lines: readonly string[]): WireFrame {
  const data: string[] = [];
  let event: string | undefined;
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === 'data') data.push(value);
    else if (name === 'event') event = value;
    else assert.ok(name === 'id' || name === 'retry', `not a field of an event: ${line}`);
  }
  assert.ok(data.length > 0, `E3: an event without data: ${lines.join('|')}`);
  return { event, data: data.join('\n') };
}

export function objectOf(data: string): JsonObject {
  const value = tryParseObject(data);
  assert.ok(value !== undefined, `E3: not a JSON object: ${data}`);
  return value;
}

/** Every key is one of those. */
export function assertKeys(value: JsonObject, allowed: readonly string[], where: string): void {
  for (const key of Object.keys(value)) assert.ok(allowed.includes(key), `${where} has no ${key}`);
}

/** Each of the keys is there, with whatever value. */
export function assertHas(value: JsonObject, needed: readonly string[], where: string): void {
  for (const key of needed) assert.ok(key in value, `${where} lacks ${key}`);
}

/** Counts are whole and not negative. */
export function assertCount(value: unknown, where: string): number {
  assert.ok(
    Number.isSafeInteger(value) && Number(value) >= 0,
    `${where} is no count: ${String(value)}`,
  );
  return Number(value);
}
