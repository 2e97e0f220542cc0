/** The calls of `many-rows.ts` in PostgreSQL, made by the server: sent row by row, ten million take an hour. */
import { Client } from 'pg';
import { sumColumns } from '../src/store/call-rows.ts';
import { valuesOf } from '../src/store/columns.ts';
import { keyColumns, keyTable } from '../src/store/key-rows.ts';
import { begin, dayMs, days, madeKey } from './many-rows.ts';

const part = 500_000;

const group = `md5(key || '/' || model) AS id, key, 'team-' || (key_n % 20) AS team, model, tags`;
const keyed = `SELECT n, $1::bigint + floor(n::float8 / $2 * $3)::bigint AS at, n * 7919 % 500 AS key_n,
    'key' || lpad((n * 7919 % 500)::text, 5, '0') AS key, 'openai/model-' || n * 31 % 3 AS model,
    '["project-' || n * 7919 % 500 % 50 || '"]' AS tags, 900 + n % 100 AS fresh, n % 300 AS output
  FROM generate_series($4::bigint, $5::bigint) n`;
const made = `SELECT *, ${group.split(',')[0]} FROM (${keyed}) keyed`;

const calls = `INSERT INTO calls (id, started_at, key_id, team, tags, endpoint, model, provider,
    upstream_model, mode, stream, outcome, status, attempts, reported_fresh_input_tokens,
    reported_cache_read_tokens, reported_output_tokens, charged_fresh_input_tokens,
    charged_cache_read_tokens, charged_output_tokens, usage_source, cost, cost_input,
    first_event_ms, total_ms)
  SELECT 'req_' || lpad(n::text, 9, '0') || substr(md5(n::text), 1, 14), at, key, 'team-' || key_n % 20,
    tags, 'openai-chat', model, 'openai', substr(model, 8), 'relay', n % 2,
    CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'ok' END, 200, 1, fresh, 50, output, fresh, 50, output,
    'reported', fresh * 1000 + output * 4000, fresh * 1000 + output * 4000, 120.5, 815.25
  FROM (${keyed}) keyed`;
const attempts = `INSERT INTO attempts (call_id, ordinal, provider, upstream_model, started_at, ms, status,
    outcome, reported_fresh_input_tokens, reported_cache_read_tokens, reported_output_tokens)
  SELECT 'req_' || lpad(n::text, 9, '0') || substr(md5(n::text), 1, 14), 0, 'openai', substr(model, 8), at,
    812.5, 200, 'ok', fresh, 50, output
  FROM (${keyed}) keyed`;
const groups = `INSERT INTO usage_groups (id, key_id, team, model, provider, answered, tags)
  SELECT DISTINCT id::uuid, key, 'team-' || key_n % 20, model, 'openai', model, tags FROM (${made}) made
  ON CONFLICT DO NOTHING`;
const sums: { readonly [column: string]: string } = {
  calls: 'count(*)',
  failed: 'count(*) FILTER (WHERE n % 50 = 0)',
  input_tokens: 'sum(fresh + 50)',
  cache_read_tokens: 'sum(50)',
  output_tokens: 'sum(output)',
  priced_calls: 'count(*)',
  nanodollars: 'sum(fresh * 1000 + output * 4000)',
};
const into = `(at, group_id, ${sumColumns.join(', ')})`;
// In the order in which a gateway writes them: scattered, the hours of a week lie on ten times as many pages.
const hours = `INSERT INTO usage_hours ${into} SELECT at / 3600000 * 3600000, id::uuid,
  ${sumColumns.map((name) => sums[name] ?? '0').join(', ')} FROM (${made}) made GROUP BY 1, 2 ORDER BY 1`;
const daysSql = `INSERT INTO usage_days ${into} SELECT at / 86400000 * 86400000, group_id,
  ${sumColumns.map((name) => `sum(${name})`).join(', ')} FROM usage_hours GROUP BY 1, 2 ORDER BY 1`;
const totalNames = {
  all: "''",
  model: 'model',
  answered: 'answered',
  provider: 'provider',
  team: 'team',
} as const;
const totals = (['hours', 'days'] as const).flatMap((step) =>
  Object.entries(totalNames).map(
    ([kind, label]) => `INSERT INTO total_${step} (kind, at, name, ${sumColumns.join(', ')})
      SELECT '${kind}', at, ${label}, ${sumColumns.map((name) => `sum(${name})`).join(', ')}
      FROM usage_${step} JOIN usage_groups ON id = group_id GROUP BY 2, 3 ORDER BY 2, 3`,
  ),
);

/** Into a database whose tables were made by the gateway, and are empty. */
export async function fillPostgres(url: string, rows: number): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const scale = [begin, rows, days * dayMs];
  try {
    for (let from = 0; from < rows; from += part) {
      const values = [...scale, from, Math.min(rows, from + part) - 1];
      for (const text of [calls, attempts]) await client.query(text, values);
      process.stderr.write(`${from + part} rows\n`);
    }
    // A group has its first row among the first few; an hour may not be cut in two.
    await client.query(groups, [...scale, 0, Math.min(rows, 1500) - 1]);
    await client.query(hours, [...scale, 0, rows - 1]);
    await client.query(daysSql);
    for (const text of totals) await client.query(text);
    await client.query('VACUUM ANALYZE');
  } finally {
    await client.end();
  }
}

const keys = 'INSERT INTO keys SELECT * FROM jsonb_populate_recordset(NULL::keys, $1::jsonb)';
const keysAtOnce = 5000;

/** Adds `count` keys to a database whose tables were made by the gateway; it reads them at its next start. */
export async function fillPostgresKeys(url: string, count: number): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (let from = 0; from < count; from += keysAtOnce) {
      const some = Array.from({ length: Math.min(keysAtOnce, count - from) }, (_, i) => {
        const record = madeKey(from + i);
        const values = valuesOf(keyTable, record);
        const columns = keyColumns.map((name, at) => [name, values[at]] as const);
        // Behind those that the gateway made for itself.
        return { stamp: 1000 + from + i, id: record.id, ...Object.fromEntries(columns) };
      });
      await client.query(keys, [JSON.stringify(some)]);
    }
    await client.query('VACUUM ANALYZE keys');
  } finally {
    await client.end();
  }
}
