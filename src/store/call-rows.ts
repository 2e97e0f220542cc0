/**
 * Calls, their attempts and sums of calls as rows: one description of the columns for both engines, and the way
 * back. The columns of token classes follow from core/token-classes.ts.
 */
import { tryParse } from '../json/parse.ts';
import { isObject } from '../json/value.ts';
import { faultKinds, isFault, type Failure } from '../core/faults.ts';
import { summedClasses, tokenClasses, type CountedUsage } from '../core/token-classes.ts';
import type { Cost, Price } from '../core/money.ts';
import type { AttemptRow, BudgetWindow, CallOutcome, CallRow, FailureGroup } from './calls.ts';
import {
  column,
  finite,
  namesOf,
  number,
  optionalNumber,
  optionalText,
  present,
  required,
  text,
  whole,
  readBudgets,
  readPrice,
  readTexts,
  type Column,
  type Columns,
  type Value,
} from './columns.ts';
import { noSums, type LatencySample, type Sums } from './roll-up.ts';
import { schemaVersion } from './schema.ts';
import { StoreError } from './store-error.ts';

function countColumns<T>(
  kind: 'reported' | 'charged',
  of: (record: T) => CountedUsage | undefined,
): Column<T>[] {
  return tokenClasses.map(({ member, column: name }) =>
    column(`${kind}_${name}`, 'count', (record) => whole(of(record)?.[member])),
  );
}

function failureColumns<T extends { readonly failure?: Failure }>(): Column<T>[] {
  return [
    column('fault', 'text', ({ failure }) => failure?.fault ?? null),
    column('reason', 'text', ({ failure }) => failure?.reason ?? null),
    column('message', 'text', ({ failure }) => failure?.message ?? null),
    column('refused_by', 'text', ({ failure }) => failure?.limit ?? null),
  ];
}

const costColumns: readonly Column<CallRow>[] = [
  column('cost', 'count', ({ cost }) => whole(cost?.total)),
  column('cost_input', 'count', ({ cost }) => whole(cost?.input)),
  column('cost_cache_read', 'count', ({ cost }) => whole(cost?.cacheRead)),
  column('cost_cache_write', 'count', ({ cost }) => whole(cost?.cacheWrite)),
  column('cost_output', 'count', ({ cost }) => whole(cost?.output)),
  column('cost_reasoning', 'count', ({ cost }) => whole(cost?.reasoning)),
  column('cost_call', 'count', ({ cost }) => whole(cost?.call)),
];

/** `price_id` has the price's text here; the engine that writes replaces it with the id of that text. */
export const callTable: readonly Column<CallRow>[] = [
  required('id', 'name', ({ id }) => id),
  required('started_at', 'count', ({ startedAt }) => Math.round(startedAt)),
  required('key_id', 'name', ({ keyId }) => keyId),
  column('team', 'text', ({ team }) => team ?? null),
  column('tags', 'text', ({ tags }) => (tags.length === 0 ? null : JSON.stringify(tags))),
  column('user_name', 'text', ({ user }) => user ?? null),
  column('metadata', 'text', ({ metadata }) => metadata ?? null),
  required('endpoint', 'text', ({ endpoint }) => endpoint),
  required('model', 'text', ({ model }) => model),
  column('provider', 'text', ({ provider }) => provider ?? null),
  column('upstream_model', 'text', ({ upstreamModel }) => upstreamModel ?? null),
  column('mode', 'text', ({ mode }) => mode ?? null),
  required('stream', 'integer', ({ stream }) => (stream ? 1 : 0)),
  required('outcome', 'text', ({ outcome }) => outcome),
  column('status', 'integer', ({ status }) => whole(status)),
  column('error', 'text', ({ error }) => error ?? null),
  ...failureColumns<CallRow>(),
  required('attempts', 'integer', ({ attempts }) => attempts),
  ...countColumns<CallRow>('reported', ({ reported }) => reported),
  ...countColumns<CallRow>('charged', ({ charged }) => charged),
  required('usage_source', 'text', ({ usageSource }) => usageSource),
  ...costColumns,
  column('cache_saved', 'count', ({ cacheSaved }) => whole(cacheSaved)),
  column('price_id', 'ref', ({ price }) => (price === undefined ? null : priceText(price))),
  column('budgets', 'text', ({ budgets }) => (budgets.length === 0 ? null : budgetsText(budgets))),
  column('reserved', 'count', ({ reservedNanodollars }) => whole(reservedNanodollars)),
  column('flags', 'integer', flagsOf),
  column('first_event_ms', 'real', ({ firstEventMs }) => finite(firstEventMs)),
  required('total_ms', 'real', ({ totalMs }) => finite(totalMs) ?? 0),
  column('notes', 'text', ({ notes }) => notes ?? null),
];

