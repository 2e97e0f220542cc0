/**
 * The tables in PostgreSQL: those of SQLite, for several gateways. Times are ms since the epoch; a NULL count is
 * unknown, never 0; JSON is stored as text. What is compared in the order of bytes has the collation C, whatever that
 * of the database is.
 */
import { attemptTable, callTable, sumTable } from '../call-rows.ts';
import type { Column, ColumnType } from '../columns.ts';
import { counterSchema } from '../counters/postgres-schema.ts';
import { auditTable, keyTable } from '../key-rows.ts';
import { personTable, sessionTable } from '../people.ts';

export const columnTypes: { readonly [T in ColumnType]: string } = {
  name: 'text',
  text: 'text',
  integer: 'integer',
  count: 'bigint',
  real: 'double precision',
  ref: 'uuid',
};

function columnsOf<T>(table: readonly Column<T>[]): string {
  return table
    .map(({ name, type, required }) => {
      const collation = type === 'name' ? ' COLLATE "C"' : '';
      return `${name} ${columnTypes[type]}${collation}${required ? ' NOT NULL' : ''}`;
    })
    .join(',\n  ');
}

const tables = `
CREATE TABLE settings (
  name text PRIMARY KEY,
  value text NOT NULL
);

CREATE TABLE keys (
  id text COLLATE "C" PRIMARY KEY,
  ${columnsOf(keyTable)},
  last_used_at bigint,
  previous_used_at bigint,
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
  ${columnsOf(auditTable)},
  PRIMARY KEY (seq)
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
  ${columnsOf(callTable)},
  PRIMARY KEY (id)
);
CREATE INDEX calls_started_at ON calls (started_at, id);
CREATE INDEX calls_failed ON calls (started_at, id) WHERE outcome = 'failed';
CREATE INDEX calls_key ON calls (key_id, started_at, id);

CREATE TABLE attempts (
  call_id text COLLATE "C" NOT NULL,
  ordinal integer NOT NULL,
  ${columnsOf(attemptTable)},
  PRIMARY KEY (call_id, ordinal)
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
  answered text NOT NULL,
  tags text NOT NULL
);
CREATE INDEX usage_groups_key ON usage_groups (key_id);

CREATE TABLE usage_hours (
  at bigint NOT NULL,
  group_id uuid NOT NULL,
  ${columnsOf(sumTable)},
  PRIMARY KEY (at, group_id)
);

CREATE TABLE usage_days (
  at bigint NOT NULL,
  group_id uuid NOT NULL,
  ${columnsOf(sumTable)},
  PRIMARY KEY (at, group_id)
);

CREATE TABLE total_hours (
  kind text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  ${columnsOf(sumTable)},
  PRIMARY KEY (kind, at, name)
);

CREATE TABLE total_days (
  kind text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  ${columnsOf(sumTable)},
  PRIMARY KEY (kind, at, name)
);

CREATE TABLE kept_answers (
  id text COLLATE "C" PRIMARY KEY,
  key_id text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  mark text COLLATE "C" NOT NULL,
  until bigint NOT NULL,
  done boolean NOT NULL,
  bytes bigint NOT NULL,
  answer bytea
);
-- Sealed bytes do not get smaller.
ALTER TABLE kept_answers ALTER COLUMN answer SET STORAGE EXTERNAL;
CREATE INDEX kept_answers_until ON kept_answers (until);
CREATE INDEX kept_answers_key ON kept_answers (key_id, until);

CREATE TABLE kept_answer_sums (
  key_id text COLLATE "C" PRIMARY KEY,
  answers bigint NOT NULL,
  bytes bigint NOT NULL
);

CREATE TABLE kept_contents (
  id text COLLATE "C" PRIMARY KEY,
  key_id text COLLATE "C" NOT NULL,
  started_at bigint NOT NULL,
  bytes bigint NOT NULL,
  content bytea NOT NULL
);
-- Sealed bytes do not get smaller.
ALTER TABLE kept_contents ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX kept_contents_time ON kept_contents (started_at, bytes);
CREATE INDEX kept_contents_key ON kept_contents (key_id, started_at, bytes);

CREATE TABLE forgotten_contents (
  key_id text COLLATE "C" PRIMARY KEY,
  before bigint NOT NULL
);

-- Ids begin with their time: entries of both indexes by ids are added at an end, whatever their key.
CREATE TABLE kept_responses (
  id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  previous text COLLATE "C",
  kept_at bigint NOT NULL,
  until bigint NOT NULL,
  bytes bigint NOT NULL,
  items text NOT NULL,
  response bytea NOT NULL,
  PRIMARY KEY (id, key_id)
);
-- Sealed bytes do not get smaller.
ALTER TABLE kept_responses ALTER COLUMN response SET STORAGE EXTERNAL;
CREATE INDEX kept_responses_until ON kept_responses (until, bytes);
CREATE INDEX kept_responses_key ON kept_responses (key_id, until, bytes);

CREATE TABLE kept_response_items (
  item_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  response_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (item_id, key_id, response_id)
);

CREATE TABLE people (
  ${columnsOf(personTable)},
  PRIMARY KEY (id)
);

CREATE TABLE sessions (
  ${columnsOf(sessionTable)},
  PRIMARY KEY (id)
);
CREATE INDEX sessions_person ON sessions (person);
`;

