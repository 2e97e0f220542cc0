/** People who signed in to the dashboard, and sessions of browsers: records, columns and statements of both engines. */
import {
  column,
  namesOf,
  number,
  optionalNumber,
  optionalText,
  present,
  readTexts,
  required,
  text,
  type Column,
  type Columns,
} from './columns.ts';
import { parameters, statement } from './statements.ts';

/** A person, as the identity provider described them at the last sign-in. Times are ms since the epoch. */
export interface PersonRecord {
  /** The id at the provider; their keys have it as `owner`. */
  readonly id: string;
  /** For display. */
  readonly name: string;
  /** `owner`, `operator`, `viewer`; a role of a team is not among them. */
  readonly roles: readonly string[];
  /** Teams that they lead. */
  readonly leads: readonly string[];
  /** Teams that they belong to. */
  readonly teams: readonly string[];
  readonly firstAt: number;
  readonly seenAt: number;
  /** Since when they may not sign in; absent = they may. */
  readonly revokedAt?: number;
}

/** A session of a browser. The cookie holds its id; the store knows the digest. */
export interface SessionRecord {
  /** SHA-256 of the id, base64url. */
  readonly id: string;
  /** Absent: opened with the admin token. */
  readonly person?: string;
  /** The origin of the page that signed in. */
  readonly origin: string;
  readonly ip?: string;
  /** Digest of the admin token that opened it, hex: the session ends with the token. */
  readonly tokenDigest?: string;
  readonly createdAt: number;
  readonly seenAt: number;
  /** When it ends at the latest. */
  readonly endsAt: number;
}

/** A session and its person. */
export interface FoundSession {
  readonly session: SessionRecord;
  /** Present when the session has a person. */
  readonly person?: PersonRecord;
}

/** Which sessions: all, or those of one person. */
export interface SessionQuery {
  readonly person?: string;
  /** Ended ones are omitted: those that end or were last seen before. */
  readonly now: number;
  readonly seenAfter: number;
  readonly limit: number;
}

export interface PeopleStore {
  /**
   * Stores the provider's data about a person. The time of the first sign-in and a revocation stay.
   * @returns the stored person
   * @throws StoreError
   */
  signedIn(person: PersonRecord): Promise<PersonRecord>;
  find(id: string): Promise<PersonRecord | undefined>;
  /** By id, those after `after`. */
  list(limit: number, after: string): Promise<readonly PersonRecord[]>;
  /** Takes away or gives back (`undefined`) the right to sign in. False when there is no such person. */
  setRevoked(id: string, at: number | undefined): Promise<boolean>;
  openSession(session: SessionRecord): Promise<void>;
  session(id: string): Promise<FoundSession | undefined>;
  /** Newest first. */
  sessions(query: SessionQuery): Promise<readonly SessionRecord[]>;
  /** A later time only. */
  seenSession(id: string, at: number): Promise<void>;
  /** False when there was none. */
  endSession(id: string): Promise<boolean>;
  /** @returns how many there were */
  endSessionsOf(person: string): Promise<number>;
  /** Removes sessions that are over, and the oldest beyond `most`. */
  sweepSessions(now: number, seenAfter: number, most: number): Promise<void>;
}

export const personTable: readonly Column<PersonRecord>[] = [
  required('id', 'name', ({ id }) => id),
  required('name', 'text', ({ name }) => name),
  required('roles', 'text', ({ roles }) => JSON.stringify(roles)),
  required('leads', 'text', ({ leads }) => JSON.stringify(leads)),
  required('teams', 'text', ({ teams }) => JSON.stringify(teams)),
  required('first_at', 'count', ({ firstAt }) => firstAt),
  required('seen_at', 'count', ({ seenAt }) => seenAt),
  column('revoked_at', 'count', ({ revokedAt }) => revokedAt ?? null),
];

export const sessionTable: readonly Column<SessionRecord>[] = [
  required('id', 'name', ({ id }) => id),
  column('person', 'name', ({ person }) => person ?? null),
  required('origin', 'text', ({ origin }) => origin),
  column('ip', 'text', ({ ip }) => ip ?? null),
  column('token_digest', 'text', ({ tokenDigest }) => tokenDigest ?? null),
  required('created_at', 'count', ({ createdAt }) => createdAt),
  required('seen_at', 'count', ({ seenAt }) => seenAt),
  required('ends_at', 'count', ({ endsAt }) => endsAt),
];

export function readPersonRow(row: Columns): PersonRecord {
  return {
    id: text(row, 'id'),
    name: text(row, 'name'),
    roles: readTexts(text(row, 'roles')),
    leads: readTexts(text(row, 'leads')),
    teams: readTexts(text(row, 'teams')),
    firstAt: number(row, 'first_at'),
    seenAt: number(row, 'seen_at'),
    ...present('revokedAt', optionalNumber(row, 'revoked_at')),
  };
}

export function readSessionRow(row: Columns): SessionRecord {
  return {
    id: text(row, 'id'),
    ...present('person', optionalText(row, 'person')),
    origin: text(row, 'origin'),
    ...present('ip', optionalText(row, 'ip')),
    ...present('tokenDigest', optionalText(row, 'token_digest')),
    createdAt: number(row, 'created_at'),
    seenAt: number(row, 'seen_at'),
    endsAt: number(row, 'ends_at'),
  };
}

const personColumns = namesOf(personTable);
const sessionColumns = namesOf(sessionTable);

export const peopleStatements = {
  signedIn: statement(
    'person_signed_in',
    `INSERT INTO people (${personColumns.join(', ')}) VALUES (${parameters(personColumns.length)})
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, roles = excluded.roles,
       leads = excluded.leads, teams = excluded.teams, seen_at = excluded.seen_at`,
  ),
  find: statement('find_person', 'SELECT * FROM people WHERE id = $1'),
  list: statement('list_people', 'SELECT * FROM people WHERE id > $1 ORDER BY id LIMIT $2'),
  setRevoked: statement('revoke_person', 'UPDATE people SET revoked_at = $2 WHERE id = $1'),
  openSession: statement(
    'open_session',
    `INSERT INTO sessions (${sessionColumns.join(', ')}) VALUES (${parameters(sessionColumns.length)})`,
  ),
  session: statement('find_session', 'SELECT * FROM sessions WHERE id = $1'),
  sessions: statement(
    'list_sessions',
    `SELECT * FROM sessions WHERE ends_at > $1 AND seen_at > $2
     ORDER BY created_at DESC, id LIMIT $3`,
  ),
  sessionsOf: statement(
    'list_sessions_of',
    `SELECT * FROM sessions WHERE ends_at > $1 AND seen_at > $2 AND person = $4
     ORDER BY created_at DESC, id LIMIT $3`,
  ),
  seenSession: statement(
    'seen_session',
    'UPDATE sessions SET seen_at = $2 WHERE id = $1 AND seen_at < $2',
  ),
  endSession: statement('end_session', 'DELETE FROM sessions WHERE id = $1'),
  endSessionsOf: statement('end_sessions_of', 'DELETE FROM sessions WHERE person = $1'),
  sweepEnded: statement(
    'sweep_sessions',
    'DELETE FROM sessions WHERE ends_at <= $1 OR seen_at <= $2',
  ),
  sweepOldest: statement(
    'sweep_oldest_sessions',
    `DELETE FROM sessions WHERE id IN
     (SELECT id FROM sessions ORDER BY created_at DESC, id LIMIT 1000000000 OFFSET $1)`,
  ),
} as const;
