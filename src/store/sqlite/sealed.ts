/** Answers by `Idempotency-Key` in SQLite. */
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
  type ResponseColumns,
  type ResponsesOfItems,
  type SealedContent,
  type SealedResponse,
  claimGraceMs,
  contentBytes,
  enough,
  storedBytes,
} from '../sealed.ts';
import { type Columns, number, text } from '../columns.ts';
import type { Synchronous } from '../remote.ts';
import type { Statements } from './database.ts';

// `until` of a claim is monotonic: all who claim ask this process, and a start releases all. That of an answer is a date.
const find = `SELECT key_id, owner, mark, done, bytes, answer,
    until > CASE done WHEN 0 THEN $now ELSE $wall END AS alive
  FROM kept_answers WHERE id = $id`;
const take = `INSERT INTO kept_answers (id, key_id, owner, mark, until, done, bytes)
  VALUES ($id, $keyId, $owner, $mark, $until, 0, 0)
  ON CONFLICT (id) DO UPDATE SET key_id = excluded.key_id, owner = excluded.owner,
    mark = excluded.mark, until = excluded.until, done = 0, bytes = 0, answer = NULL`;
const renew = `UPDATE kept_answers SET until = $until
  WHERE id = $id AND owner = $owner AND done = 0`;
const keep = `UPDATE kept_answers SET done = 1, until = $until, bytes = $bytes,
  answer = $answer WHERE id = $id AND owner = $owner AND done = 0 RETURNING key_id`;
const isStored = 'SELECT 1 FROM kept_answers WHERE id = ? AND owner = ? AND done = 1';
const release = 'DELETE FROM kept_answers WHERE id = ? AND owner = ? AND done = 0';
const releaseAll = 'DELETE FROM kept_answers WHERE done = 0';
const add = `INSERT INTO kept_answer_sums (key_id, answers, bytes) VALUES ($keyId, $answers, $bytes)
  ON CONFLICT (key_id) DO UPDATE SET answers = answers + excluded.answers,
    bytes = bytes + excluded.bytes RETURNING answers, bytes`;
const forget = 'DELETE FROM kept_answer_sums WHERE key_id = ? AND answers <= 0';
const oldestOf = `SELECT id, bytes FROM kept_answers WHERE key_id = ? AND done = 1 AND id <> ?
  ORDER BY until, id`;
const remove = 'DELETE FROM kept_answers WHERE id = ?';
const old = `SELECT id, key_id, done, bytes FROM kept_answers
  WHERE until <= $wall AND (done = 1 OR until <= $now - ${claimGraceMs}) ORDER BY until LIMIT $most`;
const total = 'SELECT coalesce(sum(bytes), 0) AS bytes FROM kept_answer_sums';
const largest = 'SELECT key_id, bytes FROM kept_answer_sums ORDER BY bytes DESC LIMIT 1';

export class SqliteAnswers implements Synchronous<AnswerStore> {
  readonly #sql: Statements;
  readonly #now: () => number;
  readonly #wall: () => number;

  /**
   * @param clock `now`: monotonic ms, of one origin for all engines of the process; `wall`: ms since the epoch
   */
  constructor(sql: Statements, clock: { now(): number; wall(): number }) {
    this.#sql = sql;
    this.#now = () => Math.round(clock.now());
    this.#wall = () => Math.round(clock.wall());
  }

