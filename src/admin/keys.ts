/**
 * `/api/keys`: keys are made, changed, rotated and revoked here. A secret is in the answer that made
 * it only.
 */
import { z } from 'zod';
import type { AuditLog } from '../access/audit.ts';
import type { KeyChange } from '../access/keys/key-input.ts';
import type { KeyRing, ListedKey, WriteKey } from '../access/keys/keys.ts';
import { label, policyMembers, scopeMembers } from '../config/access-schema.ts';
import type { Policies } from '../access/policies.ts';
import type { MemberTeam } from '../config/oidc.ts';
import { noPolicy } from '../core/policy.ts';
import type { Clock, Log } from '../core/runtime.ts';
import type { JsonObject } from '../json/value.ts';
import type { KeyRecord } from '../store/records.ts';
import type { Store } from '../store/store.ts';
import {
  type AdminAnswer,
  AdminError,
  type AdminRequest,
  type AdminRoute,
  dateHint,
  dateText,
  noBody,
  readDate,
  readInput,
  readSpan,
  spanHint,
  time,
} from './route.ts';
import { grantMemberKey, type GrantedKey, requireRoom } from './people/member-keys.ts';
import { changesOnly, isOwn, seesOnly } from './people/part.ts';
import type { Member } from './people/roles.ts';
import { policyAnswer, policyFormOf, policyJson, policyOf, spentPolicyJson } from './policies.ts';

export interface KeyRouteDeps {
  readonly keys: KeyRing;
  readonly store: Store;
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly log: Log;
  readonly policies: Policies;
  readonly flushLedger?: () => Promise<void>;
  /** Teams whose members make keys for themselves, and what these may have; absent = none. */
  readonly memberTeams?: () => readonly MemberTeam[];
}

const span = z
  .string('must be a string')
  .transform((text) => readSpan(text))
  .refine((ms) => ms !== undefined, spanHint)
  .meta({ examples: ['90m', '24h', '30d', '2w'] });

const date = z
  .string('must be a string')
  .transform((text) => readDate(text))
  .refine((ms) => ms !== undefined, `give ${dateHint}`)
  .meta({ examples: ['2026-12-31', '2026-12-31T12:00:00Z'] });

const expiry = {
  expires_in: span.optional().describe('Time from now until the key expires.'),
  expires_at: date.optional().describe('Time from which the key is refused.'),
};

const newKey = z.strictObject({ name: label, ...scopeMembers, ...expiry, ...policyMembers });

const { models, endpoints, team, owner, tags, cidrs, strict, cache, shrink, log_content } =
  scopeMembers;

/** Null takes away: no team, no expiry, all endpoints, from anywhere. */
const changedKey = z.strictObject({
  name: label.optional(),
  models: models.optional(),
  endpoints: endpoints.nullable(),
  team: team.nullable(),
  owner: owner.nullable(),
  tags: tags.nullable(),
  cidrs: cidrs.nullable(),
  strict: strict.nullable(),
  cache: cache.nullable(),
  shrink: shrink.nullable(),
  log_content: log_content.nullable(),
  expires_in: expiry.expires_in,
  expires_at: date
    .nullable()
    .optional()
    .describe('Time from which the key is refused; null = never.'),
  ...policyMembers,
});

const maxOverlapMs = 7 * 86_400_000;
const defaultOverlapMs = 86_400_000;

const rotation = z
  .strictObject({
    overlap: z
      .union([z.literal('0').transform(() => 0), span], `${spanHint}, or 0`)
      .refine((ms) => (ms ?? 0) <= maxOverlapMs, 'must be at most 7d')
      .optional()
      .describe('How long the old secret keeps working: 0 to 7d. Default: 24h.'),
  })
  .optional();

