/** Columns of tables, and the values in the rows of either engine; NULL is absent. */
import type { Price, Rates } from '../core/money.ts';
import type { Budget, NamedBy, Policy, RateLimit } from '../core/policy.ts';
import { tryParse } from '../json/parse.ts';
import { isObject, type Json, type JsonObject } from '../json/value.ts';
import type { BudgetWindow } from './calls.ts';
import type { PreviousSecret } from './records.ts';
import { StoreError } from './store-error.ts';

/** A row as either engine reads it. */
export type Columns = Record<string, unknown>;
export type Value = string | number | null;

/**
 * `name`: a text that is compared in the order of its bytes. `ref`: the id of a row in another table, an integer in
 * SQLite, a UUID in PostgreSQL. `integer`: small numbers and flags. `count`: whole numbers up to 2^53.
 */
export type ColumnType = 'name' | 'text' | 'integer' | 'count' | 'real' | 'ref';

/** One column of a table that both engines have, and its value in a record. */
export interface Column<T> {
  readonly name: string;
  readonly type: ColumnType;
  /** Never NULL. */
  readonly required: boolean;
  readonly of: (record: T) => Value;
}

export function column<T>(name: string, type: ColumnType, of: (record: T) => Value): Column<T> {
  return { name, type, required: false, of };
}

/** A column that is never NULL. */
export function required<T>(name: string, type: ColumnType, of: (record: T) => Value): Column<T> {
  return { name, type, required: true, of };
}

/** The columns' names, in their order. */
export function namesOf<T>(columns: readonly Column<T>[]): readonly string[] {
  return columns.map(({ name }) => name);
}

/** The record's values, in the order of the columns. `map` makes a list of the right length: one that grows is copied. */
export function valuesOf<T>(columns: readonly Column<T>[], record: T): Value[] {
  return columns.map(({ of }) => of(record));
}

export function text(row: Columns, column: string): string {
  return optionalText(row, column) ?? '';
}

export function optionalText(row: Columns, column: string): string | undefined {
  const value = row[column];
  return typeof value === 'string' ? value : undefined;
}

export function number(row: Columns, column: string): number {
  return optionalNumber(row, column) ?? 0;
}

export function optionalNumber(row: Columns, column: string): number | undefined {
  const value = row[column];
  return typeof value === 'number' ? value : undefined;
}

/** A number that a STRICT integer column takes: one invalid number must not block a whole batch. */
export function whole(value: number | undefined): number | null {
  if (value === undefined) return null;
  const rounded = Math.round(value);
  return Number.isSafeInteger(rounded) ? rounded : null;
}

export function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}

/** A member only when there is a value: absent stays absent. */
export function present<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  const member: { [P in K]?: V } = {};
  if (value !== undefined) member[key] = value;
  return member;
}

/** `INSERT` of these columns, all of them parameters. */
export function insertInto(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
}

/*
 * Values that are kept as JSON text. An unreadable value is damage, never "no limit": reading it as empty would
 * open what a policy closed.
 */

/** A JSON value that is already parsed (PostgreSQL), or its text (SQLite). */
export type Stored = Json;

export function readTexts(stored: Stored): readonly string[] {
  return listOf(stored, 'a list of texts').map((item) => {
    if (typeof item !== 'string') throw unreadable('a text');
    return item;
  });
}

export function readPolicy(stored: Stored): Policy {
  const policy = objectOf(parsed(stored), 'a policy');
  return {
    limits: listOf(policy['limits'], 'limits').map(readLimit),
    budgets: listOf(policy['budgets'], 'budgets').map(readBudget),
  };
}

/** For a policy that several keys share: which keys and teams may set it, if given. */
export function readNamedBy(stored: Stored): { readonly namedBy?: NamedBy } {
  const { namedBy } = objectOf(parsed(stored), 'a policy');
  if (namedBy === undefined) return {};
  const { keys, teams } = objectOf(namedBy, 'who may name a tag');
  return { namedBy: { keys: textsOf(keys), teams: textsOf(teams) } };
}

function textsOf(value: Json | undefined): readonly string[] {
  return listOf(value, 'names').map((name) => {
    if (typeof name !== 'string') throw unreadable('a name');
    return name;
  });
}

function readLimit(value: Json): RateLimit {
  const limit = objectOf(value, 'a limit');
  const kind = limit['kind'];
  if (kind !== 'requests' && kind !== 'tokens' && kind !== 'concurrent') {
    throw unreadable('the kind of a limit');
  }
  const model = optionalMemberText(limit, 'model');
  return { kind, amount: memberNumber(limit, 'amount'), ...(model === undefined ? {} : { model }) };
}

