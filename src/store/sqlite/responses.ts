/** Responses that clients may refer to, in SQLite. */
import { number, text, type Columns } from '../columns.ts';
import { enough } from '../contents.ts';
import type { Synchronous } from '../remote.ts';
import {
  responseBytes,
  type ChainLimits,
  type ResponseChain,
  type ResponseRoom,
  type ResponsesOfItems,
  type ResponseStore,
  type ResponseToKeep,
  type SealedResponse,
} from '../responses.ts';
import type { Statements } from './database.ts';

const isForgotten = 'SELECT 1 FROM forgotten_contents WHERE key_id = ? AND before > ?';
const remove = 'DELETE FROM kept_responses WHERE key_id = ? AND id = ?';
const keep = `INSERT INTO kept_responses (key_id, id, previous, kept_at, until, bytes, response)
  VALUES ($keyId, $id, $previous, $now, $until, $bytes, $sealed) ON CONFLICT DO NOTHING`;
const keepItem = `INSERT INTO kept_response_items (key_id, item_id, response_id) VALUES (?, ?, ?)
  ON CONFLICT DO NOTHING`;
const find = `SELECT id, key_id, previous, response FROM kept_responses
  WHERE key_id = ? AND id = ? AND until > ?`;
const newestWith = `SELECT r.id FROM kept_response_items i
  JOIN kept_responses r ON r.key_id = i.key_id AND r.id = i.response_id
  WHERE i.key_id = ? AND i.item_id = ? AND r.until > ? ORDER BY r.kept_at DESC, r.id LIMIT 1`;
const removeOf = `DELETE FROM kept_responses WHERE rowid IN
  (SELECT rowid FROM kept_responses WHERE key_id = ? LIMIT ?)`;
const removeOld = `DELETE FROM kept_responses WHERE rowid IN
  (SELECT rowid FROM kept_responses WHERE until <= ? ORDER BY until LIMIT ?)`;
const total = 'SELECT coalesce(sum(bytes), 0) AS bytes FROM kept_responses';
const largest = `SELECT key_id, sum(bytes) AS bytes FROM kept_responses
  GROUP BY key_id ORDER BY 2 DESC LIMIT 1`;
const oldest = 'SELECT key_id, id, bytes FROM kept_responses ORDER BY until LIMIT ?';
const oldestOf = `SELECT key_id, id, bytes FROM kept_responses WHERE key_id = ?
  ORDER BY until LIMIT ?`;

export class SqliteResponses implements Synchronous<ResponseStore> {
  readonly #sql: Statements;
  readonly #wall: () => number;

  /** @param wall ms since the epoch */
  constructor(sql: Statements, wall: () => number) {
    this.#sql = sql;
    this.#wall = () => Math.round(wall());
  }

  keep(responses: readonly ResponseToKeep[]): readonly boolean[] {
    return this.#sql.write(() => responses.map((each) => this.#keepOne(each)));
  }

  #keepOne(response: ResponseToKeep): boolean {
    const { keyId, id, previous, items, startedAt, keepMs, sealed } = response;
    if (this.#sql.of(isForgotten).get(keyId, Math.round(startedAt)) !== undefined) return false;
    const now = this.#wall();
    const bytes = responseBytes(response);
    const times = { now, until: now + keepMs };
    const row = { keyId, id, previous: previous ?? null, ...times, bytes, sealed };
    if (this.#sql.of(keep).run(row).changes === 0) {
      this.#sql.of(remove).run(keyId, id);
      this.#sql.of(keep).run(row);
    }
    for (const item of items) this.#sql.of(keepItem).run(keyId, item, id);
    return true;
  }

  chain(keyId: string, id: string, { links, bytes }: ChainLimits): ResponseChain {
    const responses: SealedResponse[] = [];
    let sum = 0;
    for (let wanted: string | undefined = id; wanted !== undefined;) {
      const row = this.#sql.of(find).get(keyId, wanted, this.#wall());
      if (row === undefined) return { responses, end: 'broken' };
      const found = readResponseRow(row);
      sum += found.sealed.length;
      if (responses.length === links || sum > bytes) return { responses, end: 'long' };
      responses.push(found);
      wanted = found.previous;
    }
    return { responses, end: 'whole' };
  }

  holding(keyId: string, items: readonly string[], bytes: number): ResponsesOfItems {
    const now = this.#wall();
    const places = items.flatMap((item) => {
      const row = this.#sql.of(newestWith).get(keyId, item, now);
      return row === undefined ? [] : [[item, text(row, 'id')] as const];
    });
    const responses: SealedResponse[] = [];
    let sum = 0;
    for (const id of new Set(places.map(([, response]) => response))) {
      const row = this.#sql.of(find).get(keyId, id, now);
      if (row === undefined) continue;
      const found = readResponseRow(row);
      sum += found.sealed.length;
      if (sum > bytes) break;
      responses.push(found);
    }
    return { places, responses };
  }

  remove(keyId: string, id: string): boolean {
    return this.#sql.write(() => {
      const isThere = this.#sql.of(find).get(keyId, id, this.#wall()) !== undefined;
      this.#sql.of(remove).run(keyId, id);
      return isThere;
    });
  }

  removeOf(keyId: string, most: number): number {
    return this.#sql.write(() => Number(this.#sql.of(removeOf).run(keyId, most).changes));
  }

  sweep(most: number, { totalBytes, keyBytes }: ResponseRoom): number {
    return this.#sql.write(() => {
      const old = Number(this.#sql.of(removeOld).run(this.#wall(), most).changes);
      if (old > 0) return old;
      const richest = this.#sql.of(largest).get();
      if (richest === undefined) return 0;
      const beyondKey = number(richest, 'bytes') - keyBytes;
      if (beyondKey > 0) {
        return this.#removeOldest(
          this.#sql.of(oldestOf).all(text(richest, 'key_id'), most),
          beyondKey,
        );
      }
      const beyond = number(this.#sql.of(total).get() ?? {}, 'bytes') - totalBytes;
      return beyond > 0 ? this.#removeOldest(this.#sql.of(oldest).all(most), beyond) : 0;
    });
  }

  #removeOldest(rows: readonly Columns[], bytes: number): number {
    const sizes = rows.map((row) => number(row, 'bytes'));
    const removed = enough(sizes, bytes);
    for (const row of rows.slice(0, removed.rows)) {
      this.#sql.of(remove).run(text(row, 'key_id'), text(row, 'id'));
    }
    return removed.rows;
  }
}

/** A row of any of the stores. */
export function readResponseRow(row: Columns): SealedResponse {
  const { response, previous } = row;
  return {
    id: text(row, 'id'),
    keyId: text(row, 'key_id'),
    previous: typeof previous === 'string' ? previous : undefined,
    sealed: response instanceof Uint8Array ? response : new Uint8Array(),
  };
}