export function keyRoutes(deps: KeyRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'POST',
      path: '/api/keys',
      about: { summary: 'Create a key.', body: newKey, answer: newKeyAnswer, status: 201 },
      run: (request) => createKey(deps, request),
    },
    {
      method: 'GET',
      path: '/api/keys/:id',
      about: { summary: 'Show a key and what was spent of its budgets.', answer: keyAnswer },
      run: ({ id, member }) => showKey(deps, id, seesOnly(member)),
    },
    {
      method: 'PATCH',
      path: '/api/keys/:id',
      about: {
        summary: 'Change a key: absent members keep their values, null removes.',
        body: changedKey,
        answer: keyAnswer,
      },
      run: (request) => updateKey(deps, request),
    },
    {
      method: 'POST',
      path: '/api/keys/:id/rotate',
      about: {
        summary: 'Give a key a new secret under the same id; the old one works for a while.',
        body: rotation,
        answer: newKeyAnswer,
      },
      run: (request) => rotateKey(deps, request),
    },
    {
      method: 'POST',
      path: '/api/keys/:id/revoke',
      about: {
        summary: 'Revoke a key immediately and permanently; its running calls are cut.',
        body: noBody,
        answer: keyAnswer,
      },
      run: (request) => revokeKey(deps, request),
    },
  ];
}

async function createKey(
  deps: KeyRouteDeps,
  { body, actor, member }: AdminRequest,
): Promise<AdminAnswer> {
  const { keys, clock } = deps;
  const input = readInput(newKey, body);
  const expiresAt = expiryOf<never>(input, clock.wall());
  const only = changesOnly(member);
  const granted = only && grantedKey(deps, only, { ...input, expiresAt });
  const wished = {
    name: input.name,
    models: input.models,
    ...scopeOf<never>({ ...input, ...granted }),
    ...optional('expiresAt', granted === undefined ? expiresAt : granted.expiresAt),
    policy: policyOf(policyFormOf(input), noPolicy),
  };
  const { id, key } = await keys.create(wished, noting(deps, { actor, action: 'key.create' }));
  if (granted !== undefined) await requireStill(deps, granted, { id, person: only?.id, actor });
  const shown = keyJson(keys.find(id) ?? unknownKey(id), clock.wall());
  return { status: 201, body: { id, key: key.reveal(), ...shown } };
}

/**
 * Looks again after a key that a person made: meanwhile other requests may have made one, and the person may have been
 * revoked, when their key was not there to be revoked with the others.
 * @throws AdminError 403; the key is revoked then
 */
async function requireStill(
  deps: KeyRouteDeps,
  { owner, rules }: GrantedKey,
  made: Pick<AdminRequest, 'actor'> & { readonly id: string; readonly person: string | undefined },
): Promise<void> {
  const person = await deps.store.people.find(made.person ?? '');
  try {
    if (person === undefined || person.revokedAt !== undefined) {
      throw new AdminError(403, 'You may not make keys any more.');
    }
    requireRoom(deps.keys, owner, rules, 0);
  } catch (error) {
    await deps.keys.revoke(made.id, noting(deps, { actor: made.actor, action: 'key.revoke' }));
    throw error;
  }
}

function grantedKey(
  { keys, policies, clock, memberTeams }: KeyRouteDeps,
  member: Member,
  wished: Parameters<typeof grantMemberKey>[2],
): GrantedKey {
  const deps = { keys, policies, memberTeams: memberTeams?.() ?? [], now: clock.wall() };
  return grantMemberKey(deps, member, wished);
}

async function updateKey(
  deps: KeyRouteDeps,
  { id, body, actor }: AdminRequest,
): Promise<AdminAnswer> {
  const { keys, clock } = deps;
  const wanted = readInput(changedKey, body);
  const change = (record: KeyRecord): KeyChange => ({
    ...optional('name', wanted.name),
    ...optional('models', wanted.models),
    ...scopeOf<null>(wanted),
    ...optional('expiresAt', expiryOf<null>(wanted, clock.wall())),
    policy: policyOf(policyFormOf(wanted), record.policy),
  });
  const write = noting(deps, { actor, action: 'key.update' });
  const changed = (await keys.update(id, change, write)) ?? unknownKey(id);
  return { status: 200, body: keyJson(changed.after, clock.wall()) };
}

