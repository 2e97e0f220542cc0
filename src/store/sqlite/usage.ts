/**
 * Sums over time on SQLite. The groups to show are selected first, by their number of calls: 500 keys over 90
 * days are 45,000 sums, and a chart shows those of eight. Roll-ups are then read one period after the other, so
 * that little has to be sorted by name: three times as fast as one query.
 */
import { sumColumns, readSums } from '../call-rows.ts';
import {
  summedClasses,
  type UsageFilter,
  type UsageGrouping,
  type SeriesQuery,
  type SeriesRow,
} from '../calls.ts';
import { number, text, type Value } from '../columns.ts';
import {
  unknownModelError,
  busiestOf,
  planSeries,
  SeriesSums,
  stepMs,
  type KeptSince,
  type Period,
  type UsagePlan,
} from '../roll-up.ts';
import type { Statements } from './database.ts';

/** With columns as in the roll-ups. */
export const callSums = `(SELECT started_at AS at, key_id, coalesce(team, '') AS team,
    CASE WHEN error = '${unknownModelError}' THEN '' ELSE model END AS model,
    coalesce(provider, '') AS provider, coalesce(tags, '[]') AS tags,
    1 AS calls, outcome = 'failed' AS failed,
    coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
      + coalesce(charged_cache_write_tokens, 0) AS input_tokens,
    cost IS NOT NULL AS priced_calls,
    cost IS NULL AND coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
      + coalesce(charged_cache_write_tokens, 0) + coalesce(charged_output_tokens, 0) > 0
      AS unpriced_calls,
    cost AS nanodollars,
    ${summedClasses.map(({ column }) => `charged_${column} AS ${column}`).join(', ')}
  FROM calls)`;

export const sources = {
  days: 'usage_days JOIN usage_groups ON usage_groups.id = group_id',
  hours: 'usage_hours JOIN usage_groups ON usage_groups.id = group_id',
  calls: callSums,
} as const;

export type Source = keyof typeof sources;

/** What a group is made of; times and sets of tags become groups in `labelsOf`. */
export const labels: { readonly [G in UsageGrouping]: string } = {
  key: 'key_id',
  team: 'team',
  model: 'model',
  provider: 'provider',
  tag: 'tags',
  day: 'at / 86400000 * 86400000',
  hour: 'at / 3600000 * 3600000',
};

// total(), not sum(): it is exact up to 2^53 and never fails beyond.
export const totals = sumColumns.map((name) => `total(${name}) AS ${name}`).join(', ');

export const inGroup = `($key IS NULL OR key_id = $key) AND ($team IS NULL OR team = $team)
  AND ($model IS NULL OR model = $model) AND ($provider IS NULL OR provider = $provider)
  AND ($tag IS NULL OR CASE $tag WHEN '' THEN tags = '[]'
    ELSE EXISTS (SELECT 1 FROM json_each(tags) WHERE value = $tag) END)`;

/** Sums by group of a part of a period: `$from`, `$to`, and the filter's five names. */
export function usageSql(source: Source, by: UsageGrouping): string {
  return `SELECT ${labels[by]} AS label, ${totals} FROM ${sources[source]}
    WHERE at >= $from AND at < $to AND ${inGroup} GROUP BY label`;
}

/** The values of `inGroup`. */
export function groupFilter(filter: UsageFilter): Record<string, Value> {
  const { key, team, model, provider, tag } = filter;
  return {
    key: key ?? null,
    team: team ?? null,
    model: model ?? null,
    provider: provider ?? null,
    tag: tag ?? null,
  };
}

const tables = { days: 'usage_days', hours: 'usage_hours' } as const;
const rollUps = ['days', 'hours'] as const;
type RollUp = (typeof rollUps)[number];

/** In the memory of the connection: the file is not written. */
const makeWanted = `CREATE TEMP TABLE IF NOT EXISTS wanted_groups
  (id INTEGER PRIMARY KEY, label TEXT NOT NULL) STRICT`;
const forget = 'DELETE FROM wanted_groups';
const wantedLabels = 'SELECT DISTINCT label FROM wanted_groups';
const dropOthers =
  'DELETE FROM wanted_groups WHERE label NOT IN (SELECT value FROM json_each($names))';

const labelOf = ({ by }: SeriesQuery): string => (by === undefined ? "''" : labels[by]);

const wantedSql = (query: SeriesQuery): string => `INSERT INTO wanted_groups
  SELECT id, ${labelOf(query)} FROM usage_groups WHERE ${inGroup}`;

