/** People with sessions in the store of a rig, without a provider of identities. */
import { hash } from 'node:crypto';
import type { PersonRecord } from '../../src/store/people.ts';
import type { Answer, Ask, Rig } from '../unit/admin/admin-rig.ts';

const twelveHours = 12 * 3_600_000;

/** A browser in which a person is signed in. */
export interface SignedIn {
  readonly sessionId: string;
  ask(path: string, options?: Ask): Promise<Answer>;
}

let sessions = 0;

/** Opens a session of this person, as a sign-in does. */
export async function signedInAs(
  rig: Rig,
  person: Partial<PersonRecord> & { readonly id: string },
): Promise<SignedIn> {
  const now = rig.clock.wall();
  const { people } = rig.deps.store;
  await people.signedIn({
    name: person.id,
    roles: [],
    leads: [],
    teams: [],
    firstAt: now,
    seenAt: now,
    ...person,
  });
  sessions += 1;
  const secret = `session-${sessions}`;
  const id = hash('sha256', secret, 'base64url');
  const times = { createdAt: now, seenAt: now, endsAt: now + twelveHours };
  await people.openSession({ id, person: person.id, origin: rig.url, ...times });
  const cookie = `__Host-model-gateway-${new URL(rig.url).port}=${secret}`;
  const page = { cookie, origin: rig.url, 'x-model-gateway-csrf': '1' };
  return {
    sessionId: id,
    ask: (path, options = {}) =>
      rig.ask(path, { ...options, token: undefined, headers: { ...page, ...options.headers } }),
  };
}
