/** Answers of the admin API as commands need them. */
import { isObject, type Json, type JsonObject } from '../json/value.ts';
import { decimalText } from '../core/money.ts';
import { UsageError } from './arguments.ts';
import type { AdminReply } from './command.ts';

/** The flag behind a field of the API where their names differ. */
const flagOf: ReadonlyMap<string, string> = new Map([
  ['expires_in', 'expires'],
  ['expires_at', 'expires'],
  ['cidrs', 'cidr'],
  ['time_zone', 'zone'],
]);

/**
 * The object of a successful answer.
 * @throws UsageError when a field is wrong, naming its flag; Error with the API's text otherwise.
 */
export function requireOk({ status, body }: AdminReply): JsonObject {
  if (status >= 200 && status < 300 && isObject(body)) return body;
  const error = isObject(body) ? body['error'] : undefined;
  const { message, field } = isObject(error) ? error : {};
  const text = typeof message === 'string' ? message : `The gateway answered with ${status}.`;
  if (status !== 400 || typeof field !== 'string') throw new Error(text);
  const name = field.split('.')[0] ?? field;
  // The flag takes a date as well, which is another field of the API.
  const also = name === 'expires_in' ? ', or a date such as 2026-12-31' : '';
  throw new UsageError(`--${flagOf.get(name) ?? name}: ${text}${also}`);
}

/** A member that is a list of objects; anything else counts as none. */
export function objectsOf(body: JsonObject, name: string): readonly JsonObject[] {
  const value = body[name];
  return Array.isArray(value) ? value.filter((item) => isObject(item)) : [];
}

/** A value as a cell of a table: lists joined, `-` for what is not there. */
export function cell(value: Json | undefined): string {
  if (value === undefined || value === null || value === '') return '-';
  if (Array.isArray(value)) return value.map(cell).join(',') || '-';
  if (typeof value === 'object') return JSON.stringify(value);
  // Fractions are dollars of at most twelve decimals; they are not shown as 1.2e-8.
  const tiny = typeof value === 'number' && Math.abs(value) < 1e-6 && value !== 0;
  return tiny ? decimalText(Math.round(value * 1e12), 12) : String(value);
}

/** JSON for programs. */
export function jsonText(value: Json): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
