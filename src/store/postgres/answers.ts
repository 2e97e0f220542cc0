/** Answers by `Idempotency-Key` on PostgreSQL, for all gateways on one database. */
import {
  keptBytes,
  type AnswerClaim,
  type AnswerStore,
  type AnswerToKeep,
  type Claimed,
  type OwnClaim,
} from '../answers.ts';
import type { Row, SqlValue } from './pool.ts';
import type { Statement } from '../statements.ts';
import type { PostgresServer } from './server.ts';
import { text } from '../columns.ts';

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

  async claim({ id, keyId, owner, mark, leaseMs }: AnswerClaim): Promise<Claimed> {
    const row = await this.#run(claim, [id, keyId, owner, mark, leaseMs]);
    const state = text(row, 'state');
    if (state === 'mine') return { state };
    const known = { mark: text(row, 'known_mark') };
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
    const { keepMs, mostBytes, mostAnswers } = most;
    const sizes = [keptBytes(answer), keepMs, mostBytes, mostAnswers];
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