  claim({ id, keyId, owner, fingerprint, leaseMs }: AnswerClaim): Claimed {
    return this.#sql.write((): Claimed => {
      const row = this.#sql.of(find).get({ id, now: this.#now(), wall: this.#wall() });
      const known = row !== undefined && number(row, 'alive') === 1 && text(row, 'owner') !== owner;
      if (known) return claimOf(row);
      if (row !== undefined && number(row, 'done') === 1) this.#count(row, -1);
      this.#sql.of(take).run({ id, keyId, owner, mark: fingerprint, until: this.#now() + leaseMs });
      return { state: 'mine' };
    });
  }

  renew(claims: readonly OwnClaim[], leaseMs: number): void {
    this.#sql.write(() => {
      const until = this.#now() + leaseMs;
      for (const { id, owner } of claims) this.#sql.of(renew).run({ id, owner, until });
    });
  }

  keep({ id, owner, answer, keepMs, maxBytes, maxAnswers }: AnswerToKeep): boolean {
    return this.#sql.write(() => {
      const bytes = storedBytes(answer);
      const until = this.#wall() + keepMs;
      const kept = { id, owner, until, bytes, answer: answer ?? null };
      const row = this.#sql.of(keep).get(kept);
      if (row === undefined) return this.#sql.of(isStored).get(id, owner) !== undefined;
      const keyId = text(row, 'key_id');
      let sums = this.#count({ key_id: keyId, bytes }, 1);
      const fits = (): boolean => sums.bytes <= maxBytes && sums.answers <= maxAnswers;
      if (fits()) return true;
      for (const each of this.#sql.of(oldestOf).all(keyId, id)) {
        if (fits()) break;
        this.#sql.of(remove).run(text(each, 'id'));
        sums = this.#count({ ...each, key_id: keyId }, -1);
      }
      return true;
    });
  }

  release({ id, owner }: OwnClaim): void {
    this.#sql.write(() => this.#sql.of(release).run(id, owner));
  }

  releaseAll(): void {
    this.#sql.write(() => this.#sql.of(releaseAll).run());
  }

  sweep(most: number, bytes: number): number {
    return this.#sql.write(() => {
      const rows = this.#sql.of(old).all({ now: this.#now(), wall: this.#wall(), most });
      for (const row of rows) {
        this.#sql.of(remove).run(text(row, 'id'));
        if (number(row, 'done') === 1) this.#count(row, -1);
      }
      return rows.length + this.#makeRoom(most - rows.length, bytes);
    });
  }

  /**
   * The largest key gives up answers until there is room, or half of what it has; then the sizes are read
   * again.
   */
  #makeRoom(most: number, bytes: number): number {
    const excess = number(this.#sql.of(total).get() ?? {}, 'bytes') - bytes;
    const richest = this.#sql.of(largest).get();
    if (excess <= 0 || richest === undefined) return 0;
    const enough = Math.min(excess, number(richest, 'bytes') / 2);
    const keyId = text(richest, 'key_id');
    let freed = 0;
    let removed = 0;
    for (const row of this.#sql.of(`${oldestOf} LIMIT ?`).all(keyId, '', most)) {
      if (freed >= enough) break;
      this.#sql.of(remove).run(text(row, 'id'));
      this.#count({ ...row, key_id: keyId }, -1);
      freed += number(row, 'bytes');
      removed += 1;
    }
    return removed;
  }

  #count(row: Columns, sign: 1 | -1): { readonly answers: number; readonly bytes: number } {
    const keyId = text(row, 'key_id');
    const change = { keyId, answers: sign, bytes: sign * number(row, 'bytes') };
    const sums = this.#sql.of(add).get(change) ?? {};
    const answers = number(sums, 'answers');
    if (answers <= 0) this.#sql.of(forget).run(keyId);
    return { answers, bytes: number(sums, 'bytes') };
  }
}

function claimOf(row: Columns): Claimed {
  const fingerprint = text(row, 'mark');
  if (number(row, 'done') === 0) return { state: 'running', fingerprint };
  return { state: 'done', fingerprint, answer: answerOf(row) };
}

/** The sealed answer in a row of any of the stores. */
function answerOf(row: Columns): Uint8Array | undefined {
  const { answer } = row;
  return answer instanceof Uint8Array ? answer : undefined;
}

// The content of calls, in SQLite.

