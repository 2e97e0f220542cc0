/** Answers by `Idempotency-Key` in SQLite. */
import {
  claimGraceMs,
  keptBytes,
  type AnswerClaim,
  type AnswerStore,
  type AnswerToKeep,
  type Claimed,
  type OwnClaim,
} from '../answers.ts';
import { number, text, type Columns } from '../columns.ts';
import type { Synchronous } from '../remote.ts';
import type { Statements } from './database.ts';

const find = `SELECT key_id, owner, mark, done, bytes, answer, until > $now AS alive
  FROM kept_answers WHERE id = $id`;
const take = `INSERT INTO kept_answers (id, key_id, owner, mark, until, done, bytes)
  VALUES ($id, $keyId, $owner, $mark, $until, 0, 0)
  ON CONFLICT (id) DO UPDATE SET key_id = excluded.key_id, owner = excluded.owner,
    mark = excluded.mark, until = excluded.until, done = 0, bytes = 0, answer = NULL`;
const renew = `UPDATE kept_answers SET until = $until
  WHERE id = $id AND owner = $owner AND done = 0`;
const keep = `UPDATE kept_answers SET done = 1, until = $until, bytes = $bytes,
  answer = $answer WHERE id = $id AND owner = $owner AND done = 0 RETURNING key_id`;
const isKept = 'SELECT 1 FROM kept_answers WHERE id = ? AND owner = ? AND done = 1';
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
  WHERE until <= $now AND (done = 1 OR until <= $now - ${claimGraceMs}) ORDER BY until LIMIT $most`;
const total = 'SELECT coalesce(sum(bytes), 0) AS bytes FROM kept_answer_sums';
const largest = 'SELECT key_id, bytes FROM kept_answer_sums ORDER BY bytes DESC LIMIT 1';

export class SqliteAnswers implements Synchronous<AnswerStore> {
  readonly #sql: Statements;
  readonly #wall: () => number;

  /** @param wall ms since the epoch */
  constructor(sql: Statements, wall: () => number) {
    this.#sql = sql;
    this.#wall = () => Math.round(wall());
  }

  claim({ id, keyId, owner, mark, leaseMs }: AnswerClaim): Claimed {
    return this.#sql.write((): Claimed => {
      const row = this.#sql.of(find).get({ id, now: this.#wall() });
      const known = row !== undefined && number(row, 'alive') === 1 && text(row, 'owner') !== owner;
      if (known) return toldOf(row);
      if (row !== undefined && number(row, 'done') === 1) this.#count(row, -1);
      this.#sql.of(take).run({ id, keyId, owner, mark, until: this.#wall() + leaseMs });
      return { state: 'mine' };
    });
  }

  renew(claims: readonly OwnClaim[], leaseMs: number): void {
    this.#sql.write(() => {
      const until = this.#wall() + leaseMs;
      for (const { id, owner } of claims) this.#sql.of(renew).run({ id, owner, until });
    });
  }

  keep({ id, owner, answer, keepMs, mostBytes, mostAnswers }: AnswerToKeep): boolean {
    return this.#sql.write(() => {
      const bytes = keptBytes(answer);
      const until = this.#wall() + keepMs;
      const kept = { id, owner, until, bytes, answer: answer ?? null };
      const row = this.#sql.of(keep).get(kept);
      if (row === undefined) return this.#sql.of(isKept).get(id, owner) !== undefined;
      const keyId = text(row, 'key_id');
      let sums = this.#count({ key_id: keyId, bytes }, 1);
      const fits = (): boolean => sums.bytes <= mostBytes && sums.answers <= mostAnswers;
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
      const rows = this.#sql.of(old).all({ now: this.#wall(), most });
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

function toldOf(row: Columns): Claimed {
  const mark = text(row, 'mark');
  if (number(row, 'done') === 0) return { state: 'running', mark };
  return { state: 'done', mark, answer: answerOf(row) };
}

/** The sealed answer in a row of any of the stores. */
export function answerOf(row: Columns): Uint8Array | undefined {
  const { answer } = row;
  return answer instanceof Uint8Array ? answer : undefined;
}
