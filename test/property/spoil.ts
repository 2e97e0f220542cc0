/** Spoils a JSON value at one place. */
import * as fc from 'fast-check';
import { isObject, type Json } from '../../src/json/value.ts';
import { tryParse } from '../../src/json/parse.ts';
import { json } from './arbitraries.ts';

/** The value with one of its places, chosen by the numbers, replaced. */
export function spoil(value: Json | undefined, way: readonly number[], by: Json): Json | undefined {
  const [step, ...rest] = way;
  if (step === undefined) return by;
  if (Array.isArray(value) && value.length > 0) {
    return value.map((item, index) =>
      index === step % value.length ? spoil(item, rest, by) : item,
    );
  }
  if (isObject(value)) {
    const keys = Object.keys(value);
    const key = keys[step % Math.max(1, keys.length)];
    if (key !== undefined) return { ...value, [key]: spoil(value[key], rest, by) };
  }
  return by;
}

/** Which way to go at each level. */
export const way = fc.array(fc.nat({ max: 11 }), { minLength: 1, maxLength: 6 });

/** Unexpected values. */
export const odd: fc.Arbitrary<Json> = fc
  .oneof(json, fc.constantFrom(null, '', [], {}, [[]], [null], -1, 1e308, true))
  .map((value) => tryParse(JSON.stringify(value)) ?? null);
