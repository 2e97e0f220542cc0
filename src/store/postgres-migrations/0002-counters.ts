/**
 * Counters in the book, one function a draw, so that a draw is one round trip and one transaction.
 *
 * What a call holds are rows of `counter_holds`, by name: `''` the call itself, `c:` a place, `t:` tokens,
 * `b:` money. A budget's settled amount is `spending` plus the holds that are done; the transaction that
 * books the call takes its holds away, so that nothing is counted twice or not at all in between.
 * A live hold counts until its lease ends; money is held for longer (`money_grace`), until the book has
 * settled a call whose gateway died (F81).
 *
 * Counters are locked by advisory locks in the order of their hashes: no row has to be there first, and
 * no two draws wait for each other.
 */
export const counters = `
CREATE TABLE counter_rates (
  name text COLLATE "C" PRIMARY KEY,
  missing bigint NOT NULL,
  at bigint NOT NULL,
  per_minute bigint NOT NULL,
  full_at bigint NOT NULL
);
CREATE INDEX counter_rates_full_at ON counter_rates (full_at);

CREATE TABLE counter_holds (
  name text COLLATE "C" NOT NULL,
  call_id text COLLATE "C" NOT NULL,
  amount bigint NOT NULL,
  per_minute bigint NOT NULL,
  until bigint NOT NULL,
  done boolean NOT NULL,
  PRIMARY KEY (name, call_id)
);
CREATE INDEX counter_holds_call_id ON counter_holds (call_id);
CREATE INDEX counter_holds_until ON counter_holds (until);

-- Who counts: 'redis' or 'postgres', and since which epoch; only where both are used.
CREATE TABLE counter_mode (
  tenant text COLLATE "C" PRIMARY KEY,
  mode text NOT NULL,
  epoch bigint NOT NULL,
  usable_at bigint NOT NULL
);

CREATE FUNCTION counter_now() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

CREATE FUNCTION counter_lock(names text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE k bigint;
BEGIN
  FOR k IN SELECT DISTINCT hashtextextended(n, 5563) FROM unnest(names) n ORDER BY 1 LOOP
    PERFORM pg_advisory_xact_lock(k);
  END LOOP;
END $$;

CREATE FUNCTION counter_missing(of_name text, now_ms bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT coalesce((SELECT greatest(0, missing - greatest(0, now_ms - at) * per_minute)
    FROM counter_rates WHERE name = of_name), 0) $$;

CREATE FUNCTION counter_set(of_name text, units bigint, rate bigint, now_ms bigint)
RETURNS void LANGUAGE sql VOLATILE AS $$
  INSERT INTO counter_rates AS r (name, missing, at, per_minute, full_at)
  VALUES (of_name, units, now_ms, rate, now_ms + units / rate + 1)
  ON CONFLICT (name) DO UPDATE SET missing = excluded.missing, at = greatest(r.at, excluded.at),
    per_minute = excluded.per_minute, full_at = excluded.full_at $$;

CREATE FUNCTION counter_balance(of_counter text, of_window text, now_ms bigint,
  OUT settled bigint, OUT open bigint) LANGUAGE sql VOLATILE AS $$
  SELECT coalesce((SELECT nanodollars FROM spending
      WHERE counter = of_counter AND period = of_window), 0)
    + coalesce(sum(amount) FILTER (WHERE done), 0)::bigint,
    coalesce(sum(amount) FILTER (WHERE NOT done), 0)::bigint
  FROM counter_holds WHERE name = 'b:' || of_counter || '|' || of_window AND until > now_ms $$;

-- c: [[counter, most]], r: [[counter, per minute]], t: [[counter, per minute, amount]],
-- b: [[counter, window, limit, amount]]; force: takes without asking whether it fits.
CREATE FUNCTION counter_draw(of_call text, c jsonb, r jsonb, t jsonb, b jsonb,
  lease bigint, money_grace bigint, of_tenant text, force boolean)
RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  now_ms bigint; e jsonb; n bigint; s bigint; o bigint; m record;
  fits boolean := true; known boolean;
  rc jsonb := '[]'; rr jsonb := '[]'; rt jsonb := '[]'; rb jsonb := '[]';
BEGIN
  IF of_tenant IS NOT NULL THEN
    SELECT mode, usable_at INTO m FROM counter_mode WHERE tenant = of_tenant FOR SHARE;
    IF m.mode IS DISTINCT FROM 'postgres' OR (m.usable_at > counter_now() AND NOT force) THEN
      RETURN jsonb_build_object('code', 'mode', 'now', counter_now());
    END IF;
  END IF;
  PERFORM counter_lock(ARRAY(
    SELECT 'c:' || (x->>0) FROM jsonb_array_elements(c) x UNION ALL
    SELECT 'r:' || (x->>0) FROM jsonb_array_elements(r) x UNION ALL
    SELECT 't:' || (x->>0) FROM jsonb_array_elements(t) x UNION ALL
    SELECT 'b:' || (x->>0) || '|' || (x->>1) FROM jsonb_array_elements(b) x));
  now_ms := counter_now();
  known := EXISTS (SELECT 1 FROM counter_holds WHERE name = '' AND call_id = of_call);
  FOR e IN SELECT * FROM jsonb_array_elements(c) LOOP
    SELECT count(*) INTO n FROM counter_holds
      WHERE name = 'c:' || (e->>0) AND until > now_ms;
    fits := fits AND n < (e->>1)::bigint;
    rc := rc || to_jsonb(n);
  END LOOP;
  FOR e IN SELECT * FROM jsonb_array_elements(r) LOOP
    n := counter_missing('r:' || (e->>0), now_ms);
    fits := fits AND n + 60000 <= (e->>1)::bigint * 60000;
    rr := rr || to_jsonb(n);
  END LOOP;
  FOR e IN SELECT * FROM jsonb_array_elements(t) LOOP
    n := counter_missing('t:' || (e->>0), now_ms);
    fits := fits AND n + (e->>2)::bigint * 60000 <= (e->>1)::bigint * 60000;
    rt := rt || to_jsonb(n);
  END LOOP;
  FOR e IN SELECT * FROM jsonb_array_elements(b) LOOP
    SELECT settled, open INTO s, o FROM counter_balance(e->>0, e->>1, now_ms);
    fits := fits AND s + o + (e->>3)::bigint <= (e->>2)::bigint;
    rb := rb || jsonb_build_array(jsonb_build_array(s, o));
  END LOOP;
  IF (fits OR force) AND NOT known THEN
    INSERT INTO counter_holds VALUES ('', of_call, 0, 0, now_ms + lease + money_grace, false);
    INSERT INTO counter_holds SELECT DISTINCT 'c:' || (x->>0), of_call, 1, 0, now_ms + lease, false
      FROM jsonb_array_elements(c) x;
    INSERT INTO counter_holds SELECT 't:' || (x->>0), of_call, (x->>2)::bigint, (x->>1)::bigint,
      now_ms + lease + money_grace, false FROM jsonb_array_elements(t) x;
    INSERT INTO counter_holds SELECT 'b:' || (x->>0) || '|' || (x->>1), of_call, (x->>3)::bigint, 0,
      now_ms + lease + money_grace, false FROM jsonb_array_elements(b) x;
    FOR e IN SELECT * FROM jsonb_array_elements(r) LOOP
      PERFORM counter_set('r:' || (e->>0), counter_missing('r:' || (e->>0), now_ms) + 60000,
        (e->>1)::bigint, now_ms);
    END LOOP;
    FOR e IN SELECT * FROM jsonb_array_elements(t) LOOP
      PERFORM counter_set('t:' || (e->>0),
        counter_missing('t:' || (e->>0), now_ms) + (e->>2)::bigint * 60000, (e->>1)::bigint, now_ms);
    END LOOP;
  END IF;
  RETURN jsonb_build_object('code', CASE WHEN known THEN 'known' WHEN fits OR force THEN 'granted'
    ELSE 'refused' END, 'now', now_ms, 'c', rc, 'r', rr, 't', rt, 'b', rb);
END $$;

-- True the first time. undo gives tokens back as if nothing had been taken.
CREATE FUNCTION counter_settle(of_call text, used_tokens bigint, used_nanodollars bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE h record; now_ms bigint; units bigint;
BEGIN
  PERFORM counter_lock(ARRAY(SELECT name FROM counter_holds
    WHERE call_id = of_call AND name LIKE 't:%'));
  DELETE FROM counter_holds WHERE name = '' AND call_id = of_call;
  IF NOT FOUND THEN RETURN false; END IF;
  now_ms := counter_now();
  FOR h IN SELECT name, amount, per_minute FROM counter_holds
    WHERE call_id = of_call AND name LIKE 't:%' ORDER BY name LOOP
    units := counter_missing(h.name, now_ms);
    IF units > 0 OR used_tokens > h.amount THEN
      PERFORM counter_set(h.name, least(greatest(0, units + (used_tokens - h.amount) * 60000),
        greatest(units, 2 * h.per_minute * 60000)), h.per_minute, now_ms);
    END IF;
  END LOOP;
  DELETE FROM counter_holds WHERE call_id = of_call
    AND (name LIKE 'c:%' OR name LIKE 't:%' OR used_nanodollars = 0);
  PERFORM 1 FROM counter_holds WHERE call_id = of_call ORDER BY name FOR UPDATE;
  -- Until the book has the call: a week, as long as it may wait on a disk.
  UPDATE counter_holds SET amount = used_nanodollars, done = true, until = now_ms + 604800000
    WHERE call_id = of_call;
  RETURN true;
END $$;

CREATE FUNCTION counter_renew(calls text[], lease bigint, money_grace bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE now_ms bigint := counter_now();
BEGIN
  PERFORM 1 FROM counter_holds WHERE call_id = ANY (calls) AND NOT done
    ORDER BY call_id, name FOR UPDATE;
  UPDATE counter_holds SET until = now_ms + lease
      + CASE WHEN name LIKE 'c:%' THEN 0 ELSE money_grace END
    WHERE call_id = ANY (calls) AND NOT done;
  RETURN now_ms;
END $$;

-- A gateway that stood still finds its holds again: they are kept for ten minutes more.
CREATE FUNCTION counter_sweep(most bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  WITH holds AS (DELETE FROM counter_holds WHERE (name, call_id) IN (SELECT name, call_id
      FROM counter_holds WHERE until < counter_now() - 600000 LIMIT most FOR UPDATE SKIP LOCKED)),
    rates AS (DELETE FROM counter_rates WHERE name IN (SELECT name
      FROM counter_rates WHERE full_at < counter_now() - 600000 LIMIT most FOR UPDATE SKIP LOCKED))
  SELECT counter_now() $$;

-- Two statements: a settlement that commits while the lock is waited for makes a new version of the hold,
-- which only a statement that begins behind it sees.
CREATE FUNCTION counter_booked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM counter_holds h
    JOIN (SELECT id FROM fresh UNION ALL SELECT id || '+' FROM fresh) f ON h.call_id = f.id
    WHERE h.name LIKE 'b:%' ORDER BY h.call_id, h.name FOR UPDATE OF h;
  DELETE FROM counter_holds h USING (SELECT id FROM fresh UNION ALL SELECT id || '+' FROM fresh) f
    WHERE h.call_id = f.id AND h.name LIKE 'b:%';
  RETURN NULL;
END $$;
CREATE TRIGGER counter_booked AFTER INSERT ON calls REFERENCING NEW TABLE AS fresh
FOR EACH STATEMENT EXECUTE FUNCTION counter_booked();
`;
