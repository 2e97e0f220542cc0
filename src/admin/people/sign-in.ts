/** `/api/oidc/login` and `/api/oidc/callback`: a person signs in, and the claims become roles, teams and a session. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AuditLog } from '../../access/audit.ts';
import type { OidcSettings } from '../../config/oidc.ts';
import type { Clock, Log } from '../../core/runtime.ts';
import type { Sealer } from '../../core/secret.ts';
import { RefusalLog } from '../../http/send.ts';
import type { PeopleStore, PersonRecord } from '../../store/people.ts';
import { StoreError } from '../../store/store-error.ts';
import { cookieHeader, cookieOf, signInCookieHeader, signInCookieOf } from '../cookies.ts';
import { callbackPath, claimOf, discover, OpenId, SignInError, signInMs } from './openid.ts';
import { memberOf } from './roles.ts';
import type { Sessions } from './sessions.ts';

export const loginPath = '/api/oidc/login';

export interface SignInDeps {
  readonly settings: OidcSettings;
  readonly sealer: Sealer;
  readonly people: PeopleStore;
  readonly sessions: Sessions;
  readonly audit: AuditLog;
  readonly clock: Pick<Clock, 'now' | 'wall'>;
  readonly log: Log;
}

export class SignIn {
  readonly #deps: SignInDeps;
  readonly #openId: OpenId;
  /** Bounds the log, since strangers can make sign-ins fail at any rate. */
  readonly #refusals: RefusalLog;

  constructor(deps: SignInDeps) {
    this.#deps = deps;
    this.#openId = new OpenId(deps);
    this.#refusals = new RefusalLog(deps);
  }

  /** The label and the address of the button. */
  get button(): { readonly label: string; readonly url: string } {
    const { label, url } = this.#deps.settings;
    return { label, url: `${url}${loginPath}` };
  }

  /** Logs early that people will not be able to sign in. Never rejects. */
  async probe(): Promise<void> {
    const { settings, log } = this.#deps;
    await discover(settings).catch((error: unknown) => {
      if (error instanceof SignInError) log.warn('sign_in_unavailable', { reason: error.message });
    });
  }

  /** Answers a navigation of the browser; false: the address is another one. Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const { url = '', method } = request;
    const [path = ''] = url.split('?', 1);
    if (method !== 'GET' || (path !== loginPath && path !== callbackPath)) return false;
    try {
      const { location, cookies } =
        path === loginPath ? await this.#begin(request) : await this.#finish(request);
      redirect(response, location, cookies);
    } catch (error) {
      const failure = this.#tell(error, request.socket.remoteAddress);
      const { url: dashboard } = this.#deps.settings;
      const ended = signInCookieHeader(request, { value: '', ms: 0 });
      redirect(response, `${dashboard}/?sign_in=${failure}`, [ended]);
    }
    request.resume();
    return true;
  }

  async #begin(request: IncomingMessage): Promise<Redirect> {
    const { location, cookie } = await this.#openId.begin();
    return { location, cookies: [signInCookieHeader(request, { value: cookie, ms: signInMs })] };
  }

  async #finish(request: IncomingMessage): Promise<Redirect> {
    const { settings, people, sessions, audit, clock } = this.#deps;
    const query = new URL(request.url ?? '', settings.url).search;
    const claims = await this.#openId.finish(query, signInCookieOf(request) ?? '');
    const described = personOf(claims, settings, clock.wall());
    const member = memberOf(described);
    if (member.roles.length === 0) {
      await this.#lost(described);
      throw new SignInError(
        'no-role',
        `"${member.id}" is in no group that oidc.roles or oidc.teams names.`,
      );
    }
    const kept = await people.signedIn(described);
    if (kept.revokedAt !== undefined) {
      throw new SignInError('revoked', `"${member.id}" was revoked.`);
    }
    const { remoteAddress: ip } = request.socket;
    const old = cookieOf(request);
    const { id, session } = await sessions.openFor(member, { origin: settings.url, ip });
    if (old !== undefined) await sessions.endByCookie(old).catch(() => undefined);
    const { roles, leads, teams } = member;
    await audit.note({
      actor: { name: `person:${member.id}`, ...(ip === undefined ? {} : { ip }) },
      action: 'person.sign_in',
      subject: `person:${member.id}`,
      after: { name: member.name, roles: [...roles], leads: [...leads], teams: [...teams] },
    });
    const ms = session.expiresAt - clock.wall();
    return {
      location: `${settings.url}/`,
      cookies: [
        cookieHeader(request, { value: id.reveal(), ms }),
        signInCookieHeader(request, { value: '', ms: 0 }),
      ],
    };
  }

  /** Handles a person who signed in before, and has no role any more. */
  async #lost(person: PersonRecord): Promise<void> {
    const { people, sessions } = this.#deps;
    if ((await people.find(person.id)) === undefined) return;
    await people.signedIn(person);
    await sessions.endOf(person.id);
  }

  /** @returns what the dashboard gets */
  #tell(error: unknown, address: string | undefined): string {
    if (error instanceof SignInError) {
      const { failure, message: reason } = error;
      this.#refusals.note({ error: 'sign_in', failure, reason, address, plane: 'admin' });
      return failure;
    }
    const reason = error instanceof Error ? error.message : 'unknown';
    this.#deps.log.error('sign_in_failed', { reason });
    return error instanceof StoreError ? 'store' : 'failed';
  }
}

interface Redirect {
  readonly location: string;
  readonly cookies: readonly string[];
}

function redirect(response: ServerResponse, location: string, cookies: readonly string[]): void {
  response.writeHead(302, {
    location,
    'cache-control': 'no-store',
    'content-length': 0,
    'set-cookie': [...cookies],
  });
  response.end();
}

/** One line of printable text, since it is shown in logs, tables and keys. */
const printable = /^[^\p{Cs}\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,200}$/u;

/** @throws SignInError when the claims do not identify a person */
function personOf(claims: object, settings: OidcSettings, now: number): PersonRecord {
  const { person, name, groups } = settings.claims;
  const id = claimOf(claims, person);
  if (typeof id !== 'string' || !printable.test(id)) {
    throw new SignInError('invalid', `The claim "${person}" is missing or no printable text.`);
  }
  if (person === 'email' && claimOf(claims, 'email_verified') !== true) {
    throw new SignInError('invalid', 'The provider does not say that the email is verified.');
  }
  const shown = claimOf(claims, name);
  const own = groupsOf(claimOf(claims, groups));
  const has = (wanted: readonly string[]): boolean => wanted.some((each) => own.has(each));
  const { roles, teams } = settings;
  return {
    id,
    name: typeof shown === 'string' && printable.test(shown) ? shown : id,
    roles: (['owner', 'operator', 'viewer'] as const).filter((role) => has(roles[role])),
    leads: teams.filter(({ leads }) => has(leads)).map((team) => team.name),
    teams: teams.filter(({ members }) => has(members)).map((team) => team.name),
    firstAt: now,
    seenAt: now,
  };
}

/** A list of texts, or one text. */
function groupsOf(claim: unknown): ReadonlySet<string> {
  const all: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  return new Set(all.filter((each) => typeof each === 'string'));
}