async function rotateKey(
  deps: KeyRouteDeps,
  { id, body, actor, member }: AdminRequest,
): Promise<AdminAnswer> {
  const { overlap = defaultOverlapMs } = readInput(rotation, body) ?? {};
  ownKey(deps.keys, id, changesOnly(member));
  const write = noting(deps, { actor, action: 'key.rotate' });
  const rotated = (await deps.keys.rotate(id, overlap, write)) ?? unknownKey(id);
  const shown = keyJson(rotated.after, deps.clock.wall());
  return { status: 200, body: { id, key: rotated.key.reveal(), ...shown } };
}

async function revokeKey(
  deps: KeyRouteDeps,
  { id, body, actor, member }: AdminRequest,
): Promise<AdminAnswer> {
  readInput(noBody, body);
  ownKey(deps.keys, id, changesOnly(member));
  const write = noting(deps, { actor, action: 'key.revoke' });
  const changed = (await deps.keys.revoke(id, write)) ?? unknownKey(id);
  return { status: 200, body: keyJson(changed.after, deps.clock.wall()) };
}

/** Revokes all keys of an owner that can be revoked here. @returns their ids @throws StoreError */
export async function revokeKeysOf(
  deps: KeyRouteDeps,
  owner: string,
  actor: AdminRequest['actor'],
): Promise<readonly string[]> {
  // Another gateway may just have made one.
  await deps.keys.loadAnew();
  const active = deps.keys
    .ofOwner(owner)
    .filter(({ state, source }) => source === 'store' && state !== 'revoked');
  const write = noting(deps, { actor, action: 'key.revoke' });
  for (const { record } of active) await deps.keys.revoke(record.id, write);
  return active.map(({ record }) => record.id);
}

async function showKey(
  { keys, store, clock, flushLedger }: KeyRouteDeps,
  id: string,
  only: Member | undefined,
): Promise<AdminAnswer> {
  const found = ownKey(keys, id, only);
  const now = clock.wall();
  const holder = { kind: 'key', name: id } as const;
  const spent = await spentPolicyJson(
    { store, now, flushLedger },
    { holder, policy: found.record.policy },
  );
  return { status: 200, body: { ...keyJson(found, now), ...spent } };
}

/** What is not of the caller's part is as if it were not there. @throws AdminError 404 */
function ownKey(keys: KeyRing, id: string, only: Member | undefined): ListedKey {
  const found = keys.find(id) ?? unknownKey(id);
  return isOwn(only, found.record) ? found : unknownKey(id);
}

function unknownKey(id: string): never {
  throw new AdminError(404, `There is no key with the id ${id}.`);
}

/** A change goes to the store with its entry in the audit log. */
function noting(
  { audit, clock }: KeyRouteDeps,
  done: Pick<AdminRequest, 'actor'> & { readonly action: string },
): WriteKey {
  return (change, { before, after }) =>
    audit.change(change, {
      ...done,
      subject: `key:${after.record.id}`,
      ...(before === undefined ? {} : { before: keyJson(before, clock.wall()) }),
      after: keyJson(after, clock.wall()),
    });
}

interface ScopeForm<Null> {
  readonly endpoints?: readonly string[] | Null | undefined;
  readonly team?: string | Null | undefined;
  readonly owner?: string | Null | undefined;
  readonly tags?: readonly string[] | Null | undefined;
  readonly cidrs?: readonly string[] | Null | undefined;
  readonly strict?: boolean | Null | undefined;
  readonly cache?: 'auto' | Null | undefined;
  readonly shrink?: boolean | Null | undefined;
  readonly log_content?: boolean | Null | undefined;
}

type Scope<Null> = {
  readonly [N in Exclude<keyof ScopeForm<Null>, 'log_content'>]?: Exclude<
    ScopeForm<Null>[N],
    undefined
  >;
} & { readonly logContent?: boolean | Null };

/** What a body says of the scope; `Null` is `never` where nothing can be taken away. */
function scopeOf<Null extends null>(form: ScopeForm<Null>): Scope<Null> {
  return {
    ...optional('endpoints', form.endpoints),
    ...optional('team', form.team),
    ...optional('owner', form.owner),
    ...optional('tags', form.tags),
    ...optional('cidrs', form.cidrs),
    ...optional('strict', form.strict),
    ...optional('cache', form.cache),
    ...optional('shrink', form.shrink),
    ...optional('logContent', form.log_content),
  };
}

