/**
 * The book of several gateways. The columns are those of the SQLite tables, JSON stands as text, and
 * times are ms since the epoch; a NULL count is unknown, never 0. What is compared in the order of
 * bytes has the collation C, whatever that of the database is.
 */
const sums = `
  calls bigint NOT NULL,
  failed bigint NOT NULL,
  input_tokens bigint NOT NULL,
  cache_read_tokens bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  priced_calls bigint NOT NULL,
  unpriced_calls bigint NOT NULL,
  nanodollars bigint NOT NULL`;

const tokens = (kind: string): string =>
  [
    'fresh_input_tokens',
    'cache_read_tokens',
    'cache_write_tokens',
    'cache_write_long_tokens',
    'output_tokens',
    'reasoning_tokens',
  ]
    .map((name) => `  ${kind}_${name} bigint`)
    .join(',\n');

export const book = `
CREATE TABLE settings (
  name text PRIMARY KEY,
  value text NOT NULL
);

CREATE TABLE keys (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  digest text NOT NULL,
  peppered integer NOT NULL,
  previous text NOT NULL,
  owner text,
  models text NOT NULL,
  endpoints text NOT NULL,
  cidrs text NOT NULL,
  team text,
  tags text NOT NULL,
  policy text NOT NULL,
  shrink integer NOT NULL,
  strict integer NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint,
  previous_used_at bigint,
  version bigint NOT NULL,
  stamp bigint NOT NULL
);
CREATE INDEX keys_stamp ON keys (stamp);

CREATE TABLE policies (
  kind text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  policy text NOT NULL,
  PRIMARY KEY (kind, name)
);

CREATE TABLE audit (
  seq bigint PRIMARY KEY,
  at bigint NOT NULL,
  actor text NOT NULL,
  ip text,
  action text NOT NULL,
  subject text COLLATE "C" NOT NULL,
  was text,
  became text,
  hash text NOT NULL
);
CREATE INDEX audit_subject ON audit (subject, seq);
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$;
CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();

CREATE TABLE prices (
  id uuid PRIMARY KEY,
  price text NOT NULL
);

CREATE TABLE calls (
  id text COLLATE "C" PRIMARY KEY,
  started_at bigint NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  team text,
  tags text,
  user_name text,
  metadata text,
  endpoint text NOT NULL,
  model text NOT NULL,
  provider text,
  upstream_model text,
  mode text,
  stream integer NOT NULL,
  outcome text NOT NULL,
  status integer,
  error text,
  attempts integer NOT NULL,
${tokens('reported')},
${tokens('charged')},
  usage_source text NOT NULL,
  cost bigint,
  cost_input bigint,
  cost_cache_read bigint,
  cost_cache_write bigint,
  cost_output bigint,
  cost_reasoning bigint,
  cost_call bigint,
  price_id uuid,
  budgets text,
  reserved bigint,
  overrun integer,
  first_event_ms double precision,
  total_ms double precision NOT NULL,
  notes text
);
CREATE INDEX calls_started_at ON calls (started_at, id);
CREATE INDEX calls_key ON calls (key_id, started_at, id);

CREATE TABLE attempts (
  call_id text COLLATE "C" NOT NULL,
  place integer NOT NULL,
  provider text NOT NULL,
  upstream_model text NOT NULL,
  started_at bigint NOT NULL,
  ms double precision NOT NULL,
  status integer,
  outcome text NOT NULL,
  error text,
  maybe_billed integer,
${tokens('reported')},
  PRIMARY KEY (call_id, place)
);

CREATE TABLE open_calls (
  id text COLLATE "C" PRIMARY KEY,
  seen_at bigint NOT NULL,
  call text NOT NULL
);
CREATE INDEX open_calls_seen_at ON open_calls (seen_at);

CREATE TABLE spending (
  counter text COLLATE "C" NOT NULL,
  period text COLLATE "C" NOT NULL,
  ends_at bigint,
  nanodollars bigint NOT NULL,
  PRIMARY KEY (counter, period)
);
CREATE INDEX spending_ends_at ON spending (ends_at);

CREATE TABLE usage_groups (
  id uuid PRIMARY KEY,
  key_id text NOT NULL,
  team text NOT NULL,
  model text NOT NULL,
  provider text NOT NULL,
  tags text NOT NULL
);

CREATE TABLE usage_hours (
  at bigint NOT NULL,
  group_id uuid NOT NULL,${sums},
  PRIMARY KEY (at, group_id)
);

CREATE TABLE usage_days (
  at bigint NOT NULL,
  group_id uuid NOT NULL,${sums},
  PRIMARY KEY (at, group_id)
);
`;
