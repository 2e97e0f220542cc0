/** Reads members of a request body; each failure is a 400 that names the member. */
import { invalid } from './engine-error.ts';
import { member, type JsonObject } from './json.ts';

export interface Range {
  readonly min?: number;
  readonly max?: number;
}

export function number(body: JsonObject, field: string, range: Range): number | undefined {
  const value = member(body, field);
  if (value === undefined) return undefined;
  if (typeof value !== 'number') throw wrongType(field, 'a number');
  const { min = -Infinity, max = Infinity } = range;
  if (value >= min && value <= max) return value;
  throw invalid(`Invalid "${field}": expected a value ${describeRange(range)}.`, field);
}

function describeRange({ min, max }: Range): string {
  if (max === undefined) return `of at least ${min}`;
  return `between ${min} and ${max}`;
}

export function integer(body: JsonObject, field: string, range: Range): number | undefined {
  const value = number(body, field, range);
  if (value !== undefined && !Number.isInteger(value)) throw wrongType(field, 'an integer');
  return value;
}

/** Absent is false. */
export function flag(body: JsonObject, field: string): boolean {
  const value = member(body, field);
  if (value === undefined) return false;
  if (typeof value !== 'boolean') throw wrongType(field, 'a boolean');
  return value;
}

export function wrongType(param: string, expected: string): Error {
  return invalid(`Invalid type for "${param}": expected ${expected}.`, param, 'invalid_type');
}