/** The engine puts the call and the attempt's number before these. */
export const attemptTable: readonly Column<AttemptRow>[] = [
  required('provider', 'text', ({ provider }) => provider),
  required('upstream_model', 'text', ({ upstreamModel }) => upstreamModel),
  required('started_at', 'count', ({ startedAt }) => Math.round(startedAt)),
  required('ms', 'real', ({ ms }) => finite(ms) ?? 0),
  column('status', 'integer', ({ status }) => whole(status)),
  required('outcome', 'text', ({ outcome }) => outcome),
  column('error', 'text', ({ error }) => error ?? null),
  ...failureColumns<AttemptRow>(),
  column('maybe_billed', 'integer', ({ maybeBilled }) => (maybeBilled === true ? 1 : null)),
  column('credential', 'text', ({ credential }) => credential ?? null),
  ...countColumns<AttemptRow>('reported', ({ reported }) => reported),
];

/** Sums of calls; the engine puts time and group before these. */
export const sumTable: readonly Column<Sums>[] = [
  required('calls', 'count', ({ calls }) => calls),
  required('failed', 'count', ({ failed }) => failed),
  ...faultKinds.map(({ member, column: name }) =>
    required<Sums>(name, 'count', (sums) => sums[member]),
  ),
  required('input_tokens', 'count', ({ inputTokens }) => inputTokens),
  ...summedClasses.map(({ member, column: name }) =>
    required<Sums>(name, 'count', (sums) => sums[member]),
  ),
  required('priced_calls', 'count', ({ pricedCalls }) => pricedCalls),
  required('unpriced_calls', 'count', ({ unpricedCalls }) => unpricedCalls),
  required('nanodollars', 'count', ({ nanodollars }) => nanodollars),
  required('cache_saved', 'count', ({ cacheSaved }) => cacheSaved),
];

export const callColumns = namesOf(callTable);
export const attemptColumns = namesOf(attemptTable);
export const sumColumns = namesOf(sumTable);

/**
 * A call and, after it, its attempts as flat values: they pass from thread to thread at half the cost
 * of nested objects.
 */
export type CallValues = readonly Value[];

export function callValues(row: CallRow): CallValues {
  // Not `map`: V8 writes a list that was made with its length as pairs of index and value, and reads it three times slower.
  const values: Value[] = [];
  for (const read of readersOf(row.attemptRows.length)) values.push(read(row));
  return values;
}

type Reader = (row: CallRow) => Value;

/** The readers of all values of a call, by its number of attempts: its values are one list, made in one piece. */
const readers = new Map<number, readonly Reader[]>();

function readersOf(attempts: number): readonly Reader[] {
  const known = readers.get(attempts);
  if (known !== undefined) return known;
  const made = callTable.map(({ of }): Reader => of);
  for (let i = 0; i < attempts; i += 1) {
    for (const { of } of attemptTable) {
      made.push(({ attemptRows }) => {
        const attempt = attemptRows[i];
        return attempt === undefined ? null : of(attempt);
      });
    }
  }
  readers.set(attempts, made);
  return made;
}

/** Both in one column. */
const overrunFlag = 1;
const suspectFlag = 2;

function flagsOf({ overrun, suspect }: CallRow): number | null {
  const flags = (overrun === true ? overrunFlag : 0) | (suspect === true ? suspectFlag : 0);
  return flags === 0 ? null : flags;
}

/** A model's price is one object for all its calls. */
const priceTexts = new WeakMap<Price, string>();

function priceText(price: Price): string {
  let found = priceTexts.get(price);
  if (found === undefined) {
    found = JSON.stringify(price);
    priceTexts.set(price, found);
  }
  return found;
}

