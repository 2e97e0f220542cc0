/** The SQL of sums on SQLite: constants with parameters (S21). */
import { pieceColumns, pieces, type UsageFilter, type UsageGrouping } from './calls.ts';
import { unknownModelError } from './roll-up.ts';
import type { Value } from './sqlite-columns.ts';
import { sumColumns } from './sqlite-sums.ts';

/** With columns as in the roll-ups. */
export const callSums = `(SELECT started_at AS at, key_id, coalesce(team, '') AS team,
    CASE WHEN error = '${unknownModelError}' THEN '' ELSE model END AS model,
    coalesce(provider, '') AS provider, coalesce(tags, '[]') AS tags,
    1 AS calls, outcome = 'failed' AS failed,
    coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
      + coalesce(charged_cache_write_tokens, 0) AS input_tokens,
    charged_cache_read_tokens AS cache_read_tokens,
    charged_cache_write_tokens AS cache_write_tokens,
    charged_output_tokens AS output_tokens,
    cost IS NOT NULL AS priced_calls,
    cost IS NULL AND coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
      + coalesce(charged_cache_write_tokens, 0) + coalesce(charged_output_tokens, 0) > 0
      AS unpriced_calls,
    cost AS nanodollars,
    ${pieces.map((piece) => `charged_${pieceColumns[piece]} AS ${pieceColumns[piece]}`).join(', ')}
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
