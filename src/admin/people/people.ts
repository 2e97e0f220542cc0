/** `/api/people`: who signed in; an owner revokes a person with their sessions and keys. */
import { z } from 'zod';
import type { KeyRing } from '../../access/keys/keys.ts';
import type { JsonObject } from '../../json/value.ts';
import type { PeopleStore, PersonRecord } from '../../store/people.ts';
import { type KeyRouteDeps, revokeKeysOf } from '../keys.ts';
import {
  type AdminAnswer,
  AdminError,
  type AdminRequest,
  type AdminRoute,
  dateText,
  next,
  noBody,
  page,
  readInput,
  time,
} from '../route.ts';
import { memberOf, roles } from './roles.ts';
import type { Sessions } from './sessions.ts';

export interface PeopleRouteDeps extends KeyRouteDeps {
  readonly people: PeopleStore;
  readonly sessions?: Pick<Sessions, 'endOf'>;
}

const personAnswer = z.strictObject({
  id: z.string().describe('Owner of the keys of this person.'),
  name: z.string(),
  roles: z.array(z.enum(roles)),
  leads: z.array(z.string()),
  teams: z.array(z.string()),
  keys: z.number().int().describe('Active keys.'),
  first_at: time.describe('First sign-in.'),
  seen_at: time.describe('Last sign-in.'),
  revoked_at: time.nullable().describe('Since when the person may not sign in.'),
});

const revoked = personAnswer.extend({
  sessions_ended: z.number().int(),
  keys_revoked: z.array(z.string()).describe('Ids.'),
});

export function peopleRoutes(deps: PeopleRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/people',
      about: {
        summary: 'List the people who signed in, by id.',
        query: page,
        answer: z.strictObject({ people: z.array(personAnswer), next }),
      },
      run: async ({ query }) => {
        const { limit, after = '' } = readInput(page, query);
        const found = await deps.people.list(limit, after);
        const last = found.length === limit ? found.at(-1)?.id : undefined;
        const people = found.map((each) => personJson(each, deps.keys));
        return { status: 200, body: { people, next: last ?? null } };
      },
    },
    {
      method: 'POST',
      path: '/api/people/:name/revoke',
      about: {
        summary:
          'Revoke a person: no sign-in, all sessions and keys end at once; running calls are cut.',
        body: noBody,
        answer: revoked,
      },
      run: (request) => revoke(deps, request),
    },
    {
      method: 'POST',
      path: '/api/people/:name/restore',
      about: {
        summary: 'Let a revoked person sign in again. Revoked keys stay revoked.',
        body: noBody,
        answer: personAnswer,
      },
      run: (request) => restore(deps, request),
    },
  ];
}

async function revoke(deps: PeopleRouteDeps, request: AdminRequest): Promise<AdminAnswer> {
  const { id, body, actor } = request;
  readInput(noBody, body);
  const { people, clock, audit } = deps;
  // The right to sign in is removed first, so that no session can be opened after the sessions below were ended.
  if (!(await people.setRevoked(id, clock.wall()))) unknown(id);
  const ended = await (deps.sessions?.endOf(id) ?? people.endSessionsOf(id));
  const ids = await revokeKeysOf(deps, id, actor);
  const after = { sessions_ended: ended, keys_revoked: ids };
  await audit.note({ actor, action: 'person.revoke', subject: `person:${id}`, after });
  return { status: 200, body: { ...(await shown(deps, id)), ...after } };
}

async function restore(deps: PeopleRouteDeps, request: AdminRequest): Promise<AdminAnswer> {
  const { id, body, actor } = request;
  readInput(noBody, body);
  if (!(await deps.people.setRevoked(id, undefined))) unknown(id);
  await deps.audit.note({ actor, action: 'person.restore', subject: `person:${id}` });
  return { status: 200, body: await shown(deps, id) };
}

async function shown({ people, keys }: PeopleRouteDeps, id: string): Promise<JsonObject> {
  return personJson((await people.find(id)) ?? unknown(id), keys);
}

function personJson(person: PersonRecord, keys: KeyRing): JsonObject {
  const member = memberOf(person);
  return {
    id: person.id,
    name: person.name,
    roles: [...member.roles],
    leads: [...person.leads],
    teams: [...person.teams],
    keys: keys.ofOwner(person.id).filter(({ state }) => state === 'active').length,
    first_at: dateText(person.firstAt),
    seen_at: dateText(person.seenAt),
    revoked_at: person.revokedAt === undefined ? null : dateText(person.revokedAt),
  };
}

function unknown(id: string): never {
  throw new AdminError(404, `No person signed in as "${id}".`);
}