/** Ms since the epoch; null = never, undefined = nothing is said about it. */
function expiryOf<Null extends null>(
  form: {
    readonly expires_in?: number | undefined;
    readonly expires_at?: number | Null | undefined;
  },
  now: number,
): number | Null | undefined {
  if (form.expires_in === undefined) return form.expires_at;
  if (form.expires_at !== undefined) {
    throw new AdminError(400, 'give this or expires_in, not both', 'expires_at');
  }
  return now + form.expires_in;
}

/** A member only when there is a value: absent is not null. */
function optional<N extends string, V>(name: N, value: V | undefined): { [K in N]?: V } {
  const member: { [K in N]?: V } = {};
  if (value !== undefined) member[name] = value;
  return member;
}

// A key as the admin API shows it: neither secret nor digest.

const members = {
  id: z.string().describe('Public id; part of the key itself.'),
  name: z.string(),
  state: z.enum(['active', 'expired', 'revoked']),
  source: z
    .enum(['store', 'config', 'environment'])
    .describe('Only keys in the store can be changed here.'),
  models: z.array(z.string()),
  endpoints: z.array(z.string()),
  team: z.string().nullable(),
  owner: z.string().nullable(),
  tags: z.array(z.string()),
  cidrs: z.array(z.string()).describe('Empty = all addresses.'),
  strict: z.boolean(),
  cache: z
    .literal('auto')
    .nullable()
    .describe('auto: its prompts get cache marks for the provider (docs/user/routing.md).'),
  log_content: z
    .boolean()
    .describe('Requests and answers of its calls are stored (docs/user/content.md).'),
  shrink: z.boolean(),
  ...policyAnswer,
  created_at: time,
  expires_at: time.nullable(),
  revoked_at: time.nullable(),
  last_used_at: time
    .nullable()
    .describe('Last use of the current secret, accurate to about ten seconds.'),
  previous: z
    .array(
      z.strictObject({
        replaced_at: time,
        valid_until: time.nullable().describe('Null = as long as the config declares it.'),
      }),
    )
    .describe('Replaced secrets that are still accepted.'),
  previous_used_at: time.nullable().describe('Last use of one of them.'),
};

export const keyAnswer = z.strictObject(members);

/** The only answer that a secret is in. */
const newKeyAnswer = z.strictObject({
  ...members,
  key: z.string().describe('The secret. It is shown only here and not stored.'),
});

/** Ms since the epoch; undefined: the current secret was not used yet. */
export function lastUseOf({ record, lastUsedAt }: ListedKey): number | undefined {
  const replacedAt = record.previous[0]?.replacedAt ?? 0;
  // A use from before the rotation was one of the secret that it replaced.
  return lastUsedAt !== undefined && lastUsedAt >= replacedAt ? lastUsedAt : undefined;
}

export function keyJson(listed: ListedKey, now: number): JsonObject {
  const { record, state, source, previousUsedAt } = listed;
  return {
    id: record.id,
    name: record.name,
    state,
    source,
    models: record.models,
    endpoints: record.endpoints,
    team: record.team ?? null,
    owner: record.owner ?? null,
    tags: record.tags,
    cidrs: record.cidrs,
    strict: record.strict === true,
    cache: record.cache ?? null,
    log_content: record.logContent === true,
    shrink: record.shrink,
    ...policyJson(record.policy),
    created_at: dateText(record.createdAt),
    expires_at: optionalDate(record.expiresAt),
    revoked_at: optionalDate(record.revokedAt),
    last_used_at: optionalDate(lastUseOf(listed)),
    previous: record.previous
      .filter(({ validUntil }) => validUntil > now)
      .map((secret) => ({
        replaced_at: dateText(secret.replacedAt),
        valid_until: Number.isFinite(secret.validUntil) ? dateText(secret.validUntil) : null,
      })),
    previous_used_at: optionalDate(previousUsedAt),
  };
}

function optionalDate(ms: number | undefined): string | null {
  return ms === undefined ? null : dateText(ms);
}
