/** Statements of one connection, prepared once, and its transactions. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

export class Statements {
  readonly #db: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** @param sql a constant of the program (S21). */
  of(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }

  /** All or nothing, for writing. */
  write<T>(work: () => T): T {
    return this.#inTransaction('BEGIN IMMEDIATE', work);
  }

  /** Several queries on the same state. */
  read<T>(work: () => T): T {
    return this.#inTransaction('BEGIN DEFERRED', work);
  }

  #inTransaction<T>(begin: string, work: () => T): T {
    this.#db.exec(begin);
    try {
      const result = work();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }
}