/**
 * Answers by `Idempotency-Key`. A transaction that holds a row of sums waits for no other lock: rows of answers are
 * locked before, or passed over, so that no two transactions wait for each other.
 */
const answerFunctions = `
CREATE FUNCTION answer_claim(of_id text, of_key text, of_owner text, of_mark text, lease bigint,
  OUT state text, OUT known_mark text, OUT kept bytea) LANGUAGE plpgsql VOLATILE AS $$
DECLARE k record;
BEGIN
  state := 'mine';
  LOOP
    SELECT a.key_id, a.owner, a.mark, a.until, a.done, a.bytes, a.answer INTO k
      FROM kept_answers a WHERE a.id = of_id FOR UPDATE;
    IF NOT FOUND THEN
      INSERT INTO kept_answers VALUES (of_id, of_key, of_owner, of_mark, counter_now() + lease, false, 0)
        ON CONFLICT (id) DO NOTHING;
      IF FOUND THEN RETURN; END IF;
    ELSIF k.until > counter_now() AND k.owner <> of_owner THEN
      state := CASE WHEN k.done THEN 'done' ELSE 'running' END;
      known_mark := k.mark;
      kept := k.answer;
      RETURN;
    ELSE
      UPDATE kept_answers SET key_id = of_key, owner = of_owner, mark = of_mark,
        until = counter_now() + lease, done = false, bytes = 0, answer = NULL WHERE id = of_id;
      IF k.done THEN
        UPDATE kept_answer_sums SET answers = answers - 1, bytes = bytes - k.bytes
          WHERE key_id = k.key_id;
      END IF;
      RETURN;
    END IF;
  END LOOP;
END $$;

CREATE FUNCTION answer_keep(of_id text, of_owner text, sealed bytea, size bigint, keep_ms bigint,
  most_bytes bigint, most_answers bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE of_key text; n bigint; total bigint; r record;
BEGIN
  UPDATE kept_answers SET done = true, until = counter_now() + keep_ms, bytes = size, answer = sealed
    WHERE id = of_id AND owner = of_owner AND NOT done RETURNING key_id INTO of_key;
  IF NOT FOUND THEN
    RETURN EXISTS (SELECT 1 FROM kept_answers WHERE id = of_id AND owner = of_owner AND done);
  END IF;
  INSERT INTO kept_answer_sums AS s (key_id, answers, bytes) VALUES (of_key, 1, size)
    ON CONFLICT (key_id) DO UPDATE SET answers = s.answers + 1, bytes = s.bytes + excluded.bytes
    RETURNING s.answers, s.bytes INTO n, total;
  IF n <= most_answers AND total <= most_bytes THEN RETURN true; END IF;
  FOR r IN SELECT a.id, a.bytes FROM kept_answers a WHERE a.key_id = of_key AND a.done AND a.id <> of_id
      ORDER BY a.until, a.id FOR UPDATE SKIP LOCKED LOOP
    EXIT WHEN n <= most_answers AND total <= most_bytes;
    DELETE FROM kept_answers WHERE id = r.id;
    n := n - 1;
    total := total - r.bytes;
  END LOOP;
  UPDATE kept_answer_sums SET answers = n, bytes = total WHERE key_id = of_key;
  RETURN true;
END $$;

-- One at a time. A claim is remembered for ten minutes after its lease.
CREATE FUNCTION answer_sweep(most bigint, most_bytes bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE r record; removed bigint := 0; excess bigint; freed bigint := 0; rich record; now_ms bigint;
BEGIN
  IF NOT pg_try_advisory_xact_lock(5563204123) THEN RETURN 0; END IF;
  now_ms := counter_now();
  FOR r IN WITH gone AS (DELETE FROM kept_answers WHERE id IN (SELECT a.id FROM kept_answers a
        WHERE a.until <= now_ms AND (a.done OR a.until <= now_ms - 600000)
        ORDER BY a.until LIMIT most FOR UPDATE SKIP LOCKED) RETURNING key_id, done, bytes)
      SELECT key_id, count(*) AS rows, count(*) FILTER (WHERE done) AS answers,
        coalesce(sum(bytes) FILTER (WHERE done), 0)::bigint AS bytes FROM gone GROUP BY key_id LOOP
    removed := removed + r.rows;
    UPDATE kept_answer_sums s SET answers = s.answers - r.answers, bytes = s.bytes - r.bytes
      WHERE s.key_id = r.key_id AND r.answers > 0;
  END LOOP;
  SELECT coalesce(sum(bytes), 0)::bigint - most_bytes INTO excess FROM kept_answer_sums;
  SELECT key_id, bytes INTO rich FROM kept_answer_sums ORDER BY bytes DESC LIMIT 1;
  IF FOUND AND excess > 0 AND removed < most THEN
    FOR r IN SELECT a.id, a.bytes FROM kept_answers a WHERE a.key_id = rich.key_id AND a.done
        ORDER BY a.until, a.id LIMIT most - removed FOR UPDATE SKIP LOCKED LOOP
      EXIT WHEN freed >= excess OR freed * 2 >= rich.bytes;
      DELETE FROM kept_answers WHERE id = r.id;
      UPDATE kept_answer_sums SET answers = answers - 1, bytes = bytes - r.bytes
        WHERE key_id = rich.key_id;
      freed := freed + r.bytes;
      removed := removed + 1;
    END LOOP;
  END IF;
  DELETE FROM kept_answer_sums WHERE answers <= 0;
  RETURN removed;
END $$;
`;

