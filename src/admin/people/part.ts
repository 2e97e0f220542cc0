/** What a person without a role for the whole gateway sees and changes: own keys, and those of a team that they lead. */
import type { KeyRing } from '../../access/keys/keys.ts';
import type { CallsWithin } from '../../store/calls.ts';
import type { KeyRecord } from '../../store/records.ts';
import { hasRole, type Member } from './roles.ts';

/** The person whose part is all that the caller sees; undefined: the caller sees everything. */
export function seesOnly(member: Member | undefined): Member | undefined {
  return hasRole(member, 'owner', 'operator', 'viewer') ? undefined : member;
}

/** The person whose keys are all that the caller changes; undefined: the caller changes all. */
export function changesOnly(member: Member | undefined): Member | undefined {
  return hasRole(member, 'owner', 'operator') ? undefined : member;
}

/** Whether a key is the person's own, or of a team that they lead; every key without a person. */
export function isOwn(member: Member | undefined, { owner, team }: KeyRecord): boolean {
  if (member === undefined) return true;
  return owner === member.id || (team !== undefined && member.leads.includes(team));
}

/** Teams that the person leads or belongs to. */
export function teamsOf({ leads, teams }: Member): readonly string[] {
  return [...new Set([...leads, ...teams])];
}

/** For a filter of calls: those that the caller may see. */
export function withinOf(
  member: Member | undefined,
  keys: KeyRing,
): { readonly within?: CallsWithin } {
  const only = seesOnly(member);
  if (only === undefined) return {};
  const own = keys.ofOwner(only.id).map(({ record }) => record.id);
  return { within: { keys: own, teams: only.leads } };
}
