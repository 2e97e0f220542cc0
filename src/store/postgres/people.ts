/** People and sessions in PostgreSQL. */
import { valuesOf } from '../columns.ts';
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
import { StoreError } from '../store-error.ts';
import type { PostgresServer } from './server.ts';

export class PostgresPeople implements PeopleStore {
  readonly #server: PostgresServer;

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  async signedIn(person: PersonRecord): Promise<PersonRecord> {
    await this.#server.run(peopleStatements.signedIn, valuesOf(personTable, person));
    const kept = await this.find(person.id);
    if (kept === undefined) throw new StoreError('failed', 'The person was not kept.');
    return kept;
  }

  async find(id: string): Promise<PersonRecord | undefined> {
    const [row] = (await this.#server.run(peopleStatements.find, [id])).rows;
    return row === undefined ? undefined : readPersonRow(row);
  }

  async list(limit: number, after: string): Promise<readonly PersonRecord[]> {
    return (await this.#server.run(peopleStatements.list, [after, limit])).rows.map(readPersonRow);
  }

  async setRevoked(id: string, at: number | undefined): Promise<boolean> {
    return (await this.#server.run(peopleStatements.setRevoked, [id, at ?? null])).count > 0;
  }

  async openSession(session: SessionRecord): Promise<void> {
    await this.#server.run(peopleStatements.openSession, valuesOf(sessionTable, session));
  }

  async session(id: string): Promise<FoundSession | undefined> {
    const [row] = (await this.#server.run(peopleStatements.session, [id])).rows;
    if (row === undefined) return undefined;
    const session = readSessionRow(row);
    const person = session.person === undefined ? undefined : await this.find(session.person);
    return { session, ...(person === undefined ? {} : { person }) };
  }

  async sessions(query: SessionQuery): Promise<readonly SessionRecord[]> {
    const { person, now, seenAfter, limit } = query;
    const { rows } =
      person === undefined
        ? await this.#server.run(peopleStatements.sessions, [now, seenAfter, limit])
        : await this.#server.run(peopleStatements.sessionsOf, [now, seenAfter, limit, person]);
    return rows.map(readSessionRow);
  }

  async seenSession(id: string, at: number): Promise<void> {
    await this.#server.run(peopleStatements.seenSession, [id, at]);
  }

  async endSession(id: string): Promise<boolean> {
    return (await this.#server.run(peopleStatements.endSession, [id])).count > 0;
  }

  async endSessionsOf(person: string): Promise<number> {
    return (await this.#server.run(peopleStatements.endSessionsOf, [person])).count;
  }

  async sweepSessions(now: number, seenAfter: number, most: number): Promise<void> {
    await this.#server.run(peopleStatements.sweepEnded, [now, seenAfter]);
    await this.#server.run(peopleStatements.sweepOldest, [most]);
  }
}
