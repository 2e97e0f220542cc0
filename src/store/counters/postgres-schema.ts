/**
 * Counters in PostgreSQL: rates and slots, one function a reservation, so that a reservation is one round trip and one
 * transaction; and the leases of budgets (budget-leases.ts).
 *
 * What a call holds of rates are rows of `counter_holds`, by name: `''` the call itself, `c:` a slot, `t:` tokens.
 * A live hold counts until its lease ends. Names are locked by advisory locks in the order of their hashes: no
 * row has to be there first, and no two transactions wait for each other.
 *
 * A row of `budget_leases` is money that an instance has taken out of one window of a budget and that
 * `spending` does not have; the transaction that writes a call's row moves its cost from one to the other.
 */
import { sliceShare } from '../leases/lease-home.ts';

export const counterSchema = `CREATE TABLE counter_rates (
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
  PRIMARY KEY (name, call_id)
);
CREATE INDEX counter_holds_call_id ON counter_holds (call_id);
CREATE INDEX counter_holds_until ON counter_holds (until);

-- Instances that hold leases, and the number of the last statement of each. deaf: it was asked for free money and
-- has stated nothing since.
CREATE TABLE budget_instances (
  instance text COLLATE "C" PRIMARY KEY,
  number bigint NOT NULL,
  deaf boolean NOT NULL
);

-- amount: all that the instance has taken out; free: the part that no call holds or has spent; booked: what rows
-- have taken off the lease since it began; lent: what it was given in all, net of what it gave back, so that
-- lent - what calls have taken = what is free; asked: another instance needs what is free.
CREATE TABLE budget_leases (
  counter text COLLATE "C" NOT NULL,
  period text COLLATE "C" NOT NULL,
  instance text COLLATE "C" NOT NULL,
  ends_at bigint,
  amount bigint NOT NULL,
  free bigint NOT NULL,
  booked bigint NOT NULL,
  lent bigint NOT NULL,
  asked boolean NOT NULL,
  PRIMARY KEY (counter, period, instance)
);
CREATE INDEX budget_leases_instance ON budget_leases (instance);

-- Leases that were ended as those of a dead instance, by a row of the ledger each, until the instance returns.
CREATE TABLE ended_leases (
  instance text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  counter text COLLATE "C" NOT NULL,
  period text COLLATE "C" NOT NULL,
  ends_at bigint,
  amount bigint NOT NULL,
  free bigint NOT NULL,
  booked bigint NOT NULL,
  lent bigint NOT NULL,
  ended_at bigint NOT NULL,
  PRIMARY KEY (instance, counter, period)
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

-- c: [[counter, most]], r: [[counter, per minute]], t: [[counter, per minute, amount]];
-- peek: says whether it fits and takes nothing.
CREATE FUNCTION counter_draw(of_call text, c jsonb, r jsonb, t jsonb, lease bigint, peek boolean)
RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  now_ms bigint; e jsonb; n bigint; fits boolean := true; known boolean;
  rc jsonb := '[]'; rr jsonb := '[]'; rt jsonb := '[]';
BEGIN
  PERFORM counter_lock(ARRAY(
    SELECT 'c:' || (x->>0) FROM jsonb_array_elements(c) x UNION ALL
    SELECT 'r:' || (x->>0) FROM jsonb_array_elements(r) x UNION ALL
    SELECT 't:' || (x->>0) FROM jsonb_array_elements(t) x));
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
  IF fits AND NOT known AND NOT peek THEN
    INSERT INTO counter_holds VALUES ('', of_call, 0, 0, now_ms + lease);
    INSERT INTO counter_holds SELECT DISTINCT 'c:' || (x->>0), of_call, 1, 0, now_ms + lease
      FROM jsonb_array_elements(c) x;
    INSERT INTO counter_holds SELECT 't:' || (x->>0), of_call, (x->>2)::bigint, (x->>1)::bigint,
      now_ms + lease FROM jsonb_array_elements(t) x;
    FOR e IN SELECT * FROM jsonb_array_elements(r) LOOP
      PERFORM counter_set('r:' || (e->>0), counter_missing('r:' || (e->>0), now_ms) + 60000,
        (e->>1)::bigint, now_ms);
    END LOOP;
    FOR e IN SELECT * FROM jsonb_array_elements(t) LOOP
      PERFORM counter_set('t:' || (e->>0),
        counter_missing('t:' || (e->>0), now_ms) + (e->>2)::bigint * 60000, (e->>1)::bigint, now_ms);
    END LOOP;
  END IF;
  RETURN jsonb_build_object('code', CASE WHEN known THEN 'known' WHEN fits THEN 'granted'
    ELSE 'refused' END, 'now', now_ms, 'c', rc, 'r', rr, 't', rt);
END $$;

-- True the first time.
CREATE FUNCTION counter_settle(of_call text, used_tokens bigint)
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
  DELETE FROM counter_holds WHERE call_id = of_call;
  RETURN true;
END $$;

CREATE FUNCTION counter_renew(calls text[], lease bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE now_ms bigint := counter_now();
BEGIN
  PERFORM 1 FROM counter_holds WHERE call_id = ANY (calls) ORDER BY call_id, name FOR UPDATE;
  UPDATE counter_holds SET until = now_ms + lease WHERE call_id = ANY (calls);
  RETURN now_ms;
END $$;

-- A gateway that stood still finds its holds again: they are kept for ten minutes more.
CREATE FUNCTION counter_sweep(most bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  WITH holds AS (DELETE FROM counter_holds WHERE (name, call_id) IN (SELECT name, call_id
      FROM counter_holds WHERE until < counter_now() - 600000 LIMIT most FOR UPDATE SKIP LOCKED)),
    rates AS (DELETE FROM counter_rates WHERE name IN (SELECT name
      FROM counter_rates WHERE full_at < counter_now() - 600000 LIMIT most FOR UPDATE SKIP LOCKED))
  SELECT counter_now() $$;

-- stated: [[counter, period, ends at, budget, amount, free, booked, wanted, refill, ask, taken]]; the answer is that of
-- LeaseAnswer: [[settled, others, granted, room, [[asked instance, its number]]]] and the windows of which others want
-- what is free here. deaf_ones: [[instance, number]].
-- Sums are read by one statement, and so from one snapshot: rows move money from leases to spending meanwhile.
CREATE FUNCTION budget_state(of_instance text, of_number bigint, is_known boolean, stated jsonb,
  deaf_ones jsonb, channel text) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  e jsonb; of_counter text; of_period text; now_ms bigint;
  settled bigint; others bigint; amount bigint; free bigint; booked bigint;
  wanted bigint; need bigint; room bigint; given bigint; asked jsonb;
  answer jsonb := '[]';
BEGIN
  UPDATE budget_instances SET number = of_number, deaf = false
    WHERE instance = of_instance AND number < of_number;
  IF NOT FOUND THEN
    IF EXISTS (SELECT FROM budget_instances WHERE instance = of_instance) THEN
      RETURN jsonb_build_object('code', 'late', 'now', counter_now());
    ELSIF is_known OR EXISTS (SELECT FROM ended_leases WHERE instance = of_instance) THEN
      RETURN jsonb_build_object('code', 'expired', 'now', counter_now());
    END IF;
    INSERT INTO budget_instances VALUES (of_instance, of_number, false);
  END IF;
  -- An instance that writes now is not deaf; its row is skipped.
  UPDATE budget_instances SET deaf = true WHERE instance IN (SELECT i.instance FROM budget_instances i
    JOIN jsonb_array_elements(deaf_ones) d ON d->>0 = i.instance AND (d->>1)::bigint = i.number
    FOR UPDATE OF i SKIP LOCKED);
  PERFORM counter_lock(ARRAY(
    SELECT 'b:' || (x->>0) || '|' || (x->>1) FROM jsonb_array_elements(stated) x));
  now_ms := counter_now();
  FOR e IN SELECT * FROM jsonb_array_elements(stated) LOOP
    of_counter := e->>0; of_period := e->>1;
    SELECT coalesce((SELECT s.nanodollars FROM spending s
        WHERE s.counter = of_counter AND s.period = of_period), 0),
      coalesce((SELECT sum(l.amount) FROM budget_leases l WHERE l.counter = of_counter
        AND l.period = of_period AND l.instance <> of_instance), 0),
      coalesce((SELECT l.booked FROM budget_leases l WHERE l.counter = of_counter
        AND l.period = of_period AND l.instance = of_instance), (e->>6)::bigint)
      INTO settled, others, booked;
    -- What rows have taken off the lease and the instance does not know yet.
    amount := greatest(0, (e->>4)::bigint - greatest(0, booked - (e->>6)::bigint));
    free := (e->>5)::bigint;
    wanted := (e->>7)::bigint;
    need := greatest(0, wanted - free);
    room := (e->>3)::bigint - settled - others - amount;
    given := CASE WHEN room <= 0 THEN 0 WHEN need > room THEN room
      WHEN need > 0 OR (e->>8)::boolean THEN need + (room - need) / ${sliceShare} ELSE 0 END;
    IF (e->>4)::bigint + given > 0 THEN
      INSERT INTO budget_leases AS l VALUES (of_counter, of_period, of_instance, (e->>2)::bigint,
        amount + given, greatest(0, free + given - wanted), greatest(booked, (e->>6)::bigint),
        free + given + (e->>10)::bigint, false)
      ON CONFLICT (counter, period, instance) DO UPDATE SET ends_at = coalesce(excluded.ends_at, l.ends_at),
        -- A row that was written since the sums were read has taken its cost off.
        amount = greatest(0, excluded.amount - greatest(0, l.booked - excluded.booked)),
        free = excluded.free, booked = greatest(l.booked, excluded.booked), lent = excluded.lent,
        -- A statement that was on its way when it was asked gives nothing back.
        asked = l.asked AND excluded.free > 0;
    ELSE
      DELETE FROM budget_leases l WHERE l.counter = of_counter AND l.period = of_period
        AND l.instance = of_instance;
    END IF;
    IF (e->>9)::boolean AND need > room THEN
      UPDATE budget_leases l SET asked = true FROM budget_instances i
        WHERE i.instance = l.instance AND NOT i.deaf AND l.counter = of_counter
          AND l.period = of_period AND l.instance <> of_instance;
      IF FOUND THEN PERFORM pg_notify(channel, of_counter || '|' || of_period); END IF;
    END IF;
    SELECT coalesce(jsonb_agg(jsonb_build_array(i.instance, i.number)), '[]') INTO asked
      FROM budget_leases l JOIN budget_instances i ON i.instance = l.instance
      WHERE l.asked AND NOT i.deaf AND l.counter = of_counter AND l.period = of_period
        AND l.instance <> of_instance;
    answer := answer || jsonb_build_array(jsonb_build_array(settled, others, given, room - given, asked));
  END LOOP;
  RETURN jsonb_build_object('code', 'ok', 'now', now_ms, 'leases', answer, 'asked',
    coalesce((SELECT jsonb_agg(jsonb_build_array(l.counter, l.period)) FROM budget_leases l
      WHERE l.instance = of_instance AND l.asked), '[]'));
END $$;
`;
