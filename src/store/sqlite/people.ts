/** People and sessions in SQLite. */
import { type Value, valuesOf } from '../columns.ts';
import {
  type FoundSession,
  type PeopleStore,
  peopleStatements,
  personTable,
  type PersonRecord,
  readPersonRow,
  readSessionRow,
  type SessionQuery,
  type SessionRecord,
  sessionTable,
} from '../people.ts';
import type { Synchronous } from '../remote.ts';
import type { Statement } from '../statements.ts';
import { StoreError } from '../store-error.ts';
import type { Statements } from './database.ts';

export class SqlitePeople implements Synchronous<PeopleStore> {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  signedIn(person: PersonRecord): PersonRecord {
    return this.#sql.write(() => {
      this.#sql.of(peopleStatements.signedIn).run(...valuesOf(personTable, person));
      const kept = this.find(person.id);
      if (kept === undefined) throw new StoreError('failed', 'The person was not kept.');
      return kept;
    });
  }

  find(id: string): PersonRecord | undefined {
    const row = this.#sql.of(peopleStatements.find).get(id);
    return row === undefined ? undefined : readPersonRow(row);
  }

  list(limit: number, after: string): readonly PersonRecord[] {
    return this.#sql.of(peopleStatements.list).all(after, limit).map(readPersonRow);
  }

  setRevoked(id: string, at: number | undefined): boolean {
    return this.#change(peopleStatements.setRevoked, id, at ?? null) > 0;
  }

  openSession(session: SessionRecord): void {
    this.#change(peopleStatements.openSession, ...valuesOf(sessionTable, session));
  }

  session(id: string): FoundSession | undefined {
    const row = this.#sql.of(peopleStatements.session).get(id);
    if (row === undefined) return undefined;
    const session = readSessionRow(row);
    const person = session.person === undefined ? undefined : this.find(session.person);
    return { session, ...(person === undefined ? {} : { person }) };
  }

  sessions({ person, now, seenAfter, limit }: SessionQuery): readonly SessionRecord[] {
    const rows =
      person === undefined
        ? this.#sql.of(peopleStatements.sessions).all(now, seenAfter, limit)
        : this.#sql.of(peopleStatements.sessionsOf).all(now, seenAfter, limit, person);
    return rows.map(readSessionRow);
  }

  seenSession(id: string, at: number): void {
    this.#change(peopleStatements.seenSession, id, at);
  }

  endSession(id: string): boolean {
    return this.#change(peopleStatements.endSession, id) > 0;
  }

  endSessionsOf(person: string): number {
    return this.#change(peopleStatements.endSessionsOf, person);
  }

  sweepSessions(now: number, seenAfter: number, most: number): void {
    this.#sql.write(() => {
      this.#sql.of(peopleStatements.sweepEnded).run(now, seenAfter);
      this.#sql.of(peopleStatements.sweepOldest).run(most);
    });
  }

  #change(statement: Statement, ...values: readonly Value[]): number {
    return this.#sql.write(() => Number(this.#sql.of(statement).run(...values).changes));
  }
}
