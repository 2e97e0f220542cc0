/** Sums over time in PostgreSQL, in two passes as on SQLite: `sqlite/usage.ts` says why. */
import { sumColumns, readSums } from '../call-rows.ts';
import {
  summedClasses,
  type UsageFilter,
  type UsageGrouping,
  type SeriesQuery,
  type SeriesRow,
} from '../calls.ts';
import { number, text } from '../columns.ts';
import {
  unknownModelError,
  busiestOf,
  planCounts,
  planSeries,
  SeriesSums,
  sourcesInOrder,
  stepMs,
  type Period,
  type KeptSince,
  type UsagePlan,
} from '../roll-up.ts';
import type { SqlValue, Sql } from './pool.ts';
import type { Statement } from '../statements.ts';

/** With columns as in the roll-ups. */
export const callSums = `(SELECT started_at AS at, key_id, coalesce(team, '') AS team,
    CASE WHEN error = '${unknownModelError}' THEN '' ELSE model END AS model,
    coalesce(provider, '') AS provider, coalesce(tags, '[]') AS tags,
    1 AS calls, (outcome = 'failed')::integer AS failed,
    coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
      + coalesce(charged_cache_write_tokens, 0) AS input_tokens,
    (cost IS NOT NULL)::integer AS priced_calls,
    (cost IS NULL AND coalesce(charged_fresh_input_tokens, 0)
      + coalesce(charged_cache_read_tokens, 0) + coalesce(charged_cache_write_tokens, 0)
      + coalesce(charged_output_tokens, 0) > 0)::integer AS unpriced_calls,
    cost AS nanodollars,
    ${summedClasses.map(({ column }) => `charged_${column} AS ${column}`).join(', ')}
  FROM calls) rows`;

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

// Doubles: exact up to 2^53, and never a number that cannot be read.
export const totals = sumColumns
  .map((name) => `coalesce(sum(${name}), 0)::double precision AS ${name}`)
  .join(', ');

/** Of the values of `usageValues`. */
export const inGroup = `($3::text IS NULL OR key_id = $3) AND ($4::text IS NULL OR team = $4)
  AND ($5::text IS NULL OR model = $5) AND ($6::text IS NULL OR provider = $6)
  AND ($7::text IS NULL OR CASE $7 WHEN '' THEN tags = '[]' ELSE tags::jsonb ? $7 END)`;

/** Sums by group of a part of a period. */
export function usageStatement(source: Source, by: UsageGrouping): Statement {
  return {
    name: `usage_${source}_${by}`,
    text: `SELECT ${labels[by]} AS label, ${totals} FROM ${sources[source]}
      WHERE at >= $1 AND at < $2 AND ${inGroup} GROUP BY label`,
  };
}

/** The period and the filter's five names. */
export function usageValues(filter: UsageFilter | undefined, period: Period): SqlValue[] {
  const { key, team, model, provider, tag } = filter ?? {};
  const wish = [key, team, model, provider, tag].map((value) => value ?? null);
  return [period.from, period.to, ...wish];
}

interface Part {
  readonly source: Source;
  readonly values: readonly SqlValue[];
}

type Label = NonNullable<SeriesQuery['by']>;

const inPeriod = 'at >= $1 AND at < $2';

function where(source: Source, own: string): string {
  return source === 'calls'
    ? `${inPeriod} AND ${own}`
    : `${inPeriod} AND group_id IN (SELECT id FROM usage_groups WHERE ${own})`;
}

const counted = (table: string): string =>
  `(SELECT group_id, sum(calls) AS calls FROM ${table} WHERE ${inPeriod} GROUP BY 1) counted
    JOIN usage_groups ON usage_groups.id = group_id WHERE ${inGroup}`;

/** Sums of roll-ups are put together by the ids of their groups before these get names: a week has 168 of each. */
const callsOf: { readonly [S in Source]: string } = {
  days: counted('usage_days'),
  hours: counted('usage_hours'),
  calls: `${callSums} WHERE ${inPeriod} AND ${inGroup}`,
};

function busiestStatement(source: Source, by: Label): Statement {
  return {
    name: `busiest_${source}_${by}`,
    text: `SELECT ${labels[by]} AS label, sum(calls)::double precision AS calls
      FROM ${callsOf[source]} GROUP BY 1`,
  };
}

function seriesStatement(source: Source, { by, step }: SeriesQuery): Statement {
  const unit = stepMs[step];
  const at = source === 'calls' ? `at / ${unit} * ${unit}` : 'at';
  const named = by === undefined ? '' : ` AND ${labels[by]} = ANY($8::text[])`;
  return {
    name: `series_${source}_${step}_${by ?? 'all'}`,
    text: `SELECT ${at} AS step, ${by === undefined ? "''" : labels[by]} AS label, ${totals}
      FROM ${sources[source]} WHERE ${where(source, inGroup + named)} GROUP BY 1, 2`,
  };
}

/** @param kept since when calls and hours are there; in the same snapshot. */
export async function seriesPostgres(
  sql: Sql,
  query: SeriesQuery,
  kept: KeptSince,
): Promise<readonly SeriesRow[]> {
  const partsOf = (plan: UsagePlan): readonly Part[] =>
    sourcesInOrder.flatMap((source) =>
      plan[source].map((period) => ({ source, values: usageValues(query.filter, period) })),
    );
  const { by } = query;
  const names: (readonly string[])[] = [];
  if (by !== undefined) {
    const calls = new Map<string, number>();
    for (const { source, values } of partsOf(planCounts(query, kept))) {
      for (const row of (await sql.run(busiestStatement(source, by), values)).rows) {
        const name = text(row, 'label');
        calls.set(name, (calls.get(name) ?? 0) + number(row, 'calls'));
      }
    }
    names.push(busiestOf(calls, query.groups));
  }
  const series = new SeriesSums(query);
  for (const { source, values } of partsOf(planSeries(query, kept))) {
    const { rows } = await sql.run(seriesStatement(source, query), [...values, ...names]);
    for (const row of rows) series.add(number(row, 'step'), text(row, 'label'), readSums(row));
  }
  return series.rows();
}