const callsOfGroups = (source: RollUp): string => `SELECT label, total(calls) AS calls
  FROM (SELECT group_id, sum(calls) AS calls FROM ${tables[source]}
    WHERE at >= $from AND at < $to GROUP BY group_id)
  JOIN wanted_groups ON id = group_id GROUP BY label`;

const nextTime = (source: RollUp): string =>
  `SELECT min(at) AS at FROM ${tables[source]} WHERE at >= $from AND at < $to`;

const sumsAt = (source: RollUp): string => `SELECT label, ${totals}
  FROM ${tables[source]} CROSS JOIN wanted_groups ON id = group_id WHERE at = $at GROUP BY label`;

const sumsOfAll = (source: RollUp): string => `SELECT at, ${totals}
  FROM ${tables[source]} WHERE at >= $from AND at < $to GROUP BY at`;

function sumsOfCalls(query: SeriesQuery): string {
  const unit = stepMs[query.step];
  return `SELECT at / ${unit} * ${unit} AS at, ${labelOf(query)} AS label, ${totals} FROM ${callSums}
    WHERE at >= $from AND at < $to AND ${inGroup} GROUP BY 1, 2`;
}

/** Reads one series; inside a reading transaction. */
export class SqliteSeries {
  readonly #sql: Statements;
  readonly #query: SeriesQuery;
  readonly #plan: UsagePlan;
  readonly #filter: Record<string, Value>;
  readonly #series: SeriesSums;

  /** @param kept since when calls and hours are there. */
  constructor(sql: Statements, query: SeriesQuery, kept: KeptSince) {
    this.#sql = sql;
    this.#query = query;
    this.#plan = planSeries(query, kept);
    this.#filter = groupFilter(query.filter ?? {});
    this.#series = new SeriesSums(query);
  }

  rows(): readonly SeriesRow[] {
    const { by, filter = {} } = this.#query;
    this.#readCalls();
    if (by === undefined && Object.keys(filter).length === 0) this.#readAll();
    else this.#readGroups();
    return this.#series.rows();
  }

  /** Of the ragged ends: few enough to be read for every group. */
  #readCalls(): void {
    const statement = this.#sql.of(sumsOfCalls(this.#query));
    for (const period of this.#plan.calls) {
      for (const row of statement.iterate({ ...this.#filter, ...period })) {
        this.#series.add(number(row, 'at'), text(row, 'label'), readSums(row));
      }
    }
  }

  #readAll(): void {
    for (const { source, period } of this.#parts()) {
      for (const row of this.#sql.of(sumsOfAll(source)).iterate({ ...period })) {
        this.#series.add(number(row, 'at'), '', readSums(row));
      }
    }
  }

  #readGroups(): void {
    this.#choose();
    for (const { source, period } of this.#parts()) {
      const sums = this.#sql.of(sumsAt(source));
      for (const at of this.#times(source, period)) {
        for (const row of sums.iterate({ at })) {
          this.#series.add(at, text(row, 'label'), readSums(row));
        }
      }
    }
    this.#sql.of(forget).run();
  }

  /** Leaves those groups in `wanted_groups` that are shown. */
  #choose(): void {
    this.#sql.of(makeWanted).run();
    this.#sql.of(forget).run();
    this.#sql.of(wantedSql(this.#query)).run(this.#filter);
    const calls = this.#series.calls();
    for (const row of this.#sql.of(wantedLabels).iterate()) {
      const name = text(row, 'label');
      calls.set(name, calls.get(name) ?? 0);
    }
    if (calls.size <= this.#query.groups) return;
    for (const { source, period } of this.#parts()) {
      for (const row of this.#sql.of(callsOfGroups(source)).iterate({ ...period })) {
        const name = text(row, 'label');
        calls.set(name, (calls.get(name) ?? 0) + number(row, 'calls'));
      }
    }
    const names = JSON.stringify(busiestOf(calls, this.#query.groups));
    this.#sql.of(dropOthers).run({ names });
  }

  #parts(): readonly { readonly source: RollUp; readonly period: Period }[] {
    return rollUps.flatMap((source) => this.#plan[source].map((period) => ({ source, period })));
  }

  *#times(source: RollUp, { from, to }: Period): Generator<number> {
    const next = this.#sql.of(nextTime(source));
    for (let begin = from; ;) {
      const at = next.get({ from: begin, to })?.['at'];
      if (typeof at !== 'number') return;
      yield at;
      begin = at + 1;
    }
  }
}
