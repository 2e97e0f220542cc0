/** The statements of sums in PostgreSQL: constants with parameters (S21). */
import { pieceColumns, pieces, type UsageFilter, type UsageGrouping } from './calls.ts';
import type { SqlValue, Statement } from './postgres-pool.ts';
import { unknownModelError, type Period } from './roll-up.ts';
import { sumColumns } from './sqlite-sums.ts';

/** With columns as in the roll-ups. */
export const callSums = `(SELECT started_at AS at, key_id, coalesce(team, '') AS team,
    CASE WHEN error = '${unknownModelError}' THEN '' ELSE model END AS model,
    coalesce(provider, '') AS provider, coalesce(tags, '[]') AS tags,
    1 AS calls, (outcome = 'failed')::integer AS failed,
    coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
      + coalesce(charged_cache_write_tokens, 0) AS input_tokens,
    charged_cache_read_tokens AS cache_read_tokens,
    charged_cache_write_tokens AS cache_write_tokens,
    charged_output_tokens AS output_tokens,
    (cost IS NOT NULL)::integer AS priced_calls,
    (cost IS NULL AND coalesce(charged_fresh_input_tokens, 0)
      + coalesce(charged_cache_read_tokens, 0) + coalesce(charged_cache_write_tokens, 0)
      + coalesce(charged_output_tokens, 0) > 0)::integer AS unpriced_calls,
    cost AS nanodollars,
    ${pieces.map((piece) => `charged_${pieceColumns[piece]} AS ${pieceColumns[piece]}`).join(', ')}
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
