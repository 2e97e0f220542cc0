/** Answers by `Idempotency-Key` on PostgreSQL, for all gateways on one database. */
import {
  type AnswerClaim,
  type AnswerStore,
  type AnswerToKeep,
  type ChainLimits,
  type Claimed,
  type ContentStore,
  type ContentToRemove,
  type OwnClaim,
  type Refusal,
  type RemovedContent,
  type ResponseChain,
  type ResponseRoom,
  type ResponseStore,
  type ResponseToKeep,
  type ResponsesOfItems,
  type SealedContent,
  contentBytes,
  enough,
  storedBytes,
  responseColumns,
} from '../sealed.ts';
import { number, text } from '../columns.ts';
import { readContentRow, readResponseRow } from '../sqlite/sealed.ts';
import type { Statement } from '../statements.ts';
import type { Row, SqlValue } from './pool.ts';
import type { PostgresServer } from './server.ts';

const claim: Statement = {
  name: 'answer_claim',
  text: 'SELECT state, known_mark, kept FROM answer_claim($1, $2, $3, $4, $5)',
};
const renew: Statement = {
  name: 'answer_renew',
  text: `UPDATE kept_answers k SET until = counter_now() + $3
    FROM unnest($1::text[], $2::text[]) AS r (id, owner)
    WHERE k.id = r.id AND k.owner = r.owner AND NOT k.done`,
};
const keep: Statement = {
  name: 'answer_keep',
  text: 'SELECT answer_keep($1, $2, $3, $4, $5, $6, $7) AS kept',
};
const release: Statement = {
  name: 'answer_release',
  text: 'DELETE FROM kept_answers WHERE id = $1 AND owner = $2 AND NOT done',
};
const releaseAll: Statement = {
  name: 'answer_release_all',
  text: 'DELETE FROM kept_answers WHERE NOT done',
};
const sweep: Statement = {
  name: 'answer_sweep',
  text: 'SELECT answer_sweep($1, $2)::integer AS removed',
};

export class PostgresAnswers implements AnswerStore {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  async claim({ id, keyId, owner, fingerprint, leaseMs }: AnswerClaim): Promise<Claimed> {
    const row = await this.#run(claim, [id, keyId, owner, fingerprint, leaseMs]);
    const state = text(row, 'state');
    if (state === 'mine') return { state };
    const known = { fingerprint: text(row, 'known_mark') };
    if (state === 'running') return { state, ...known };
    const { kept } = row;
    return { state: 'done', ...known, answer: kept instanceof Uint8Array ? kept : undefined };
  }

  async renew(claims: readonly OwnClaim[], leaseMs: number): Promise<void> {
    const ids = claims.map(({ id }) => id);
    const owners = claims.map(({ owner }) => owner);
    await this.#run(renew, [ids, owners, leaseMs]);
  }

  async keep({ id, owner, answer, ...most }: AnswerToKeep): Promise<boolean> {
    const { keepMs, maxBytes, maxAnswers } = most;
    const sizes = [storedBytes(answer), keepMs, maxBytes, maxAnswers];
    const row = await this.#run(keep, [id, owner, answer ?? null, ...sizes]);
    return Boolean(row['kept']);
  }

  async release({ id, owner }: OwnClaim): Promise<void> {
    await this.#run(release, [id, owner]);
  }

  async releaseAll(): Promise<void> {
    await this.#run(releaseAll, []);
  }

