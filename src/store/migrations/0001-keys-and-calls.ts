/**
 * Keys, settings and the call ledger. STRICT: a column holds what it says or the write fails.
 * Times are ms since the epoch; a NULL count is unknown, never 0. A key's scope stands as JSON text.
 */
export const keysAndCalls = `
CREATE TABLE keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  models TEXT NOT NULL,
  endpoints TEXT NOT NULL,
  team TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;

CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE calls (
  id TEXT PRIMARY KEY,
  started_at INTEGER NOT NULL,
  key_id TEXT NOT NULL,
  team TEXT,
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
  reported_output_tokens INTEGER,
  reported_reasoning_tokens INTEGER,
  charged_fresh_input_tokens INTEGER,
  charged_cache_read_tokens INTEGER,
  charged_cache_write_tokens INTEGER,
  charged_output_tokens INTEGER,
  charged_reasoning_tokens INTEGER,
  usage_source TEXT NOT NULL,
  first_event_ms REAL,
  total_ms REAL NOT NULL,
  notes TEXT
) STRICT;

CREATE INDEX calls_started_at ON calls (started_at);
`;