/** The windows of a key's budgets are one list until one of them ends. */
const budgetTexts = new WeakMap<readonly BudgetWindow[], string>();

function budgetsText(budgets: readonly BudgetWindow[]): string {
  let found = budgetTexts.get(budgets);
  if (found === undefined) {
    found = JSON.stringify(budgets);
    budgetTexts.set(budgets, found);
  }
  return found;
}

/** @param attempts the call's, in their order; pages have none. */
export function readCallRow(row: Columns, attempts: readonly Columns[]): CallRow {
  const mode = optionalText(row, 'mode');
  const reported = readUsage(row, 'reported');
  return {
    id: text(row, 'id'),
    startedAt: number(row, 'started_at'),
    keyId: text(row, 'key_id'),
    ...present('team', optionalText(row, 'team')),
    tags: row['tags'] === null ? [] : readTexts(text(row, 'tags')),
    ...present('user', optionalText(row, 'user_name')),
    ...present('metadata', optionalText(row, 'metadata')),
    endpoint: text(row, 'endpoint'),
    model: text(row, 'model'),
    ...present('provider', optionalText(row, 'provider')),
    ...present('upstreamModel', optionalText(row, 'upstream_model')),
    ...(mode === 'relay' || mode === 'translate' ? { mode } : {}),
    stream: number(row, 'stream') === 1,
    outcome: readOutcome(text(row, 'outcome')),
    ...present('status', optionalNumber(row, 'status')),
    ...present('error', optionalText(row, 'error')),
    ...present('failure', readFailure(row)),
    attempts: number(row, 'attempts'),
    attemptRows: attempts.map(readAttempt),
    ...present('reported', reported),
    charged: readUsage(row, 'charged') ?? {},
    usageSource: readSource(text(row, 'usage_source')),
    ...readCost(row),
    ...present('cacheSaved', optionalNumber(row, 'cache_saved')),
    ...(row['price'] === null ? {} : { price: readPrice(text(row, 'price')) }),
    budgets: row['budgets'] === null ? [] : readBudgets(text(row, 'budgets')),
    ...present('reservedNanodollars', optionalNumber(row, 'reserved')),
    ...((number(row, 'flags') & overrunFlag) === 0 ? {} : { overrun: true }),
    ...((number(row, 'flags') & suspectFlag) === 0 ? {} : { suspect: true }),
    ...present('firstEventMs', optionalNumber(row, 'first_event_ms')),
    totalMs: number(row, 'total_ms'),
    ...present('notes', optionalText(row, 'notes')),
  };
}

function readAttempt(row: Columns): AttemptRow {
  return {
    provider: text(row, 'provider'),
    upstreamModel: text(row, 'upstream_model'),
    startedAt: number(row, 'started_at'),
    ms: number(row, 'ms'),
    ...present('status', optionalNumber(row, 'status')),
    outcome: readOutcome(text(row, 'outcome')),
    ...present('error', optionalText(row, 'error')),
    ...present('failure', readFailure(row)),
    ...present('reported', readUsage(row, 'reported')),
    ...present('credential', optionalText(row, 'credential')),
    ...(number(row, 'maybe_billed') === 1 ? { maybeBilled: true } : {}),
  };
}

function readFailure(row: Columns): Failure | undefined {
  const fault = optionalText(row, 'fault');
  if (!isFault(fault)) return undefined;
  return {
    fault,
    message: text(row, 'message'),
    ...present('reason', optionalText(row, 'reason')),
    ...present('limit', optionalText(row, 'refused_by')),
  };
}

/** A group of failed calls as either engine reads it. */
export function readFailureGroup(row: Columns): FailureGroup {
  return {
    fault: text(row, 'fault'),
    error: text(row, 'error'),
    reason: text(row, 'reason'),
    limit: text(row, 'refused_by'),
    ...present('status', optionalNumber(row, 'status')),
    key: text(row, 'key_id'),
    team: text(row, 'team'),
    model: text(row, 'model'),
    provider: text(row, 'provider'),
    answered: text(row, 'answered'),
    calls: number(row, 'calls'),
    last: { at: number(row, 'last_at'), id: text(row, 'last_id'), message: text(row, 'message') },
  };
}