function readBudget(value: Json): Budget {
  const budget = objectOf(value, 'a budget');
  const per = budget['per'];
  if (per !== 'day' && per !== 'week' && per !== 'month' && per !== 'ever') {
    throw unreadable('the period of a budget');
  }
  return {
    nanodollars: memberNumber(budget, 'nanodollars'),
    per,
    timeZone: memberText(budget, 'timeZone'),
  };
}

export function readPrevious(stored: Stored): readonly PreviousSecret[] {
  return listOf(stored, 'previous secrets').map((value): PreviousSecret => {
    const secret = objectOf(value, 'a previous secret');
    return {
      digest: memberText(secret, 'digest'),
      ...(secret['peppered'] === true ? { peppered: true } : {}),
      replacedAt: memberNumber(secret, 'replacedAt'),
      validUntil: memberNumber(secret, 'validUntil'),
    };
  });
}

export function readBudgets(stored: Stored): readonly BudgetWindow[] {
  return listOf(stored, 'budgets of a call').map((value) => {
    const budget = objectOf(value, 'a budget of a call');
    const endsAt = optionalMemberNumber(budget, 'endsAt');
    const { lease } = budget;
    return {
      counter: memberText(budget, 'counter'),
      window: memberText(budget, 'window'),
      ...(endsAt === undefined ? {} : { endsAt }),
      ...(typeof lease === 'string' ? { lease } : {}),
    };
  });
}

export function readPrice(stored: Stored): Price {
  const price = objectOf(parsed(stored), 'a price');
  return {
    ...numbersOf(price, optionalAmounts),
    rates: readRates(price['rates']),
    tiers: listOf(price['tiers'], 'tiers of a price').map((value) => {
      const tier = objectOf(value, 'a tier');
      return { above: memberNumber(tier, 'above'), rates: readRates(tier['rates']) };
    }),
    source: memberText(price, 'source'),
  };
}

// All optional members: the types make a forgotten one an error here.
const optionalAmounts: {
  readonly [K in Exclude<keyof Price, 'rates' | 'tiers' | 'service' | 'source'>]: K;
} = {
  call: 'call',
  webSearch: 'webSearch',
  fileSearch: 'fileSearch',
  perImage: 'perImage',
};
const optionalRates: { readonly [K in Exclude<keyof Rates, 'input' | 'output'>]: K } = {
  cacheRead: 'cacheRead',
  cacheWrite: 'cacheWrite',
  cacheWriteLong: 'cacheWriteLong',
  reasoning: 'reasoning',
  audioInput: 'audioInput',
  imageInput: 'imageInput',
  videoInput: 'videoInput',
  audioCacheRead: 'audioCacheRead',
  audioOutput: 'audioOutput',
  imageOutput: 'imageOutput',
};

function readRates(value: Json | undefined): Rates {
  const rates = objectOf(value, 'rates');
  return {
    input: memberNumber(rates, 'input'),
    output: memberNumber(rates, 'output'),
    ...numbersOf(rates, optionalRates),
  };
}

/** Those of the named members that are there. */
function numbersOf<K extends string>(
  object: JsonObject,
  names: { readonly [N in K]: N },
): { [N in K]?: number } {
  const found: { [N in K]?: number } = {};
  for (const name of Object.values<K>(names)) {
    const value = optionalMemberNumber(object, name);
    if (value !== undefined) found[name] = value;
  }
  return found;
}

function parsed(stored: Stored): Json | undefined {
  return typeof stored === 'string' ? tryParse(stored) : stored;
}

function listOf(stored: Json | undefined, what: string): readonly Json[] {
  const value = stored === undefined ? undefined : parsed(stored);
  if (!Array.isArray(value)) throw unreadable(what);
  return value;
}

function objectOf(value: Json | undefined, what: string): JsonObject {
  if (!isObject(value)) throw unreadable(what);
  return value;
}

function memberText(object: JsonObject, name: string): string {
  const value = optionalMemberText(object, name);
  if (value === undefined) throw unreadable(name);
  return value;
}

function optionalMemberText(object: JsonObject, name: string): string | undefined {
  const value = object[name];
  return typeof value === 'string' ? value : undefined;
}

function memberNumber(object: JsonObject, name: string): number {
  const value = optionalMemberNumber(object, name);
  if (value === undefined) throw unreadable(name);
  return value;
}

function optionalMemberNumber(object: JsonObject, name: string): number | undefined {
  const value = object[name];
  return typeof value === 'number' ? value : undefined;
}

function unreadable(what: string): StoreError {
  return new StoreError('corrupt', `The store holds something that is not ${what}.`);
}

export function compareText(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