/**
 * One round trip, since the end of an answer waits for it. The lock is that of contents: a key's stored responses are
 * removed after all that was examined before the mark was there. A row without bytes marks a response that was deleted
 * before its end. The row may be committed after the caller's statement has begun, so the insert looks for it.
 */
const responseFunctions = `
CREATE FUNCTION response_keep(of_key text, of_id text, of_previous text, started bigint, keep_ms bigint,
  size bigint, sealed bytea, of_items text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(5563204124);
  IF EXISTS (SELECT 1 FROM forgotten_contents f WHERE f.key_id = of_key AND f.before > started) THEN
    RETURN false;
  END IF;
  DELETE FROM kept_responses r WHERE r.key_id = of_key AND r.id = of_id AND length(r.response) > 0;
  INSERT INTO kept_responses VALUES
    (of_id, of_key, of_previous, counter_now(), counter_now() + keep_ms, size, of_items, sealed)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO kept_response_items
    SELECT DISTINCT item, of_key, of_id FROM unnest(string_to_array(of_items, ',')) AS item;
  RETURN true;
END $$;

CREATE FUNCTION response_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM kept_response_items WHERE item_id = ANY(string_to_array(OLD.items, ','))
    AND key_id = OLD.key_id AND response_id = OLD.id;
  RETURN NULL;
END $$;
-- An index of items by their responses would have to be written for each response; what a response lists is enough.
CREATE TRIGGER kept_responses_gone AFTER DELETE ON kept_responses
  FOR EACH ROW EXECUTE FUNCTION response_gone();
`;

/** Tables and functions, in the order in which they can be made. */
export const postgresSchema = `${tables}${counterSchema}${answerFunctions}${responseFunctions}`;
