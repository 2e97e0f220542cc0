/**
 * Sessions of the dashboard (S11): a client with the admin token, or a person who signed in, gets a random id in a
 * cookie that scripts cannot read. The store has the hash of the id. A session ends twelve hours after it was opened,
 * two hours after its last use, with the admin token that opened it, and when its person is revoked.
 */
import type { TokenCheck } from '../../access/keys/admin-token.ts';
import { type RandomBytes, digestOf } from '../../access/keys/key-format.ts';
import type { Clock } from '../../core/runtime.ts';
import { Secret } from '../../core/secret.ts';
import type { FoundSession, PeopleStore, SessionRecord } from '../../store/people.ts';
import { type Member, memberOf } from './roles.ts';

/** The maximum lifetime of a session. */
export const sessionMs = 12 * 3_600_000;

/** The maximum time of a session without a request. */
const idleMs = 2 * 3_600_000;

/** The interval at which the time of the last use is written. */
const touchEveryMs = 60_000;

/**
 * The time for which requests without a change may use a cached session. A session that another gateway ends works
 * until then.
 */
const rememberedMs = 5000;

/** The oldest sessions end first, since a script that signs in repeatedly must not fill the store. */
const maxSessions = 10_000;

const maxRemembered = 1000;

const idBytes = 32;

export interface Session {
  /** Digest of the id. */
  readonly id: string;
  /** The origin of the page that signed in, `https://host:port`: changes must come from the same. */
  readonly origin: string;
  /** Wall time in ms. */
  readonly expiresAt: number;
  /** Absent: opened with the admin token. */
  readonly member?: Member;
}

export interface NewSession {
  readonly origin: string;
  readonly ip?: string | undefined;
}

export interface OpenedSession {
  /** For the cookie. */
  readonly id: Secret;
  readonly session: Session;
}

interface SessionsDeps {
  readonly clock: Pick<Clock, 'now' | 'wall'>;
  readonly random: RandomBytes;
  readonly adminToken: Pick<TokenCheck, 'verify' | 'verifyDigest'>;
  readonly people: PeopleStore;
}

interface Remembered {
  readonly found: FoundSession;
  /** By the monotonic clock. */
  readonly readAt: number;
}

export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #remembered = new Map<string, Remembered>();
  readonly #touched = new Map<string, number>();

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** Signs in with the admin token. Undefined for an invalid token. @throws StoreError */
  async open(token: string, wanted: NewSession): Promise<OpenedSession | undefined> {
    if (!this.#deps.adminToken.verify(token)) return undefined;
    return this.#open(wanted, { tokenDigest: digestOf(token).toString('hex') });
  }

  /** Opens the session of a person whom the provider named. @throws StoreError */
  openFor(member: Member, wanted: NewSession): Promise<OpenedSession> {
    return this.#open(wanted, { person: member.id }, member);
  }

  async #open(
    { origin, ip }: NewSession,
    whose: Pick<SessionRecord, 'person' | 'tokenDigest'>,
    member?: Member,
  ): Promise<OpenedSession> {
    const { clock, random, people } = this.#deps;
    const id = new Secret(Buffer.from(random(idBytes)).toString('base64url'));
    const now = clock.wall();
    const record: SessionRecord = {
      id: nameOf(id.reveal()),
      origin,
      ...(ip === undefined ? {} : { ip }),
      ...whose,
      createdAt: now,
      seenAt: now,
      endsAt: now + sessionMs,
    };
    await people.openSession(record);
    await people.sweepSessions(now, now - idleMs, maxSessions);
    return { id, session: sessionOf(record, member) };
  }

  /**
   * The session of a cookie's value; undefined if there is none, or it has ended.
   * @param fresh reads the store in any case: a change must not be made by a session that another gateway ended
   * @throws StoreError
   */
  async find(id: string, fresh: boolean): Promise<Session | undefined> {
    const name = nameOf(id);
    const found = await this.#read(name, fresh);
    if (found === undefined) return undefined;
    const { session, person } = found;
    if (!this.#lives(found)) {
      this.#forget(name);
      await this.#deps.people.endSession(name).catch(() => undefined);
      return undefined;
    }
    await this.#touch(session);
    return sessionOf(session, person === undefined ? undefined : memberOf(person));
  }

  /** Ends a session by its digest. False when there was none. @throws StoreError */
  end(name: string): Promise<boolean> {
    this.#forget(name);
    return this.#deps.people.endSession(name);
  }

  /** The same by the cookie's value. @throws StoreError */
  endByCookie(id: string): Promise<boolean> {
    return this.end(nameOf(id));
  }

  /** Ends all sessions of a person. @returns how many @throws StoreError */
  endOf(person: string): Promise<number> {
    this.#remembered.clear();
    return this.#deps.people.endSessionsOf(person);
  }

  /** Newest first. @throws StoreError */
  list(limit: number, person?: string): Promise<readonly SessionRecord[]> {
    const now = this.#deps.clock.wall();
    const query = { now, seenAfter: now - idleMs, limit };
    return this.#deps.people.sessions({ ...query, ...(person === undefined ? {} : { person }) });
  }

  async #read(name: string, fresh: boolean): Promise<FoundSession | undefined> {
    const { clock, people } = this.#deps;
    const known = this.#remembered.get(name);
    if (!fresh && known !== undefined && clock.now() - known.readAt < rememberedMs) {
      return known.found;
    }
    try {
      const found = await people.session(name);
      this.#remember(name, found);
      return found;
    } catch (error) {
      // If the store is down, the pages that show this must work. No session can end in the store meanwhile.
      if (!fresh && known !== undefined) return known.found;
      throw error;
    }
  }

  #remember(name: string, found: FoundSession | undefined): void {
    this.#remembered.delete(name);
    if (found === undefined) return;
    for (const oldest of this.#remembered.keys()) {
      if (this.#remembered.size < maxRemembered) break;
      this.#forget(oldest);
    }
    this.#remembered.set(name, { found, readAt: this.#deps.clock.now() });
  }

  #forget(name: string): void {
    this.#remembered.delete(name);
    this.#touched.delete(name);
  }

  #lives({ session, person }: FoundSession): boolean {
    const { clock, adminToken } = this.#deps;
    const now = clock.wall();
    const seenAt = Math.max(session.seenAt, this.#touched.get(session.id) ?? 0);
    if (now >= session.endsAt || now - seenAt >= idleMs) return false;
    if (session.person === undefined) {
      const digest = Buffer.from(session.tokenDigest ?? '', 'hex');
      return digest.length > 0 && adminToken.verifyDigest(digest);
    }
    return person !== undefined && person.revokedAt === undefined;
  }

  /** A use that cannot be written now is written with a later one. */
  async #touch({ id, seenAt }: SessionRecord): Promise<void> {
    const now = this.#deps.clock.wall();
    if (now - Math.max(seenAt, this.#touched.get(id) ?? 0) < touchEveryMs) return;
    this.#touched.set(id, now);
    await this.#deps.people.seenSession(id, now).catch(() => undefined);
  }
}

function sessionOf({ id, origin, endsAt }: SessionRecord, member: Member | undefined): Session {
  return { id, origin, expiresAt: endsAt, ...(member === undefined ? {} : { member }) };
}

function nameOf(id: string): string {
  return digestOf(id).toString('base64url');
}
