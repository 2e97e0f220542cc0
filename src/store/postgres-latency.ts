/** Calls and how long they took in PostgreSQL: all, or a sample of them. */
import { mostLooks, slicesOf, type LatencyQuery, type LatencySamples } from './latency.ts';
import type { Sql, Statement } from './postgres-pool.ts';
import { usageValues } from './postgres-usage-sql.ts';
import { number } from './sqlite-columns.ts';
import { sampleOf } from './sqlite-latency.ts';

const columns = `c.started_at, c.key_id, c.team, c.model, c.provider, c.total_ms,
  CASE c.stream WHEN 1 THEN c.first_event_ms END AS first_event_ms`;

const isWanted = `c.outcome = 'ok' AND ($3::text IS NULL OR c.key_id = $3)
  AND ($4::text IS NULL OR coalesce(c.team, '') = $4) AND ($5::text IS NULL OR c.model = $5)
  AND ($6::text IS NULL OR coalesce(c.provider, '') = $6)
  AND ($7::text IS NULL OR CASE $7 WHEN '' THEN c.tags IS NULL ELSE c.tags::jsonb ? $7 END)`;

/**
 * Rows have no number here: of each short piece of time a few calls are taken, found by the index. A burst
 * within one piece counts as little as the quiet around it.
 */
const callsOfPiece = 4;
const sample: Statement = {
  name: 'sample_latency',
  text: `SELECT ${columns}
    FROM generate_series($1::bigint, $2::bigint - 1, $8::bigint) AS piece(begins)
    CROSS JOIN LATERAL (SELECT * FROM calls WHERE started_at >= begins
      AND started_at < least(begins + $8::bigint, $2::bigint)
      ORDER BY started_at, id LIMIT ${callsOfPiece}) c
    WHERE ${isWanted}`,
};
const fewCalls: Statement = {
  name: 'few_calls',
  text: `SELECT count(*)::double precision AS calls FROM (SELECT 1 FROM calls
    WHERE started_at >= $1 AND started_at < $2 LIMIT ${mostLooks + 1}) few`,
};
const all: Statement = {
  name: 'all_latencies',
  text: `SELECT ${columns} FROM calls c WHERE started_at >= $1 AND started_at < $2 AND ${isWanted}`,
};

export async function sampleOfPostgres(sql: Sql, query: LatencyQuery): Promise<LatencySamples> {
  const period = { from: Math.round(query.since), to: Math.round(query.until) };
  const values = usageValues(query.filter, period);
  const [few] = (await sql.run(fewCalls, [period.from, period.to])).rows;
  if (few !== undefined && number(few, 'calls') <= mostLooks) {
    const { rows } = await sql.run(all, values);
    return { calls: rows.map(sampleOf), isAll: true };
  }
  const looks = slicesOf(query)[0]?.looks ?? 1;
  const slices = slicesOf(query).length;
  const pieces = Math.max(1, Math.floor(looks / callsOfPiece)) * slices;
  const piece = Math.max(1, Math.ceil((period.to - period.from) / pieces));
  const { rows } = await sql.run(sample, [...values, piece]);
  return { calls: rows.map(sampleOf), isAll: false };
}