  async sweep(most: number, bytes: number): Promise<number> {
    return Number((await this.#run(sweep, [most, bytes]))['removed']);
  }

  /** Each of them does no harm when it is done twice. @throws StoreError */
  async #run(statement: Statement, values: readonly SqlValue[]): Promise<Row> {
    const { rows } = await this.#server.run(statement, values);
    return rows[0] ?? {};
  }
}

// The content of calls, in PostgreSQL, for all gateways on one database.

const keepContents: Statement = {
  name: 'content_keep',
  text: `INSERT INTO kept_contents (id, key_id, started_at, bytes, content)
    SELECT $1::text, $2::text, $3::bigint, $4::bigint, $5::bytea
    WHERE NOT EXISTS (SELECT 1 FROM forgotten_contents WHERE key_id = $2 AND before > $3)
    ON CONFLICT (id) DO NOTHING`,
};
const find: Statement = {
  name: 'content_find',
  text: 'SELECT id, key_id, started_at, content FROM kept_contents WHERE id = $1',
};
const total: Statement = {
  name: 'content_bytes',
  text: 'SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM kept_contents',
};
// Two gateways that remove at the same time take different rows.
const oldest: Statement = {
  name: 'content_oldest',
  text: `SELECT id, bytes FROM kept_contents WHERE started_at < $1
    ORDER BY started_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
};
const oldestOfKey: Statement = {
  name: 'content_oldest_of_key',
  text: `SELECT id, bytes FROM kept_contents WHERE key_id = $3 AND started_at < $1
    ORDER BY started_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
};
const oldestOfLargest: Statement = {
  name: 'content_oldest_of_largest',
  text: `SELECT id, bytes FROM kept_contents WHERE key_id =
      (SELECT key_id FROM kept_contents GROUP BY key_id ORDER BY sum(bytes) DESC, key_id LIMIT 1)
    ORDER BY started_at LIMIT $1 FOR UPDATE SKIP LOCKED`,
};
const remove: Statement = {
  name: 'content_remove',
  text: 'DELETE FROM kept_contents WHERE id = ANY($1::text[])',
};

const forget: Statement = {
  name: 'content_forget',
  text: `INSERT INTO forgotten_contents (key_id, before) VALUES ($1, $2)
    ON CONFLICT (key_id) DO UPDATE SET before = greatest(forgotten_contents.before, excluded.before)`,
};

/**
 * Writers share this lock, removals hold it exclusively: content of calls before the mark is committed before
 * the mark is set, and then removed.
 */
const turn = 5_563_204_124;
const keepsTurn: Statement = {
  name: 'content_keeps_turn',
  text: 'SELECT pg_advisory_xact_lock_shared($1)',
};
const forgetsTurn: Statement = {
  name: 'content_forgets_turn',
  text: 'SELECT pg_advisory_xact_lock($1)',
};

export class PostgresContents implements ContentStore {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  async keep(contents: readonly SealedContent[]): Promise<void> {
    await this.#server.transaction(async (sql) => {
      await sql.run(keepsTurn, [turn]);
      for (const content of contents) {
        const { id, keyId, startedAt, sealed } = content;
        const size = contentBytes(content);
        await sql.run(keepContents, [id, keyId, Math.round(startedAt), size, sealed]);
      }
    });
  }

  async find(id: string): Promise<SealedContent | undefined> {
    const { rows } = await this.#server.use(() => this.#server.admin.run(find, [id]));
    return rows[0] === undefined ? undefined : readContentRow(rows[0]);
  }

  async bytes(): Promise<number> {
    const { rows } = await this.#server.use(() => this.#server.admin.run(total));
    return number(rows[0] ?? {}, 'bytes');
  }

  remove(which: ContentToRemove, most: number): Promise<RemovedContent> {
    return this.#server.transaction(async (sql) => {
      const { rows } = await sql.run(...oldestFirst(which, most));
      const sizes = rows.map((row) => number(row, 'bytes'));
      const removed = enough(sizes, which.bytes);
      const ids = rows.slice(0, removed.rows).map((row) => text(row, 'id'));
      if (ids.length > 0) await sql.run(remove, [ids]);
      return removed;
    });
  }

  forget(keyId: string, before: number): Promise<void> {
    return this.#server.transaction(async (sql) => {
      await sql.run(forgetsTurn, [turn]);
      await sql.run(forget, [keyId, Math.round(before)]);
    });
  }
}

function oldestFirst(which: ContentToRemove, most: number): [Statement, readonly SqlValue[]] {
  if (which.bytes !== undefined) return [oldestOfLargest, [most]];
  const { keyId, before = Number.MAX_SAFE_INTEGER } = which;
  return keyId === undefined ? [oldest, [before, most]] : [oldestOfKey, [before, most, keyId]];
}

// Responses that clients may refer to, in PostgreSQL, for all gateways on one database.

/**
 * Ids of items have no comma. In the order of their ids: two gateways that keep the same ones must not wait for each
 * other. Responses that were deleted long before need no call of the function; it finds those that were deleted since.
 */
