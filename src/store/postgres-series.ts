/** Sums over time in PostgreSQL, in two passes as on SQLite: `sqlite-series.ts` says why. */
import type { SeriesQuery, SeriesRow } from './calls.ts';
import type { Sql, SqlValue, Statement } from './postgres-pool.ts';
import {
  callSums,
  inGroup,
  labels,
  sources,
  totals,
  usageValues,
  type Source,
} from './postgres-usage-sql.ts';
import type { KeptSince, UsagePlan } from './roll-up.ts';
import { busiestOf, planCounts, planSeries, SeriesSums, sourcesInOrder, stepMs } from './series.ts';
import { readSums } from './sqlite-call-rows.ts';
import { number, text } from './sqlite-columns.ts';

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
