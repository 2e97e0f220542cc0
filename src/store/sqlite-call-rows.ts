/** Calls as SQLite columns and back. */
import type { Cost, Price } from '../core/price.ts';
import {
  pieceColumns,
  pieces,
  type AttemptRow,
  type BudgetWindow,
  type CallOutcome,
  type CallRow,
  type CountedUsage,
  type PieceCounts,
  type UsageRow,
} from './calls.ts';
import { readBudgets, readPrice, readTexts } from './kept-json.ts';
import {
  finite,
  number,
  optionalNumber,
  optionalText,
  present,
  text,
  whole,
  type Columns,
  type Value,
} from './sqlite-columns.ts';

const countNames = [
  'fresh_input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cache_write_long_tokens',
  'output_tokens',
  'reasoning_tokens',
  ...pieces.map((piece) => pieceColumns[piece]),
] as const;

const reportedColumns = countNames.map((name) => `reported_${name}`);
const chargedColumns = countNames.map((name) => `charged_${name}`);

/** In the order of `callValues`. The price stands as its text, the writer puts its id there. */
export const callColumns: readonly string[] = [
  'id',
  'started_at',
  'key_id',
  'team',
  'tags',
  'user_name',
  'metadata',
  'endpoint',
  'model',
  'provider',
  'upstream_model',
  'mode',
  'stream',
  'outcome',
  'status',
  'error',
  'attempts',
  ...reportedColumns,
  ...chargedColumns,
  'usage_source',
  'cost',
  'cost_input',
  'cost_cache_read',
  'cost_cache_write',
  'cost_output',
  'cost_reasoning',
  'cost_call',
  'price_id',
  'budgets',
  'reserved',
  'overrun',
  'first_event_ms',
  'total_ms',
  'notes',
];

/** In the order of `attemptValues`; the call and the place in it stand before them. */
export const attemptColumns: readonly string[] = [
  'provider',
  'upstream_model',
  'started_at',
  'ms',
  'status',
  'outcome',
  'error',
  'maybe_billed',
  'credential',
  ...reportedColumns,
];

/**
 * A call and, behind it, its attempts as flat values: they pass from thread to thread at half the cost
 * of nested objects.
 */
export type CallValues = readonly Value[];

export function callValues(row: CallRow): CallValues {
  const values: Value[] = [];
  pushAsked(values, row);
  pushServed(values, row);
  pushUsage(values, row.reported);
  pushUsage(values, row.charged);
  values.push(row.usageSource);
  pushCost(values, row.cost);
  values.push(
    row.price === undefined ? null : priceText(row.price),
    row.budgets.length === 0 ? null : budgetsText(row.budgets),
    whole(row.reservedNanodollars),
    marksOf(row),
    finite(row.firstEventMs),
    finite(row.totalMs) ?? 0,
    row.notes ?? null,
  );
  for (const attempt of row.attemptRows) pushAttempt(values, attempt);
  return values;
}

function pushAsked(values: Value[], row: CallRow): void {
  values.push(
    row.id,
    Math.round(row.startedAt),
    row.keyId,
    row.team ?? null,
    row.tags.length === 0 ? null : JSON.stringify(row.tags),
    row.user ?? null,
    row.metadata ?? null,
    row.endpoint,
    row.model,
  );
}

function pushServed(values: Value[], row: CallRow): void {
  values.push(
    row.provider ?? null,
    row.upstreamModel ?? null,
    row.mode ?? null,
    row.stream ? 1 : 0,
    row.outcome,
    whole(row.status),
    row.error ?? null,
    row.attempts,
  );
}

function pushAttempt(values: Value[], attempt: AttemptRow): void {
  values.push(
    attempt.provider,
    attempt.upstreamModel,
    Math.round(attempt.startedAt),
    finite(attempt.ms) ?? 0,
    whole(attempt.status),
    attempt.outcome,
    attempt.error ?? null,
    attempt.maybeBilled === true ? 1 : null,
    attempt.credential ?? null,
  );
  pushUsage(values, attempt.reported);
}

