/** Responses that clients may refer to, in PostgreSQL, for all gateways on one database. */
import { number, text, type Columns } from '../columns.ts';
import { enough } from '../contents.ts';
import {
  responseBytes,
  type ChainLimits,
  type ResponseChain,
  type ResponseRoom,
  type ResponsesOfItems,
  type ResponseStore,
  type ResponseToKeep,
} from '../responses.ts';
import { readResponseRow } from '../sqlite/responses.ts';
import type { Statement } from '../statements.ts';
import type { Sql } from './pool.ts';
import type { PostgresServer } from './server.ts';

/** Ids of items have no comma. In the order of their ids: two gateways that keep the same ones must not wait for each other. */
const keep: Statement = {
  name: 'response_keep',
  text: `SELECT id, response_keep(key_id, id, nullif(previous, ''), started, keep_ms, size, sealed,
      string_to_array(items, ',')) AS kept
    FROM (SELECT *, substr($1::bytea, start, length) AS sealed
      FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::int[],
        $9::int[], $10::text[])
        AS r (key_id, id, previous, started, keep_ms, size, start, length, items)) rows
    ORDER BY key_id, id`,
};
/** One row more than may be read tells that there is more. */
const chain: Statement = {
  name: 'response_chain',
  text: `WITH RECURSIVE chain AS (
      SELECT r.id, r.previous, 1 AS link, length(r.response)::bigint AS size FROM kept_responses r
        WHERE r.key_id = $1 AND r.id = $2 AND r.until > counter_now()
      UNION ALL
      SELECT r.id, r.previous, c.link + 1, c.size + length(r.response) FROM chain c
        JOIN kept_responses r ON r.key_id = $1 AND r.id = c.previous
        WHERE r.until > counter_now() AND c.link <= $3::bigint AND c.size <= $4::bigint)
    SELECT c.link <= $3::bigint AND c.size <= $4::bigint AS fits, r.id, r.key_id, r.previous,
        CASE WHEN c.size <= $4::bigint THEN r.response END AS response
      FROM chain c JOIN kept_responses r ON r.key_id = $1 AND r.id = c.id ORDER BY c.link`,
};
const places: Statement = {
  name: 'response_places',
  text: `SELECT DISTINCT ON (i.item_id) i.item_id, r.id FROM kept_response_items i
    JOIN kept_responses r ON r.key_id = i.key_id AND r.id = i.response_id
    WHERE i.key_id = $1 AND i.item_id = ANY($2::text[]) AND r.until > counter_now()
    ORDER BY i.item_id, r.kept_at DESC, r.id`,
};
const several: Statement = {
  name: 'response_several',
  text: `SELECT id, key_id, previous, response FROM (
      SELECT id, key_id, previous, response, sum(length(response)) OVER (ORDER BY id) AS size
        FROM kept_responses WHERE key_id = $1 AND id = ANY($2::text[])) r
    WHERE size <= $3::bigint`,
};
const remove: Statement = {
  name: 'response_remove',
  text: 'DELETE FROM kept_responses WHERE key_id = $1 AND id = $2 RETURNING until > counter_now() AS alive',
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
const total: Statement = {
  name: 'response_bytes',
  text: 'SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM kept_responses',
};
const largest: Statement = {
  name: 'response_largest',
  text: `SELECT key_id, sum(bytes)::bigint AS bytes FROM kept_responses
    GROUP BY key_id ORDER BY 2 DESC LIMIT 1`,
};
const oldest: Statement = {
  name: 'response_oldest',
  text: `SELECT key_id, id, bytes FROM kept_responses
    ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED`,
};
const oldestOf: Statement = {
  name: 'response_oldest_of',
  text: `SELECT key_id, id, bytes FROM kept_responses WHERE key_id = $2
    ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED`,
};
const removeSeveral: Statement = {
  name: 'response_remove_several',
  text: `DELETE FROM kept_responses k USING unnest($1::text[], $2::text[]) AS gone (key_id, id)
    WHERE k.key_id = gone.key_id AND k.id = gone.id`,
};

export class PostgresResponses implements ResponseStore {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  async keep(responses: readonly ResponseToKeep[]): Promise<readonly boolean[]> {
    const lengths = responses.map(({ sealed }) => sealed.length);
    let start = 1;
    const starts = lengths.map((length) => (start += length) - length);
    const { rows } = await this.#server.run(keep, [
      Buffer.concat(responses.map(({ sealed }) => sealed)),
      responses.map(({ keyId }) => keyId),
      responses.map(({ id }) => id),
      responses.map(({ previous }) => previous ?? ''),
      responses.map(({ startedAt }) => Math.round(startedAt)),
      responses.map(({ keepMs }) => keepMs),
      responses.map(responseBytes),
      starts,
      lengths,
      responses.map(({ items }) => items.join(',')),
    ]);
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

  async remove(keyId: string, id: string): Promise<boolean> {
    const { rows } = await this.#server.run(remove, [keyId, id]);
    return rows[0]?.['alive'] === true;
  }

  async removeOf(keyId: string, most: number): Promise<number> {
    return (await this.#server.run(removeOf, [keyId, most])).rows.length;
  }

  sweep(most: number, { totalBytes, keyBytes }: ResponseRoom): Promise<number> {
    return this.#server.transaction(async (sql) => {
      const old = await sql.run(removeOld, [most]);
      if (old.rows.length > 0) return old.rows.length;
      const [richest] = (await sql.run(largest)).rows;
      if (richest === undefined) return 0;
      const beyondKey = number(richest, 'bytes') - keyBytes;
      if (beyondKey > 0) {
        const { rows } = await sql.run(oldestOf, [most, text(richest, 'key_id')]);
        return removeOldest(sql, rows, beyondKey);
      }
      const [sum = {}] = (await sql.run(total)).rows;
      const beyond = number(sum, 'bytes') - totalBytes;
      if (beyond <= 0) return 0;
      return removeOldest(sql, (await sql.run(oldest, [most])).rows, beyond);
    });
  }
}

async function removeOldest(sql: Sql, rows: readonly Columns[], bytes: number): Promise<number> {
  const sizes = rows.map((row) => number(row, 'bytes'));
  const removed = enough(sizes, bytes).rows;
  const gone = rows.slice(0, removed);
  const keys = gone.map((row) => text(row, 'key_id'));
  await sql.run(removeSeveral, [keys, gone.map((row) => text(row, 'id'))]);
  return removed;
}