const keepContents = `INSERT INTO kept_contents (id, key_id, started_at, bytes, content)
  SELECT ?1, ?2, ?3, ?4, ?5
  WHERE NOT EXISTS (SELECT 1 FROM forgotten_contents WHERE key_id = ?2 AND before > ?3)
  ON CONFLICT (id) DO NOTHING`;
const findContents = 'SELECT id, key_id, started_at, content FROM kept_contents WHERE id = ?';
const totalContents = 'SELECT coalesce(sum(bytes), 0) AS bytes FROM kept_contents';
const oldest = `SELECT id, bytes FROM kept_contents WHERE started_at < ?
  ORDER BY started_at LIMIT ?`;
const oldestOfKey = `SELECT id, bytes FROM kept_contents WHERE key_id = ? AND started_at < ?
  ORDER BY started_at LIMIT ?`;
const oldestOfLargest = `SELECT id, bytes FROM kept_contents WHERE key_id =
    (SELECT key_id FROM kept_contents GROUP BY key_id ORDER BY sum(bytes) DESC, key_id LIMIT 1)
  ORDER BY started_at LIMIT ?`;
const removeContents = 'DELETE FROM kept_contents WHERE id = ?';
const forgetContents = `INSERT INTO forgotten_contents (key_id, before) VALUES (?, ?)
  ON CONFLICT (key_id) DO UPDATE SET before = max(before, excluded.before)`;

export class SqliteContents implements Synchronous<ContentStore> {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  keep(contents: readonly SealedContent[]): void {
    this.#sql.write(() => {
      for (const content of contents) {
        const { id, keyId, startedAt, sealed } = content;
        const bytes = contentBytes(content);
        this.#sql.of(keepContents).run(id, keyId, Math.round(startedAt), bytes, sealed);
      }
    });
  }

  find(id: string): SealedContent | undefined {
    const row = this.#sql.of(findContents).get(id);
    return row === undefined ? undefined : readContentRow(row);
  }

  bytes(): number {
    return number(this.#sql.of(totalContents).get() ?? {}, 'bytes');
  }

  remove(which: ContentToRemove, most: number): RemovedContent {
    return this.#sql.write(() => {
      const rows = this.#oldest(which, most);
      const sizes = rows.map((row) => number(row, 'bytes'));
      const removed = enough(sizes, which.bytes);
      for (const row of rows.slice(0, removed.rows))
        this.#sql.of(removeContents).run(text(row, 'id'));
      return removed;
    });
  }

  #oldest(which: ContentToRemove, most: number): readonly Columns[] {
    if (which.bytes !== undefined) return this.#sql.of(oldestOfLargest).all(most);
    const { keyId, before = Number.MAX_SAFE_INTEGER } = which;
    return keyId === undefined
      ? this.#sql.of(oldest).all(before, most)
      : this.#sql.of(oldestOfKey).all(keyId, before, most);
  }

  forget(keyId: string, before: number): void {
    this.#sql.write(() => this.#sql.of(forgetContents).run(keyId, Math.round(before)));
  }
}

/** A row of any of the stores. */
export function readContentRow(row: Columns): SealedContent {
  const { content } = row;
  return {
    id: text(row, 'id'),
    keyId: text(row, 'key_id'),
    startedAt: number(row, 'started_at'),
    sealed: content instanceof Uint8Array ? content : new Uint8Array(),
  };
}

// Responses that clients may refer to, in SQLite.

const forgottenBefore = 'SELECT before FROM forgotten_contents WHERE key_id = ?';
/** A row without bytes remains: it marks a response that was deleted before its end. It counts against no size limit. */
const removeKept = `DELETE FROM kept_responses
  WHERE key_id = ? AND id = ? AND length(response) > 0`;
const keepResponses = `INSERT INTO kept_responses
  (id, key_id, previous, kept_at, until, bytes, items, response) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT DO NOTHING`;
const keepItem = `INSERT INTO kept_response_items (item_id, key_id, response_id) VALUES (?, ?, ?)
  ON CONFLICT DO NOTHING`;