const keepResponses: Statement = {
  name: 'response_keep',
  text: `SELECT id, CASE WHEN EXISTS (SELECT 1 FROM kept_responses k
        WHERE k.key_id = rows.key_id AND k.id = rows.id AND length(k.response) = 0) THEN false
      ELSE response_keep(key_id, id, nullif(previous, ''), started, keep_ms, size, sealed, items) END AS kept
    FROM (SELECT *, substr($1::bytea, start, length) AS sealed
      FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::int[],
        $9::int[], $10::text[])
        AS r (key_id, id, previous, started, keep_ms, size, start, length, items)) rows
    ORDER BY key_id, id`,
};
/** One row beyond the limit shows that there are more. */
const chain: Statement = {
  name: 'response_chain',
  text: `WITH RECURSIVE chain AS (
      SELECT r.id, r.previous, 1 AS link, length(r.response)::bigint AS size FROM kept_responses r
        WHERE r.key_id = $1 AND r.id = $2 AND r.until > counter_now() AND length(r.response) > 0
      UNION ALL
      SELECT r.id, r.previous, c.link + 1, c.size + length(r.response) FROM chain c
        JOIN kept_responses r ON r.key_id = $1 AND r.id = c.previous
        WHERE r.until > counter_now() AND length(r.response) > 0 AND c.link <= $3::bigint AND c.size <= $4::bigint)
    SELECT c.link <= $3::bigint AND c.size <= $4::bigint AS fits, r.id, r.key_id, r.previous,
        CASE WHEN c.size <= $4::bigint THEN r.response END AS response
      FROM chain c JOIN kept_responses r ON r.key_id = $1 AND r.id = c.id ORDER BY c.link`,
};
const places: Statement = {
  name: 'response_places',
  text: `(SELECT DISTINCT ON (i.item_id) i.item_id, r.id FROM kept_response_items i
      JOIN kept_responses r ON r.key_id = i.key_id AND r.id = i.response_id
      WHERE i.key_id = $1 AND i.item_id = ANY($2::text[]) AND r.until > counter_now()
      ORDER BY i.item_id, r.kept_at DESC, r.id)
    UNION ALL SELECT id, id FROM kept_responses
      WHERE key_id = $1 AND id = ANY($2::text[]) AND until > counter_now() AND length(response) > 0`,
};
const several: Statement = {
  name: 'response_several',
  text: `SELECT id, key_id, previous, response FROM (
      SELECT id, key_id, previous, response, sum(length(response)) OVER (ORDER BY id) AS size
        FROM kept_responses WHERE key_id = $1 AND id = ANY($2::text[])) r
    WHERE size <= $3::bigint`,
};
const removeResponses: Statement = {
  name: 'response_remove',
  text: `DELETE FROM kept_responses WHERE key_id = $1 AND id = $2 AND length(response) > 0
    RETURNING until > counter_now() AS alive`,
};
/** A row without bytes marks a response that was deleted before its end. It counts against no size limit. */
const refuseResponse: Statement = {
  name: 'response_refuse',
  text: `INSERT INTO kept_responses (id, key_id, previous, kept_at, until, bytes, items, response)
    VALUES ($2, $1, NULL, counter_now(), counter_now() + $3::bigint, 0, '', ''::bytea)
    ON CONFLICT DO NOTHING RETURNING 1 AS refused`,
};
/** Two gateways that do this at the same time take different rows. */
const removeRefused: Statement = {
  name: 'response_remove_refused',
  text: `DELETE FROM kept_responses k USING (SELECT key_id, id FROM kept_responses
      WHERE key_id = $1 AND until <= counter_now() + $2::bigint AND bytes = 0
      ORDER BY until DESC OFFSET $3::bigint FOR UPDATE SKIP LOCKED) old
    WHERE k.key_id = old.key_id AND k.id = old.id`,
};
const removeOf: Statement = {
  name: 'response_remove_of',
  text: `DELETE FROM kept_responses WHERE key_id = $1 AND id IN
    (SELECT id FROM kept_responses WHERE key_id = $1 LIMIT $2) RETURNING 1 AS gone`,
};
// Two gateways that sweep at the same time take different rows.
const removeOld: Statement = {
  name: 'response_remove_old',
  text: `DELETE FROM kept_responses k USING (SELECT key_id, id FROM kept_responses
      WHERE until <= counter_now() ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED) old
    WHERE k.key_id = old.key_id AND k.id = old.id RETURNING 1 AS gone`,
};
/**
 * `level` of a row is what its key has from this row on. The rows in the order of their levels are those that go when
 * each time the oldest of the key that is the largest by then goes; `before` is what has gone before a row. Only rows are
 * read that can be among the first `$1`, and none while there is room. Which rows go is decided before they are locked:
 * of two gateways that sweep at the same time, the second removes no others.
 */
