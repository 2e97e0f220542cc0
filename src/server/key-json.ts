/** A key as the admin API shows it: neither secret nor digest. */
import { z } from 'zod';
import type { ListedKey } from '../access/keys.ts';
import type { JsonObject } from '../core/conversation.ts';
import { time } from './admin-pages.ts';
import { dateText } from './period.ts';
import { policyAnswer, policyJson } from './policy-json.ts';

const members = {
  id: z.string().describe('Public id; it stands in the key itself.'),
  name: z.string(),
  state: z.enum(['active', 'expired', 'revoked']),
  source: z
    .enum(['store', 'config', 'environment'])
    .describe('Only keys of the store can be changed here.'),
  models: z.array(z.string()),
  endpoints: z.array(z.string()),
  team: z.string().nullable(),
  owner: z.string().nullable(),
  tags: z.array(z.string()),
  cidrs: z.array(z.string()).describe('Empty = from anywhere.'),
  strict: z.boolean(),
  log_content: z.boolean().describe('What its calls say is kept (docs/content.md).'),
  shrink: z.boolean(),
  ...policyAnswer,
  created_at: time,
  expires_at: time.nullable(),
  revoked_at: time.nullable(),
  last_used_at: time.nullable().describe('With the current secret, to about ten seconds.'),
  previous: z
    .array(
      z.strictObject({
        replaced_at: time,
        valid_until: time.nullable().describe('Null = as long as the config says so.'),
      }),
    )
    .describe('Secrets that `rotate` replaced and that still open.'),
  previous_used_at: time.nullable().describe('When one of them was last used.'),
};

export const keyAnswer = z.strictObject(members);

/** The only answer that a secret stands in. */
export const newKeyAnswer = z.strictObject({
  ...members,
  key: z.string().describe('The secret. It is shown here once and kept nowhere.'),
});

export function keyJson(listed: ListedKey, now: number): JsonObject {
  const { record, state, source, lastUsedAt, previousUsedAt } = listed;
  const replacedAt = record.previous[0]?.replacedAt ?? 0;
  // A use from before the rotation was one of the secret that it replaced.
  const isCurrents = lastUsedAt !== undefined && lastUsedAt >= replacedAt;
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
    log_content: record.logContent === true,
    shrink: record.shrink,
    ...policyJson(record.policy),
    created_at: dateText(record.createdAt),
    expires_at: optionalDate(record.expiresAt),
    revoked_at: optionalDate(record.revokedAt),
    last_used_at: optionalDate(isCurrents ? lastUsedAt : undefined),
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