function pushUsage(values: Value[], usage: CountedUsage | undefined): void {
  values.push(
    whole(usage?.freshInputTokens),
    whole(usage?.cacheReadTokens),
    whole(usage?.cacheWriteTokens),
    whole(usage?.cacheWriteLongTokens),
    whole(usage?.outputTokens),
    whole(usage?.reasoningTokens),
  );
  for (const piece of pieces) values.push(whole(usage?.[piece]));
}

function pushCost(values: Value[], cost: Cost | undefined): void {
  values.push(
    whole(cost?.total),
    whole(cost?.input),
    whole(cost?.cacheRead),
    whole(cost?.cacheWrite),
    whole(cost?.output),
    whole(cost?.reasoning),
    whole(cost?.call),
  );
}

/** In one column, so that no row of an older version, or of its spool, reads otherwise. */
const overrunMark = 1;
const suspectMark = 2;

function marksOf({ overrun, suspect }: CallRow): number | null {
  const marks = (overrun === true ? overrunMark : 0) | (suspect === true ? suspectMark : 0);
  return marks === 0 ? null : marks;
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
    attempts: number(row, 'attempts'),
    attemptRows: attempts.map(readAttempt),
    ...present('reported', reported),
    charged: readUsage(row, 'charged') ?? {},
    usageSource: readSource(text(row, 'usage_source')),
    ...readCost(row),
    ...(row['price'] === null ? {} : { price: readPrice(text(row, 'price')) }),
    budgets: row['budgets'] === null ? [] : readBudgets(text(row, 'budgets')),
    ...present('reservedNanodollars', optionalNumber(row, 'reserved')),
    ...((number(row, 'overrun') & overrunMark) === 0 ? {} : { overrun: true }),
    ...((number(row, 'overrun') & suspectMark) === 0 ? {} : { suspect: true }),
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
    ...present('reported', readUsage(row, 'reported')),
    ...present('credential', optionalText(row, 'credential')),
    ...(number(row, 'maybe_billed') === 1 ? { maybeBilled: true } : {}),
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
  const usage = {
    ...present('freshInputTokens', optionalNumber(row, `${kind}_fresh_input_tokens`)),
    ...present('cacheReadTokens', optionalNumber(row, `${kind}_cache_read_tokens`)),
    ...present('cacheWriteTokens', optionalNumber(row, `${kind}_cache_write_tokens`)),
    ...present('cacheWriteLongTokens', optionalNumber(row, `${kind}_cache_write_long_tokens`)),
    ...present('outputTokens', optionalNumber(row, `${kind}_output_tokens`)),
    ...present('reasoningTokens', optionalNumber(row, `${kind}_reasoning_tokens`)),
    ...readPieces(row, `${kind}_`),
  };
  return Object.keys(usage).length === 0 ? undefined : usage;
}

/** Those that are known. */
function readPieces(row: Columns, before: string): Partial<PieceCounts> {
  const found: { -readonly [P in keyof PieceCounts]?: number } = {};
  for (const piece of pieces) {
    const count = optionalNumber(row, before + pieceColumns[piece]);
    if (count !== undefined) found[piece] = count;
  }
  return found;
}

export function readSums(row: Columns): Omit<UsageRow, 'group'> {
  return {
    calls: number(row, 'calls'),
    failed: number(row, 'failed'),
    inputTokens: number(row, 'input_tokens'),
    cacheReadTokens: number(row, 'cache_read_tokens'),
    cacheWriteTokens: number(row, 'cache_write_tokens'),
    outputTokens: number(row, 'output_tokens'),
    pricedCalls: number(row, 'priced_calls'),
    unpricedCalls: number(row, 'unpriced_calls'),
    nanodollars: number(row, 'nanodollars'),
    audioInputTokens: number(row, 'audio_input_tokens'),
    imageInputTokens: number(row, 'image_input_tokens'),
    videoInputTokens: number(row, 'video_input_tokens'),
    audioOutputTokens: number(row, 'audio_output_tokens'),
    imageOutputTokens: number(row, 'image_output_tokens'),
    webSearches: number(row, 'web_searches'),
    images: number(row, 'images'),
  };
}

function readOutcome(value: string): CallOutcome {
  return value === 'ok' || value === 'canceled' ? value : 'failed';
}

function readSource(value: string): CallRow['usageSource'] {
  return value === 'reported' || value === 'counted' ? value : 'estimated';
}
