/**
 * The ledger with attempts, prices, what runs, what was spent, and sums by hour and by day (UTC).
 * `calls.n` is a number of its own: row ids of tables without one change when a backup is made.
 * The calls that are there have no price: their cost is unknown.
 */
export const ledger = `
CREATE TABLE prices (
  id INTEGER PRIMARY KEY,
  price TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE ledger (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  started_at INTEGER NOT NULL,
  key_id TEXT NOT NULL,
  team TEXT,
  tags TEXT,
  user_name TEXT,
  metadata TEXT,
  endpoint TEXT NOT NULL,
  model TEXT NOT NULL,
  provider TEXT,
  upstream_model TEXT,
  mode TEXT,
  stream INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  status INTEGER,
  error TEXT,
  attempts INTEGER NOT NULL,
  reported_fresh_input_tokens INTEGER,
  reported_cache_read_tokens INTEGER,
  reported_cache_write_tokens INTEGER,
  reported_cache_write_long_tokens INTEGER,
  reported_output_tokens INTEGER,
  reported_reasoning_tokens INTEGER,
  charged_fresh_input_tokens INTEGER,
  charged_cache_read_tokens INTEGER,
  charged_cache_write_tokens INTEGER,
  charged_cache_write_long_tokens INTEGER,
  charged_output_tokens INTEGER,
  charged_reasoning_tokens INTEGER,
  usage_source TEXT NOT NULL,
  cost INTEGER,
  cost_input INTEGER,
  cost_cache_read INTEGER,
  cost_cache_write INTEGER,
  cost_output INTEGER,
  cost_reasoning INTEGER,
  cost_call INTEGER,
  price_id INTEGER,
  budgets TEXT,
  reserved INTEGER,
  overrun INTEGER,
  first_event_ms REAL,
  total_ms REAL NOT NULL,
  notes TEXT
) STRICT;

INSERT INTO ledger (id, started_at, key_id, team, endpoint, model, provider, upstream_model, mode,
  stream, outcome, status, error, attempts, reported_fresh_input_tokens, reported_cache_read_tokens,
  reported_cache_write_tokens, reported_output_tokens, reported_reasoning_tokens,
  charged_fresh_input_tokens, charged_cache_read_tokens, charged_cache_write_tokens,
  charged_output_tokens, charged_reasoning_tokens, usage_source, first_event_ms, total_ms, notes)
SELECT id, started_at, key_id, team, endpoint, model, provider, upstream_model, mode,
  stream, outcome, status, error, attempts, reported_fresh_input_tokens, reported_cache_read_tokens,
  reported_cache_write_tokens, reported_output_tokens, reported_reasoning_tokens,
  charged_fresh_input_tokens, charged_cache_read_tokens, charged_cache_write_tokens,
  charged_output_tokens, charged_reasoning_tokens, usage_source, first_event_ms, total_ms, notes
FROM calls ORDER BY started_at;
DROP TABLE calls;
ALTER TABLE ledger RENAME TO calls;
CREATE INDEX calls_started_at ON calls (started_at);

CREATE TABLE attempts (
  call_n INTEGER NOT NULL,
  place INTEGER NOT NULL,
  provider TEXT NOT NULL,
  upstream_model TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ms REAL NOT NULL,
  status INTEGER,
  outcome TEXT NOT NULL,
  error TEXT,
  maybe_billed INTEGER,
  reported_fresh_input_tokens INTEGER,
  reported_cache_read_tokens INTEGER,
  reported_cache_write_tokens INTEGER,
  reported_cache_write_long_tokens INTEGER,
  reported_output_tokens INTEGER,
  reported_reasoning_tokens INTEGER,
  PRIMARY KEY (call_n, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE open_calls (
  id TEXT PRIMARY KEY,
  seen_at INTEGER NOT NULL,
  call TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE spending (
  counter TEXT NOT NULL,
  window TEXT NOT NULL,
  ends_at INTEGER,
  nanodollars INTEGER NOT NULL,
  PRIMARY KEY (counter, window)
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_ends_at ON spending (ends_at);

CREATE TABLE usage_groups (
  id INTEGER PRIMARY KEY,
  key_id TEXT NOT NULL,
  team TEXT NOT NULL,
  model TEXT NOT NULL,
  provider TEXT NOT NULL,
  tags TEXT NOT NULL,
  UNIQUE (key_id, team, model, provider, tags)
) STRICT;

CREATE TABLE usage_hours (
  at INTEGER NOT NULL,
  group_id INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  priced_calls INTEGER NOT NULL,
  unpriced_calls INTEGER NOT NULL,
  nanodollars INTEGER NOT NULL,
  PRIMARY KEY (at, group_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_days (
  at INTEGER NOT NULL,
  group_id INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  priced_calls INTEGER NOT NULL,
  unpriced_calls INTEGER NOT NULL,
  nanodollars INTEGER NOT NULL,
  PRIMARY KEY (at, group_id)
) STRICT, WITHOUT ROWID;

INSERT INTO usage_groups (key_id, team, model, provider, tags)
SELECT DISTINCT key_id, coalesce(team, ''),
  CASE WHEN error = 'model_not_found' THEN '' ELSE model END, coalesce(provider, ''), '[]'
FROM calls;

INSERT INTO usage_hours (at, group_id, calls, failed, input_tokens, cache_read_tokens,
  cache_write_tokens, output_tokens, priced_calls, unpriced_calls, nanodollars)
SELECT c.started_at / 3600000 * 3600000, g.id, count(*), sum(c.outcome = 'failed'),
  sum(coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
    + coalesce(charged_cache_write_tokens, 0)),
  sum(coalesce(charged_cache_read_tokens, 0)), sum(coalesce(charged_cache_write_tokens, 0)),
  sum(coalesce(charged_output_tokens, 0)), 0,
  sum(coalesce(charged_fresh_input_tokens, 0) + coalesce(charged_cache_read_tokens, 0)
    + coalesce(charged_cache_write_tokens, 0) + coalesce(charged_output_tokens, 0) > 0), 0
FROM calls c JOIN usage_groups g ON g.key_id = c.key_id AND g.team = coalesce(c.team, '')
  AND g.model = CASE WHEN c.error = 'model_not_found' THEN '' ELSE c.model END
  AND g.provider = coalesce(c.provider, '') AND g.tags = '[]'
GROUP BY 1, 2;

INSERT INTO usage_days (at, group_id, calls, failed, input_tokens, cache_read_tokens,
  cache_write_tokens, output_tokens, priced_calls, unpriced_calls, nanodollars)
SELECT at / 86400000 * 86400000, group_id, sum(calls), sum(failed), sum(input_tokens),
  sum(cache_read_tokens), sum(cache_write_tokens), sum(output_tokens), sum(priced_calls),
  sum(unpriced_calls), sum(nanodollars)
FROM usage_hours GROUP BY 1, 2;
`;