/** Up to this number, a statement for each item takes less time than one that reads a list. */
const fewItems = 4;
/** One statement for all: a request may have a hundred ids. */
const keepItems = `INSERT INTO kept_response_items (item_id, key_id, response_id)
  SELECT value, ?, ? FROM json_each('["' || replace(?, ',', '","') || '"]') WHERE true
  ON CONFLICT DO NOTHING`;
const findResponses = `SELECT id, key_id, previous, response FROM kept_responses
  WHERE key_id = ? AND id = ? AND until > ? AND length(response) > 0`;
/**
 * The response of each id, one statement for all: a request may name thousands. A cross join keeps the order: SQLite
 * would look through all responses of the key first.
 */
const newestWith = `SELECT wanted.value AS item, coalesce(
  (SELECT r.id FROM kept_response_items i
    CROSS JOIN kept_responses r ON r.key_id = i.key_id AND r.id = i.response_id
    WHERE i.key_id = $keyId AND i.item_id = wanted.value AND r.until > $now
    ORDER BY r.kept_at DESC, r.rowid DESC LIMIT 1),
  (SELECT id FROM kept_responses
    WHERE key_id = $keyId AND id = wanted.value AND until > $now AND length(response) > 0)
  ) AS response FROM json_each($items) wanted`;
const removeOf = `DELETE FROM kept_responses WHERE rowid IN
  (SELECT rowid FROM kept_responses WHERE key_id = ? LIMIT ?)`;
const removeOld = `DELETE FROM kept_responses WHERE rowid IN
  (SELECT rowid FROM kept_responses WHERE until <= ? ORDER BY until LIMIT ?)`;
/**
 * `level` of a row is what its key has from this row on. The rows in the order of their levels are those that go when
 * each time the oldest of the key that is the largest by then goes; `before` is what has gone before a row. Only rows are
 * read that can be among the first `$most`, and none while there is room.
 */
const removeBeyond = `WITH keys AS MATERIALIZED
    (SELECT key_id AS owner, sum(bytes) AS whole FROM kept_responses GROUP BY key_id)
  DELETE FROM kept_responses WHERE rowid IN
  (SELECT place FROM (SELECT place, level,
      sum(bytes) OVER (ORDER BY level DESC, place ROWS UNBOUNDED PRECEDING) - bytes AS before
    FROM (SELECT r.rowid AS place, bytes, whole + bytes
          - sum(bytes) OVER (PARTITION BY owner ORDER BY until, bytes, r.rowid ROWS UNBOUNDED PRECEDING) AS level
        FROM (SELECT owner, whole FROM keys
            WHERE (SELECT max(whole) > $keyBytes OR sum(whole) > $totalBytes FROM keys)
            ORDER BY whole DESC LIMIT $most)
          CROSS JOIN kept_responses r ON r.rowid IN (SELECT rowid FROM kept_responses
            WHERE key_id = owner AND bytes > 0 ORDER BY until, bytes, rowid LIMIT $most))
    ORDER BY level DESC, place LIMIT $most)
  WHERE level > $keyBytes OR before < (SELECT sum(whole) FROM keys) - $totalBytes)`;
const removeRefused = `DELETE FROM kept_responses WHERE rowid IN
  (SELECT rowid FROM kept_responses WHERE key_id = ? AND until <= ? AND bytes = 0
    ORDER BY until DESC LIMIT -1 OFFSET ?)`;

const noBytes = new Uint8Array();

export class SqliteResponses implements Synchronous<Omit<ResponseStore, 'keep'>> {
  readonly #sql: Statements;
  readonly #wall: () => number;

  /** @param wall ms since the epoch */
  constructor(sql: Statements, wall: () => number) {
    this.#sql = sql;
    this.#wall = () => Math.round(wall());
  }