const removeBeyond: Statement = {
  name: 'response_remove_beyond',
  text: `WITH keys AS MATERIALIZED (SELECT key_id, sum(bytes) AS whole FROM kept_responses GROUP BY key_id),
    beyond AS (SELECT key_id, id FROM (SELECT key_id, id, level,
          sum(bytes) OVER (ORDER BY level DESC, key_id, id ROWS UNBOUNDED PRECEDING) - bytes AS before
        FROM (SELECT r.key_id, r.id, r.bytes, whole + r.bytes - sum(r.bytes)
                OVER (PARTITION BY r.key_id ORDER BY r.until, r.id ROWS UNBOUNDED PRECEDING) AS level
            FROM (SELECT key_id, whole FROM keys
                WHERE (SELECT max(whole) > $2::bigint OR sum(whole) > $3::bigint FROM keys)
                ORDER BY whole DESC LIMIT $1) k
              CROSS JOIN LATERAL (SELECT key_id, id, until, bytes FROM kept_responses
                WHERE key_id = k.key_id AND bytes > 0 ORDER BY until, id LIMIT $1) r) leveled
        ORDER BY level DESC, key_id, id LIMIT $1) first
      WHERE level > $2::bigint OR before < (SELECT sum(whole) FROM keys) - $3::bigint)
    DELETE FROM kept_responses k USING (SELECT r.key_id, r.id FROM kept_responses r
        JOIN beyond b ON r.key_id = b.key_id AND r.id = b.id FOR UPDATE OF r SKIP LOCKED) old
      WHERE k.key_id = old.key_id AND k.id = old.id RETURNING 1 AS gone`,
};

export class PostgresResponses implements ResponseStore {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  async keep(responses: readonly ResponseToKeep[]): Promise<readonly boolean[]> {
    const columns = responseColumns(responses);
    const { keyIds, ids, previous, startedAt, keepMs, bytes, items, lengths, sealed } = columns;
    let start = 1;
    const starts = lengths.map((length) => (start += length) - length);
    const more = [keyIds, ids, previous, startedAt, keepMs, bytes, starts, lengths, items];
    const { rows } = await this.#server.run(keepResponses, [sealed, ...more]);
    const kept = new Set(rows.flatMap((row) => (row['kept'] === true ? [row['id']] : [])));
    return responses.map(({ id }) => kept.has(id));
  }

  async chain(keyId: string, id: string, { links, bytes }: ChainLimits): Promise<ResponseChain> {
    const { rows } = await this.#server.run(chain, [keyId, id, links, bytes]);
    const fitting = rows.filter((row) => row['fits'] === true);
    const responses = fitting.map(readResponseRow);
    if (fitting.length < rows.length) return { responses, end: 'long' };
    const last = responses.at(-1);
    const isWhole = last !== undefined && last.previous === undefined;
    return { responses, end: isWhole ? 'whole' : 'broken' };
  }

  async holding(keyId: string, items: readonly string[], bytes: number): Promise<ResponsesOfItems> {
    const found = await this.#server.run(places, [keyId, items]);
    const pairs = found.rows.map((row) => [text(row, 'item_id'), text(row, 'id')] as const);
    const ids = [...new Set(pairs.map(([, response]) => response))];
    if (ids.length === 0) return { places: [], responses: [] };
    const { rows } = await this.#server.run(several, [keyId, ids, bytes]);
    return { places: pairs, responses: rows.map(readResponseRow) };
  }

  async remove(keyId: string, id: string, refusal?: Refusal): Promise<boolean> {
    const { rows } = await this.#server.run(removeResponses, [keyId, id]);
    if (rows.length > 0 || refusal === undefined) return rows[0]?.['alive'] === true;
    const refused = await this.#server.run(refuseResponse, [keyId, id, refusal.ms]);
    if (refused.rows.length > 0) {
      await this.#server.run(removeRefused, [keyId, refusal.ms, refusal.most]);
      return false;
    }
    // It was stored between the two statements, or it was refused before.
    return (await this.#server.run(removeResponses, [keyId, id])).rows[0]?.['alive'] === true;
  }

  async removeOf(keyId: string, most: number): Promise<number> {
    return (await this.#server.run(removeOf, [keyId, most])).rows.length;
  }

  sweep(most: number, { totalBytes, keyBytes }: ResponseRoom): Promise<number> {
    return this.#server.transaction(async (sql) => {
      const old = await sql.run(removeOld, [most]);
      if (old.rows.length > 0) return old.rows.length;
      return (await sql.run(removeBeyond, [most, keyBytes, totalBytes])).rows.length;
    });
  }
}
