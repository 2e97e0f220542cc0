/** Who may use which address of the admin API: one table, which `/api/openapi.json` shows and `handler.ts` enforces. */
import type { PersonRecord } from '../../store/people.ts';

/**
 * `owner` may do everything. `operator` changes keys, limits and the running gateway. `viewer` sees everything but
 * the content of calls. `team-lead` sees and makes keys of a team; `member` sees and makes their own.
 */
export const roles = ['owner', 'operator', 'viewer', 'team-lead', 'member'] as const;
export type Role = (typeof roles)[number];

/** A signed-in person. */
export interface Member {
  /** The id at the identity provider; `owner` of their keys. */
  readonly id: string;
  readonly name: string;
  readonly roles: readonly Role[];
  /** Teams that they lead. */
  readonly leads: readonly string[];
  /** Teams that they belong to. */
  readonly teams: readonly string[];
}

/** All roles of a person; those of teams follow from their teams. */
export function memberOf(person: PersonRecord): Member {
  const { id, name, leads, teams } = person;
  const own: ReadonlySet<string> = new Set([
    ...person.roles,
    ...(leads.length > 0 ? ['team-lead'] : []),
    ...(leads.length + teams.length > 0 ? ['member'] : []),
  ]);
  return { id, name, leads, teams, roles: roles.filter((role) => own.has(role)) };
}

const owners = ['owner'] as const;
const operators = [...owners, 'operator'] as const;
const viewers = [...operators, 'viewer'] as const;
const keyMakers = [...operators, 'team-lead', 'member'] as const;

/**
 * Method and path of each route, and the roles that may use it. `team-lead` and `member` see and change only what is
 * their own. `anyone` needs no sign-in.
 */
export const routeRoles: { readonly [route: string]: readonly Role[] | 'anyone' } = {
  'POST /api/keys': keyMakers,
  'GET /api/keys': roles,
  'GET /api/keys/names': roles,
  'GET /api/keys/:id': roles,
  'PATCH /api/keys/:id': operators,
  'POST /api/keys/:id/rotate': keyMakers,
  'POST /api/keys/:id/revoke': keyMakers,
  'DELETE /api/keys/:id/content': operators,
  'GET /api/teams': roles,
  'GET /api/teams/:name': roles,
  'PUT /api/teams/:name': operators,
  'DELETE /api/teams/:name': operators,
  'GET /api/tags': viewers,
  'GET /api/tags/:name': viewers,
  'PUT /api/tags/:name': operators,
  'DELETE /api/tags/:name': operators,
  'GET /api/usage': roles,
  'GET /api/series': roles,
  'GET /api/errors': viewers,
  'GET /api/budgets': viewers,
  'GET /api/calls': roles,
  'GET /api/calls/export': viewers,
  'GET /api/calls/tail': viewers,
  'GET /api/calls/:id': roles,
  'GET /api/calls/:id/content': operators,
  'GET /api/prices': roles,
  'GET /api/models': roles,
  'GET /api/audit': viewers,
  'GET /api/audit/check': viewers,
  'POST /api/backup': owners,
  'GET /api/status': viewers,
  'GET /api/events': viewers,
  'GET /api/webhooks': viewers,
  'POST /api/webhooks/:id/test': operators,
  'POST /api/reload': operators,
  'GET /api/config': viewers,
  'GET /api/config/file': owners,
  'POST /api/config/file/validate': owners,
  'PUT /api/config/file': owners,
  'POST /api/playground/chat/completions': operators,
  'POST /api/playground/messages': operators,
  'POST /api/playground/responses': operators,
  // The bodies that it shows have stored responses and remembered reasoning of the key in them: content of calls.
  'POST /api/explain': operators,
  'GET /api/providers': viewers,
  'GET /api/downloads': viewers,
  'GET /api/diagnostics': viewers,
  'GET /metrics': viewers,
  'POST /api/session': 'anyone',
  'GET /api/session': 'anyone',
  'DELETE /api/session': roles,
  'GET /api/sessions': roles,
  'DELETE /api/sessions/:id': roles,
  'GET /api/people': owners,
  'POST /api/people/:name/revoke': owners,
  'POST /api/people/:name/restore': owners,
  'GET /api/openapi.json': roles,
};

/** The roles that may use a route; a route that the table lacks is for owners. */
export function rolesFor(method: string, path: string): readonly Role[] {
  const found = routeRoles[`${method} ${path}`] ?? owners;
  return found === 'anyone' ? roles : found;
}

/** Whether the caller has one of the roles. The admin token and commands (no member) are owners. */
export function hasRole(member: Member | undefined, ...wanted: readonly Role[]): boolean {
  return member === undefined || member.roles.some((role) => wanted.includes(role));
}
