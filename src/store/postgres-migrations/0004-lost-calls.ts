/**
 * Money that nobody settles is spent, not free: a hold ends when its call is booked and in no other way.
 * The calls that a killed gateway had not told of yet are booked with what they held (`counter_lost`), so
 * each hold says whose call it is (`about`, JSON; b: [[counter, window, limit, amount, about]]).
 */
export const lostCalls = `
ALTER TABLE counter_holds ADD COLUMN about text;

CREATE OR REPLACE FUNCTION counter_balance(of_counter text, of_window text, now_ms bigint,
  OUT settled bigint, OUT open bigint) LANGUAGE sql VOLATILE AS $$
  SELECT coalesce((SELECT nanodollars FROM spending
      WHERE counter = of_counter AND period = of_window), 0)
    + coalesce(sum(amount) FILTER (WHERE done), 0)::bigint,
    coalesce(sum(amount) FILTER (WHERE NOT done), 0)::bigint
  FROM counter_holds WHERE name = 'b:' || of_counter || '|' || of_window $$;

CREATE OR REPLACE FUNCTION counter_draw(of_call text, c jsonb, r jsonb, t jsonb, b jsonb,
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
      now_ms + lease + money_grace, false, x->>4 FROM jsonb_array_elements(b) x;
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

CREATE OR REPLACE FUNCTION counter_sweep(most bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  WITH holds AS (DELETE FROM counter_holds WHERE (name, call_id) IN (SELECT name, call_id
      FROM counter_holds WHERE until < counter_now() - 600000 AND name NOT LIKE 'b:%'
      LIMIT most FOR UPDATE SKIP LOCKED)),
    rates AS (DELETE FROM counter_rates WHERE name IN (SELECT name
      FROM counter_rates WHERE full_at < counter_now() - 600000 LIMIT most FOR UPDATE SKIP LOCKED))
  SELECT counter_now() $$;

-- Money of calls that are neither running nor booked: its gateway let the lease end, or settled so long
-- ago (unbooked ms; a settled hold has a week from then on). A call's further holds are named call+, call+2, ...
CREATE FUNCTION counter_lost(unbooked bigint, most bigint)
RETURNS TABLE (id text, name text, amount bigint, about text) LANGUAGE sql VOLATILE AS $$
  WITH due AS (SELECT DISTINCT split_part(h.call_id, '+', 1) COLLATE "C" AS id FROM counter_holds h
      WHERE h.name LIKE 'b:%' AND h.until < counter_now() + 604800000 - unbooked
        AND (h.done OR h.until < counter_now()) ORDER BY 1 LIMIT most)
  SELECT due.id, h.name, h.amount, h.about FROM due
    JOIN counter_holds h ON h.call_id >= due.id AND h.call_id < due.id || ',' AND h.name LIKE 'b:%'
    WHERE NOT EXISTS (SELECT FROM open_calls o WHERE o.id = due.id)
      AND NOT EXISTS (SELECT FROM counter_holds a WHERE a.call_id = due.id AND a.name LIKE 'b:%'
        AND NOT a.done AND a.until >= counter_now())
    ORDER BY due.id, h.name $$;

-- Also what calls held under further names.
CREATE FUNCTION counter_forget(ids text[]) RETURNS void LANGUAGE sql VOLATILE AS $$
  DELETE FROM counter_holds h USING unnest(ids) AS i
    WHERE h.call_id COLLATE "C" >= i AND h.call_id COLLATE "C" < i || ',' AND h.name LIKE 'b:%' $$;
`;
