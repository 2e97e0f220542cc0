/**
 * Sessions of the dashboard (S11): whoever knows the admin token gets a random id in a cookie that
 * scripts cannot read, and need not keep the token. They live in memory, by the hash of their id, and
 * end after twelve hours, with the process, and with the token that they were opened with.
 */
import { digestOf } from '../access/digest.ts';
import type { TokenCheck } from '../access/admin-token.ts';
import type { RandomBytes } from '../access/key-format.ts';
import type { Clock } from '../core/runtime.ts';
import { Secret } from '../core/secret.ts';

/** How long a session lasts, whatever is done with it. */
export const sessionMs = 12 * 3_600_000;

/** The oldest is forgotten first: a script that signs in again and again must not fill the memory. */
export const mostSessions = 1000;

const idBytes = 32;

export interface Session {
  /** The origin of the page that signed in, `https://host:port`: changes must come from the same. */
  readonly origin: string;
  /** Wall time in ms. */
  readonly expiresAt: number;
}

interface KeptSession extends Session {
  /** By the monotonic clock, which nobody sets. */
  readonly endsAt: number;
  readonly tokenDigest: Buffer;
}

export interface SessionsParts {
  readonly clock: Pick<Clock, 'now' | 'wall'>;
  readonly random: RandomBytes;
  readonly adminToken: Pick<TokenCheck, 'verify' | 'verifyDigest'>;
}

export class Sessions {
  readonly #parts: SessionsParts;
  readonly #sessions = new Map<string, KeptSession>();

  constructor(parts: SessionsParts) {
    this.#parts = parts;
  }

  /** How many are remembered. */
  get size(): number {
    return this.#sessions.size;
  }

  /** Signs in. Undefined when this is not the admin token. */
  open(
    token: string,
    origin: string,
  ): { readonly id: Secret; readonly session: Session } | undefined {
    const { clock, random, adminToken } = this.#parts;
    if (!adminToken.verify(token)) return undefined;
    this.#makeRoom();
    const id = new Secret(Buffer.from(random(idBytes)).toString('base64url'));
    const session = {
      origin,
      expiresAt: clock.wall() + sessionMs,
      endsAt: clock.now() + sessionMs,
      tokenDigest: digestOf(token),
    };
    this.#sessions.set(nameOf(id.reveal()), session);
    return { id, session };
  }

  /** The session of a cookie's value; undefined when there is none, or none any more. */
  find(id: string): Session | undefined {
    const name = nameOf(id);
    const session = this.#sessions.get(name);
    if (session === undefined) return undefined;
    const lives =
      this.#parts.clock.now() < session.endsAt &&
      this.#parts.adminToken.verifyDigest(session.tokenDigest);
    if (lives) return session;
    this.#sessions.delete(name);
    return undefined;
  }

  /** Signs out. */
  end(id: string): void {
    this.#sessions.delete(nameOf(id));
  }

  #makeRoom(): void {
    const now = this.#parts.clock.now();
    // In the order of their opening, and so of their ends.
    for (const [name, { endsAt }] of this.#sessions) {
      if (endsAt > now && this.#sessions.size < mostSessions) return;
      this.#sessions.delete(name);
    }
  }
}

function nameOf(id: string): string {
  return digestOf(id).toString('base64url');
}