  /** As `ResponseStore.keep`. */
  keep(columns: ResponseColumns): readonly boolean[] {
    return this.#sql.write(() => {
      const { keyIds, startedAt, lengths, sealed } = columns;
      // Most responses of a batch are of few keys.
      const forgotten = new Map<string, number>();
      let end = 0;
      return lengths.map((length, i) => {
        end += length;
        const keyId = keyIds[i] ?? '';
        const before = forgotten.get(keyId) ?? this.#forgottenBefore(keyId);
        forgotten.set(keyId, before);
        if (before > (startedAt[i] ?? 0)) return false;
        return this.#keepOne(columns, i, sealed.subarray(end - length, end));
      });
    });
  }

  /** Responses of calls that began before this time are not stored; 0 = all are. */
  #forgottenBefore(keyId: string): number {
    const row = this.#sql.of(forgottenBefore).get(keyId);
    return row === undefined ? 0 : number(row, 'before');
  }

  /** False for a response that was deleted before its end. */
  #keepOne(columns: ResponseColumns, i: number, sealed: Uint8Array): boolean {
    const { keyIds, ids, previous, keepMs, bytes, items } = columns;
    const [id = '', keyId = '', listed = ''] = [ids[i], keyIds[i], items[i]];
    const now = this.#wall();
    const until = now + (keepMs[i] ?? 0);
    const row = [id, keyId, previous[i] || null, now, until, bytes[i] ?? 0, listed, sealed];
    if (this.#sql.of(keepResponses).run(...row).changes === 0) {
      if (this.#sql.of(removeKept).run(keyId, id).changes === 0) return false;
      this.#sql.of(keepResponses).run(...row);
    }
    this.#keepItems(keyId, id, listed);
    return true;
  }

  #keepItems(keyId: string, id: string, listed: string): void {
    if (listed === '') return;
    const items = listed.split(',');
    if (items.length > fewItems) this.#sql.of(keepItems).run(keyId, id, listed);
    else for (const item of items) this.#sql.of(keepItem).run(item, keyId, id);
  }

  chain(keyId: string, id: string, { links, bytes }: ChainLimits): ResponseChain {
    const responses: SealedResponse[] = [];
    let sum = 0;
    for (let wanted: string | undefined = id; wanted !== undefined;) {
      const row = this.#sql.of(findResponses).get(keyId, wanted, this.#wall());
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
    const rows = this.#sql.of(newestWith).all({ keyId, now, items: JSON.stringify(items) });
    const places = rows.flatMap((row) =>
      row['response'] === null ? [] : [[text(row, 'item'), text(row, 'response')] as const],
    );
    const responses: SealedResponse[] = [];
    let sum = 0;
    for (const id of new Set(places.map(([, response]) => response))) {
      const row = this.#sql.of(findResponses).get(keyId, id, now);
      if (row === undefined) continue;
      const found = readResponseRow(row);
      sum += found.sealed.length;
      if (sum > bytes) break;
      responses.push(found);
    }
    return { places, responses };
  }

  remove(keyId: string, id: string, refusal?: Refusal): boolean {
    return this.#sql.write(() => {
      const now = this.#wall();
      const isThere = this.#sql.of(findResponses).get(keyId, id, now) !== undefined;
      this.#sql.of(removeKept).run(keyId, id);
      if (isThere || refusal === undefined) return isThere;
      const until = now + refusal.ms;
      this.#sql.of(keepResponses).run(id, keyId, null, now, until, 0, '', noBytes);
      this.#sql.of(removeRefused).run(keyId, until, refusal.most);
      return false;
    });
  }

  removeOf(keyId: string, most: number): number {
    return this.#sql.write(() => Number(this.#sql.of(removeOf).run(keyId, most).changes));
  }

  sweep(most: number, { totalBytes, keyBytes }: ResponseRoom): number {
    return this.#sql.write(() => {
      const old = Number(this.#sql.of(removeOld).run(this.#wall(), most).changes);
      if (old > 0) return old;
      return Number(this.#sql.of(removeBeyond).run({ most, keyBytes, totalBytes }).changes);
    });
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
