/**
 * Calls and how long they took: all, or a sample of them. Rows have a number in the order of their writing: evenly spread
 * numbers are evenly spread calls, found without a look at those between.
 */
import type { UsageFilter } from './calls.ts';
import {
  mostLooks,
  slicesOf,
  type LatencyQuery,
  type LatencySample,
  type LatencySamples,
  type Slice,
} from './latency.ts';
import { readTexts } from './kept-json.ts';
import {
  number,
  optionalNumber,
  optionalText,
  present,
  text,
  type Columns,
} from './sqlite-columns.ts';
import type { Statements } from './sqlite-statements.ts';

const first = `SELECT n FROM calls WHERE started_at >= $from AND started_at < $to
  ORDER BY started_at LIMIT 1`;
const last = `SELECT n FROM calls WHERE started_at >= $from AND started_at < $to
  ORDER BY started_at DESC LIMIT 1`;
const columns = `started_at, key_id, team, tags, model, provider, outcome, total_ms,
  CASE stream WHEN 1 THEN first_event_ms END AS first_event_ms`;
const from = `SELECT ${columns} FROM calls WHERE n >= ? ORDER BY n LIMIT 1`;
const fewCalls = `SELECT count(*) AS calls FROM (SELECT 1 FROM calls
  WHERE started_at >= $from AND started_at < $to LIMIT ${mostLooks + 1})`;
const all = `SELECT ${columns} FROM calls WHERE started_at >= $from AND started_at < $to`;

export function sampleSqlite(sql: Statements, query: LatencyQuery): LatencySamples {
  const { filter = {} } = query;
  const period = { from: Math.round(query.since), to: Math.round(query.until) };
  return sql.read(() => {
    const isAll = number(sql.of(fewCalls).get(period) ?? {}, 'calls') <= mostLooks;
    const calls = isAll
      ? sql
          .of(all)
          .all(period)
          .filter((row) => row['outcome'] === 'ok' && isWanted(row, filter))
          .map(sampleOf)
      : slicesOf(query).flatMap((slice) => sampleSlice(sql, slice, filter));
    return { calls, isAll };
  });
}

function sampleSlice(sql: Statements, slice: Slice, filter: UsageFilter): readonly LatencySample[] {
  const period = { from: slice.from, to: slice.to };
  const begins = sql.of(first).get(period);
  const ends = sql.of(last).get(period);
  if (begins === undefined || ends === undefined) return [];
  // A long call is written behind shorter ones that began later.
  const [low = 0, high = 0] = [number(begins, 'n'), number(ends, 'n')].toSorted((a, b) => a - b);
  const span = high - low + 1;
  const looks = Math.min(slice.looks, span);
  const found: LatencySample[] = [];
  for (let i = 0; i < looks; i++) {
    const row = sql.of(from).get(low + Math.floor((i * span) / looks));
    if (row === undefined) break;
    const startedAt = number(row, 'started_at');
    const isInSlice = startedAt >= slice.from && startedAt < slice.to;
    if (isInSlice && row['outcome'] === 'ok' && isWanted(row, filter)) found.push(sampleOf(row));
  }
  return found;
}

function isWanted(row: Columns, { key, team, model, provider, tag }: UsageFilter): boolean {
  return (
    (key === undefined || row['key_id'] === key) &&
    (team === undefined || (row['team'] ?? '') === team) &&
    (model === undefined || row['model'] === model) &&
    (provider === undefined || (row['provider'] ?? '') === provider) &&
    (tag === undefined || hasTag(row, tag))
  );
}

function hasTag(row: Columns, tag: string): boolean {
  const tags = row['tags'] === null ? [] : readTexts(text(row, 'tags'));
  return tag === '' ? tags.length === 0 : tags.includes(tag);
}

/** A row of either store. */
export function sampleOf(row: Columns): LatencySample {
  return {
    startedAt: number(row, 'started_at'),
    keyId: text(row, 'key_id'),
    ...present('team', optionalText(row, 'team')),
    model: text(row, 'model'),
    ...present('provider', optionalText(row, 'provider')),
    totalMs: number(row, 'total_ms'),
    ...present('firstEventMs', optionalNumber(row, 'first_event_ms')),
  };
}
