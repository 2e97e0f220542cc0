/** Keys that people make for themselves: of a team that has limits, within what the config allows its members. */
import type { KeyRing } from '../../access/keys/keys.ts';
import type { Policies } from '../../access/policies.ts';
import type { MemberTeam } from '../../config/oidc.ts';
import { Glob } from '../../core/model-names.ts';
import { AdminError } from '../route.ts';
import { teamsOf } from './part.ts';
import type { Member } from './roles.ts';

/** The members of a requested key that are checked. The person may choose all others freely. */
interface WishedKey {
  readonly models: readonly string[];
  readonly team?: string | undefined;
  readonly owner?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly log_content?: boolean | undefined;
}

/** The members that the gateway decides. */
export interface GrantedKey {
  readonly team: string;
  readonly owner: string;
  /** Of the team. */
  readonly rules: MemberTeam;
  /** Ms since the epoch; undefined = never. */
  readonly expiresAt: number | undefined;
}

interface MemberKeyDeps {
  readonly keys: KeyRing;
  readonly policies: Pick<Policies, 'find'>;
  readonly memberTeams: readonly MemberTeam[];
  /** Ms since the epoch. */
  readonly now: number;
}

/**
 * @param expiresAt the requested time; undefined = the longest allowed
 * @throws AdminError 403 that names the member of the form
 */
export function grantMemberKey(
  deps: MemberKeyDeps,
  member: Member,
  wished: WishedKey & { readonly expiresAt: number | undefined },
): GrantedKey {
  const { policies, memberTeams, now } = deps;
  const team = teamFor(member, wished.team);
  const owner = ownerFor(member, team, wished.owner);
  const rules = memberTeams.find(({ name }) => name === team);
  if (rules === undefined || policies.find('team', team) === undefined) {
    throw refused(
      'team',
      `Team "${team}" has no limits yet. An operator sets them first: model-gateway teams set ${team} --rpm 60 --budget 50 --per month.`,
    );
  }
  // A tag has limits that others share, and content of calls is for operators.
  if ((wished.tags ?? []).length > 0) throw refused('tags', 'Operators give tags to keys.');
  if (wished.log_content === true) {
    throw refused('log_content', 'Operators turn content logging on.');
  }
  requireModels(rules, wished.models);
  requireRoom(deps.keys, owner, rules, 1);
  return { team, owner, rules, expiresAt: expiryFor(rules, wished.expiresAt, now) };
}

function teamFor(member: Member, wished: string | undefined): string {
  const teams = teamsOf(member);
  const [only] = teams;
  if (wished === undefined && only !== undefined && teams.length === 1) return only;
  if (wished !== undefined && teams.includes(wished)) return wished;
  throw refused('team', `Choose one of your teams: ${teams.join(', ')}.`);
}

function ownerFor({ id, leads }: Member, team: string, wished = id): string {
  if (wished === id || leads.includes(team)) return wished;
  throw refused('owner', `Your own keys have the owner "${id}".`);
}

/** A glob is within another one if it matches it as a text: a `*` matches only a `*`. */
function requireModels({ name, models }: MemberTeam, wished: readonly string[]): void {
  const allowed = models.map((glob) => new Glob(glob));
  const beyond = wished.find((glob) => !allowed.some((each) => each.matches(glob)));
  if (beyond === undefined) return;
  throw refused(
    'models',
    `Members of "${name}" may use ${models.join(', ')}; "${beyond}" is not within these.`,
  );
}

/**
 * @param more the number of keys to be made; 0: checks whether concurrent requests made too many
 * @throws AdminError 403
 */
export function requireRoom(
  keys: KeyRing,
  owner: string,
  { name, keys: most }: MemberTeam,
  more: 0 | 1,
): void {
  const active = keys
    .ofOwner(owner)
    .filter(({ state, record }) => state === 'active' && record.team === name);
  if (active.length + more <= most) return;
  throw refused(
    'team',
    `"${owner}" may have ${most} active keys of team "${name}". Revoke one first.`,
  );
}

function expiryFor(
  { name, expiresMs }: MemberTeam,
  wished: number | undefined,
  now: number,
): number | undefined {
  if (expiresMs === undefined || !Number.isFinite(expiresMs)) return wished;
  const last = now + expiresMs;
  if (wished === undefined || wished <= last) return wished ?? last;
  const days = Math.floor(expiresMs / 86_400_000);
  throw refused('expires_at', `Keys of members of "${name}" expire within ${days} days.`);
}

function refused(field: string, message: string): AdminError {
  return new AdminError(403, message, field);
}
