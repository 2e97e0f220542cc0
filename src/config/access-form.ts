/** The form of `keys:`, `teams:`, `tags:` and `trusted_proxies:` in `gateway.yaml`. */
import { z } from 'zod';
import { rangeProblem } from '../core/address-range.ts';
import { endpointScopes } from '../core/policy.ts';
import { modelGlob, policyMembers } from './policy-form.ts';

const labelForm = /^[^\p{Cs}\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,200}$/u;

/** One line without control characters: it will stand in logs, tables and pages. */
export const label = z
  .string('must be a text')
  .min(1, 'must not be empty')
  .max(200, 'has more than 200 characters')
  .regex(labelForm, 'must be one line of visible text');

const tagForm = /^[^,\s\p{Cs}\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,100}$/u;

/** Tags stand in lists with commas between them. */
export const tag = z
  .string('must be a list of tags')
  .regex(tagForm, 'is no tag: 1 to 100 characters, no spaces or commas');

const addressRange = z
  .string('must be a list of addresses')
  .max(100, 'has more than 100 characters')
  .superRefine((text, context) => {
    const message = rangeProblem(text);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .meta({ examples: ['10.0.0.0/8', '2001:db8::/32', '192.0.2.7'] });

/** What a key may be used for; the same in the admin API. */
export const scopeMembers = {
  models: z
    .array(modelGlob, 'say which models the key may use, as a list; ["*"] means all')
    .min(1, 'say which models the key may use; ["*"] means all')
    .max(200, 'has more than 200 entries')
    .describe('Globs of the models that the key may use; "*" means all.'),
  endpoints: z
    .array(
      z.enum(endpointScopes, `must be of ${endpointScopes.join(', ')}`),
      'must be a list of endpoints',
    )
    .min(1, 'must name at least one endpoint')
    .max(20, 'has more than 20 entries')
    .optional()
    .describe('Default: all.'),
  team: label.optional().describe('The team that it counts for.'),
  owner: label.optional().describe('Who answers for it.'),
  tags: z
    .array(tag, 'must be a list of tags')
    .max(20, 'has more than 20 entries')
    .optional()
    .describe('What else its calls count for.'),
  cidrs: z
    .array(addressRange, 'must be a list of addresses')
    .max(100, 'has more than 100 entries')
    .optional()
    .describe('Addresses that may use it, such as 10.0.0.0/8; default: anywhere.'),
  strict: z
    .boolean('must be true or false')
    .optional()
    .describe('Refuse what a translation would drop or change.'),
  log_content: z
    .boolean('must be true or false')
    .optional()
    .describe('Keep what its calls ask and are answered, sealed (docs/content.md). Default false.'),
  shrink: z
    .boolean('must be true or false')
    .optional()
    .describe(
      'Lower the output limit of a call to what the budget still has, instead of refusing it. Default true.',
    ),
};

const digest = z
  .string()
  .regex(/^sha256:[0-9a-fA-F]{64}$/, 'is no sha256: and 64 hexadecimal digits');

const keyForm = z
  .strictObject({
    digest: z
      .union([digest, z.array(digest).min(1, 'needs at least one').max(5, 'has more than 5')])
      .describe(
        'The SHA-256 of the key (printf %s KEY | sha256sum); of the new one and the old ones while they change.',
      ),
    ...scopeMembers,
    expires: z
      .string()
      .regex(
        /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/,
        'is no date such as 2026-12-31 or 2026-12-31T12:00:00Z',
      )
      .optional()
      .describe('From when on it is refused. Default: never.'),
    ...policyMembers,
  })
  .describe('A key that the file alone decides on.');

const keyName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'a key is named with letters, digits, _ and -, at most 64');

export const keysForm = z
  .record(keyName, keyForm)
  .nullish()
  .describe(
    'Keys that are declared here, by their hashes. Commands and the admin API cannot change them; one that is taken out is refused from the next reload on.',
  );

export const teamsForm = z
  .record(
    z.string().regex(labelForm, 'a name is one line of visible text'),
    z.strictObject(policyMembers),
  )
  .nullish()
  .describe('What the keys of a team may use together.');

export const tagsForm = z
  .record(z.string().regex(tagForm, 'a tag has no spaces or commas'), z.strictObject(policyMembers))
  .nullish()
  .describe('What all calls with a tag may use together.');

export const trustedProxiesForm = z
  .array(addressRange)
  .max(100, 'has more than 100 entries')
  .nullish()
  .describe(
    'Addresses of proxies before the gateway whose x-forwarded-for is believed; for keys with `cidrs`. Default: none.',
  );
