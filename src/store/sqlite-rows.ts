/** Store records as SQLite columns and back. */
import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { tryParse } from '../core/json.ts';
import { plainKey } from './records.ts';
import type { CallRow, CountedUsage, KeyRecord, UsageRow } from './store.ts';

export type Columns = Record<string, SQLOutputValue>;

/** Values for `insertKey`, in the order of its columns. */
export function keyValues(record: KeyRecord): SQLInputValue[] {
  return [
    record.id,
    record.name,
    record.digest,
    JSON.stringify(record.models),
    JSON.stringify(record.endpoints),
    record.team ?? null,
    record.createdAt,
    record.expiresAt ?? null,
    record.revokedAt ?? null,
    record.strict === true ? 1 : 0,
  ];
}

export function readKeyRow(row: Columns): KeyRecord {
  return {
    id: text(row, 'id'),
    name: text(row, 'name'),
    digest: text(row, 'digest'),
    models: texts(row, 'models'),
    endpoints: texts(row, 'endpoints'),
    ...plainKey,
    ...present('team', optionalText(row, 'team')),
    ...(number(row, 'strict') === 1 ? { strict: true } : {}),
    createdAt: number(row, 'created_at'),
    ...present('expiresAt', optionalNumber(row, 'expires_at')),
    ...present('revokedAt', optionalNumber(row, 'revoked_at')),
  };
}

/** A call as flat values: they pass from thread to thread at half the cost of nested objects. */
export type CallValues = readonly (string | number | null)[];

/** Values for `insertCall`, in the order of its columns. */
export function callValues(row: CallRow): CallValues {
  return [
    row.id,
    Math.round(row.startedAt),
    row.keyId,
    row.team ?? null,
    row.endpoint,
    row.model,
    row.provider ?? null,
    row.upstreamModel ?? null,
    row.mode ?? null,
    row.stream ? 1 : 0,
    row.outcome,
    count(row.status),
    row.error ?? null,
    row.attempts,
    ...usageValues(row.reported),
    ...usageValues(row.charged),
    row.usageSource,
    finite(row.firstEventMs),
    finite(row.totalMs) ?? 0,
    row.notes ?? null,
  ];
}

function usageValues(usage: CountedUsage | undefined): CallValues {
  return [
    count(usage?.freshInputTokens),
    count(usage?.cacheReadTokens),
    count(usage?.cacheWriteTokens),
    count(usage?.outputTokens),
    count(usage?.reasoningTokens),
  ];
}

/** A number that a STRICT integer column takes: one odd number must not hold up a whole batch. */
function count(value: number | undefined): number | null {
  const whole = Math.round(value ?? Number.NaN);
  return Number.isSafeInteger(whole) ? whole : null;
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}

export function readCallRow(row: Columns): CallRow {
  const mode = optionalText(row, 'mode');
  const reported = readUsage(row, 'reported');
  return {
    id: text(row, 'id'),
    startedAt: number(row, 'started_at'),
    keyId: text(row, 'key_id'),
    ...present('team', optionalText(row, 'team')),
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
    attemptRows: [],
    tags: [],
    budgets: [],
    ...(Object.keys(reported).length === 0 ? {} : { reported }),
    charged: readUsage(row, 'charged'),
    usageSource: readSource(text(row, 'usage_source')),
    ...present('firstEventMs', optionalNumber(row, 'first_event_ms')),
    totalMs: number(row, 'total_ms'),
    ...present('notes', optionalText(row, 'notes')),
  };
}

function readUsage(row: Columns, kind: 'reported' | 'charged'): CountedUsage {
  return {
    ...present('freshInputTokens', optionalNumber(row, `${kind}_fresh_input_tokens`)),
    ...present('cacheReadTokens', optionalNumber(row, `${kind}_cache_read_tokens`)),
    ...present('cacheWriteTokens', optionalNumber(row, `${kind}_cache_write_tokens`)),
    ...present('outputTokens', optionalNumber(row, `${kind}_output_tokens`)),
    ...present('reasoningTokens', optionalNumber(row, `${kind}_reasoning_tokens`)),
  };
}

export function readUsageRow(row: Columns): UsageRow {
  return {
    group: text(row, 'grouped'),
    calls: number(row, 'calls'),
    failed: number(row, 'failed'),
    inputTokens: number(row, 'input_tokens'),
    cacheReadTokens: number(row, 'cache_read_tokens'),
    cacheWriteTokens: number(row, 'cache_write_tokens'),
    outputTokens: number(row, 'output_tokens'),
    pricedCalls: 0,
    unpricedCalls: 0,
    nanodollars: 0,
  };
}

function readOutcome(value: string): CallRow['outcome'] {
  return value === 'ok' || value === 'canceled' ? value : 'failed';
}

function readSource(value: string): CallRow['usageSource'] {
  return value === 'reported' || value === 'counted' ? value : 'estimated';
}

export function text(row: Columns, column: string): string {
  return optionalText(row, column) ?? '';
}

function optionalText(row: Columns, column: string): string | undefined {
  const value = row[column];
  return typeof value === 'string' ? value : undefined;
}

function number(row: Columns, column: string): number {
  return optionalNumber(row, column) ?? 0;
}

function optionalNumber(row: Columns, column: string): number | undefined {
  const value = row[column];
  return typeof value === 'number' ? value : undefined;
}

function texts(row: Columns, column: string): readonly string[] {
  const value = tryParse(text(row, column));
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** A member only when there is a value: absent stays absent. */
function present<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  const member: { [P in K]?: V } = {};
  if (value !== undefined) member[key] = value;
  return member;
}
