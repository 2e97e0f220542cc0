/** `/api/keys`: keys are made, listed and revoked here. A secret is in the answer that made it only. */
import { z } from 'zod';
import type { KeyRing, ListedKey } from '../access/keys.ts';
import { endpointScopes } from '../core/policy.ts';
import type { JsonObject } from '../core/conversation.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { AdminError, readInput, type AdminAnswer, type AdminRoute } from './admin-route.ts';
import { dateHint, dateText, readDate, readSpan, spanHint } from './period.ts';

export interface KeyRouteParts {
  readonly keys: KeyRing;
  readonly clock: Clock;
  readonly log: Log;
}

/** One line without control characters: it will stand in logs, tables and pages. */
const label = z
  .string('must be a text')
  .min(1, 'must not be empty')
  .max(200, 'has more than 200 characters')
  .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must be one line of visible text');

const modelGlob = z
  .string('must be a list of model names')
  .regex(
    /^[^\s,\p{Cc}]{1,200}$/u,
    'is no model name: 1 to 200 characters, no spaces or commas; * stands for any text',
  );

const span = z
  .string('must be a text')
  .transform((text) => readSpan(text))
  .refine((ms) => ms !== undefined, spanHint);

const date = z
  .string('must be a text')
  .transform((text) => readDate(text))
  .refine((ms) => ms !== undefined, `give ${dateHint}`);

/** Limits, budgets, tags and CIDR will be fields here. */
const newKey = z.strictObject({
  name: label,
  models: z
    .array(modelGlob, 'say which models the key may use, as a list; ["*"] means all')
    .min(1, 'say which models the key may use; ["*"] means all')
    .max(200, 'has more than 200 entries'),
  endpoints: z
    .array(
      z.enum(endpointScopes, `must be of ${endpointScopes.join(', ')}`),
      'must be a list of endpoints',
    )
    .min(1, 'must name at least one endpoint')
    .max(20, 'has more than 20 entries')
    .optional(),
  team: label.optional(),
  strict: z.boolean('must be true or false').optional(),
  expires_in: span.optional(),
  expires_at: date.optional(),
});

const noBody = z.strictObject({}).optional();

const page = z.strictObject({
  limit: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(1000, 'must be at most 1000')
    .default(100),
  after: z.string().max(64).optional(),
});

export function keyRoutes(parts: KeyRouteParts): readonly AdminRoute[] {
  const { keys } = parts;
  return [
    {
      method: 'POST',
      path: '/api/keys',
      run: ({ body }) => createKey(parts, readInput(newKey, body)),
    },
    {
      method: 'GET',
      path: '/api/keys',
      run: ({ query }) => listKeys(keys, readInput(page, query)),
    },
    {
      method: 'GET',
      path: '/api/keys/:id',
      run: ({ id }) => ({ status: 200, body: keyJson(keys.find(id) ?? unknownKey(id)) }),
    },
    {
      method: 'POST',
      path: '/api/keys/:id/revoke',
      run: async ({ id, body }) => {
        readInput(noBody, body);
        const revoked = (await keys.revoke(id)) ?? unknownKey(id);
        parts.log.info('key_revoked', { id });
        return { status: 200, body: keyJson(revoked.after) };
      },
    },
  ];
}

async function createKey(
  { keys, clock, log }: KeyRouteParts,
  wish: z.output<typeof newKey>,
): Promise<AdminAnswer> {
  if (wish.expires_in !== undefined && wish.expires_at !== undefined) {
    throw new AdminError(400, 'give this or expires_in, not both', 'expires_at');
  }
  const expiresAt =
    wish.expires_in === undefined ? wish.expires_at : clock.wall() + wish.expires_in;
  const { id, key } = await keys.create({
    name: wish.name,
    models: wish.models,
    ...(wish.endpoints === undefined ? {} : { endpoints: wish.endpoints }),
    ...(wish.team === undefined ? {} : { team: wish.team }),
    ...(wish.strict === undefined ? {} : { strict: wish.strict }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  });
  log.info('key_created', { id, name: wish.name });
  const made = keys.find(id) ?? unknownKey(id);
  return { status: 201, body: { id, key: key.reveal(), ...keyJson(made) } };
}

function listKeys(keys: KeyRing, wanted: z.output<typeof page>): AdminAnswer {
  const { limit, after } = wanted;
  const found = keys.list({ limit, ...(after === undefined ? {} : { after }) });
  if (found === undefined) throw new AdminError(400, 'there is no key with this id', 'after');
  return { status: 200, body: { keys: found.keys.map(keyJson), next: found.next ?? null } };
}

function unknownKey(id: string): never {
  throw new AdminError(404, `There is no key with the id ${id}.`);
}

/** A key as the API shows it: neither secret nor digest. */
function keyJson({ record, state, source }: ListedKey): JsonObject {
  return {
    id: record.id,
    name: record.name,
    state,
    source,
    models: record.models,
    endpoints: record.endpoints,
    team: record.team ?? null,
    strict: record.strict === true,
    created_at: dateText(record.createdAt),
    expires_at: record.expiresAt === undefined ? null : dateText(record.expiresAt),
    revoked_at: record.revokedAt === undefined ? null : dateText(record.revokedAt),
  };
}