function readCost(row: Columns): { cost?: Cost } {
  const total = optionalNumber(row, 'cost');
  if (total === undefined) return {};
  return {
    cost: {
      total,
      input: number(row, 'cost_input'),
      cacheRead: number(row, 'cost_cache_read'),
      cacheWrite: number(row, 'cost_cache_write'),
      output: number(row, 'cost_output'),
      reasoning: number(row, 'cost_reasoning'),
      call: number(row, 'cost_call'),
    },
  };
}

/** Undefined when nothing is known. */
function readUsage(row: Columns, kind: 'reported' | 'charged'): CountedUsage | undefined {
  const usage: { -readonly [C in keyof CountedUsage]: CountedUsage[C] } = {};
  let known = false;
  for (const { member, column: name } of tokenClasses) {
    const count = optionalNumber(row, `${kind}_${name}`);
    if (count === undefined) continue;
    usage[member] = count;
    known = true;
  }
  return known ? usage : undefined;
}

export function readSums(row: Columns): Sums {
  const sums = noSums();
  sums.calls = number(row, 'calls');
  sums.failed = number(row, 'failed');
  for (const { member, column: name } of faultKinds) sums[member] = number(row, name);
  sums.inputTokens = number(row, 'input_tokens');
  sums.pricedCalls = number(row, 'priced_calls');
  sums.unpricedCalls = number(row, 'unpriced_calls');
  sums.nanodollars = number(row, 'nanodollars');
  sums.cacheSaved = number(row, 'cache_saved');
  for (const { member, column: name } of summedClasses) sums[member] = number(row, name);
  return sums;
}

/** One call of a latency sample. */
export function sampleOf(row: Columns): LatencySample {
  return {
    startedAt: number(row, 'started_at'),
    keyId: text(row, 'key_id'),
    ...present('team', optionalText(row, 'team')),
    ...present('user', optionalText(row, 'user_name')),
    tags: row['tags'] === null ? [] : readTexts(text(row, 'tags')),
    model: text(row, 'model'),
    ...present('provider', optionalText(row, 'provider')),
    ...present('upstreamModel', optionalText(row, 'upstream_model')),
    totalMs: number(row, 'total_ms'),
    ...present('firstEventMs', optionalNumber(row, 'first_event_ms')),
    ...present('outputTokens', optionalNumber(row, 'charged_output_tokens')),
  };
}

function readOutcome(value: string): CallOutcome {
  return value === 'ok' || value === 'canceled' ? value : 'failed';
}

function readSource(value: string): CallRow['usageSource'] {
  return value === 'reported' || value === 'counted' ? value : 'estimated';
}

/** A call as one line of text, for what is not a row of the ledger yet: running calls, and the spool. */
export function callText(row: CallRow): string {
  return valuesText(callValues(row));
}

export function valuesText(values: CallValues): string {
  return JSON.stringify({ schema: schemaVersion, call: values });
}

/** The opposite of `callText`. @throws StoreError `corrupt` */
export function readCallText(stored: string): CallRow {
  const flat = readValuesText(stored);
  const attempts: Columns[] = [];
  for (let from = callColumns.length; from < flat.length; from += attemptColumns.length) {
    attempts.push(columnsOf(attemptColumns, flat.slice(from)));
  }
  const price = flat[callColumns.indexOf('price_id')] ?? null;
  return readCallRow({ ...columnsOf(callColumns, flat), price }, attempts);
}

/** The opposite of `valuesText`. @throws StoreError `corrupt`, also where another version stored it. */
export function readValuesText(stored: string): CallValues {
  const parsed = tryParse(stored);
  const isOurs = isObject(parsed) && parsed['schema'] === schemaVersion;
  const values = isOurs ? parsed['call'] : undefined;
  if (!Array.isArray(values) || values.length < callColumns.length) throw unreadable();
  if ((values.length - callColumns.length) % attemptColumns.length !== 0) throw unreadable();
  return values.map((value): Value => {
    if (value === null || typeof value === 'string' || typeof value === 'number') return value;
    throw unreadable();
  });
}

function columnsOf(names: readonly string[], values: readonly Value[]): Columns {
  return Object.fromEntries(names.map((name, i) => [name, values[i] ?? null]));
}

function unreadable(): StoreError {
  return new StoreError('corrupt', 'A call that the store keeps cannot be read.');
}
