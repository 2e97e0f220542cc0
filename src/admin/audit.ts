/** `/api/audit`: who changed what, and whether the log is unchanged (S24). */
import { z } from 'zod';
import type { AuditLog } from '../access/audit.ts';
import type { Json } from '../json/value.ts';
import { tryParse } from '../json/parse.ts';
import type { Clock } from '../core/runtime.ts';
import type { Store } from '../store/store.ts';
import { type AdminRoute, dateText, readInput, time } from './route.ts';
import { inPeriod, readWhen } from './usage.ts';

export interface AuditRouteDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly audit: AuditLog;
}

const whole = z.coerce.number('must be a number').int('must be a whole number');

const query = z.strictObject({
  limit: whole
    .min(1, 'must be at least 1')
    .max(1000, 'must be at most 1000')
    .default(100)
    .describe('Maximum number of entries.'),
  before: whole
    .min(1, 'must be at least 1')
    .optional()
    .describe('Only entries with a smaller `seq`: `next` of the previous page.'),
  subject: z
    .string()
    .max(300)
    .optional()
    .describe('Only entries of this subject, e.g. key:a1b2c3d4.'),
  actor: z.string().max(300).optional().describe('Only entries of this actor, e.g. admin.'),
  action: z
    .string()
    .max(100)
    .optional()
    .describe('Only this action (key.create), or all of a noun (key).'),
  since: inPeriod.since,
  until: inPeriod.until.describe('The same; entries before. Default: now.'),
});

const state = z.record(z.string(), z.unknown()).nullable();

const entry = z.strictObject({
  seq: z.number().int().describe('1, 2, 3, … without gaps.'),
  at: time,
  actor: z
    .string()
    .describe(
      'admin (the admin token), command (the command line), config, start, person:ID (signed in).',
    ),
  ip: z.string().nullable(),
  action: z.string(),
  subject: z.string(),
  before: state,
  after: state,
  hash: z.string().describe('SHA-256 over this entry and the hash before it.'),
});

export function auditRoutes({ store, audit, clock }: AuditRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/audit',
      about: {
        summary: 'List the audit log, newest first.',
        query,
        answer: z.strictObject({ entries: z.array(entry), next: z.number().int().nullable() }),
      },
      run: async (request) => {
        const { limit, since, until, ...chosen } = readInput(query, request.query);
        const given = Object.entries(chosen).filter(([, value]) => value !== undefined);
        const found = await store.audit.list({
          limit,
          ...Object.fromEntries(given),
          ...readWhen({ since, until }, clock),
        });
        const last = found.length === limit ? found.at(-1)?.seq : undefined;
        const next = last === undefined || last === 1 ? null : last;
        return {
          status: 200,
          body: {
            entries: found.map((each) => ({
              seq: each.seq,
              at: dateText(each.at),
              actor: each.actor,
              ip: each.ip ?? null,
              action: each.action,
              subject: each.subject,
              before: parsed(each.before),
              after: parsed(each.after),
              hash: each.hash,
            })),
            next,
          },
        };
      },
    },
    {
      method: 'GET',
      path: '/api/audit/check',
      about: {
        summary: 'Verify the hash chain of the audit log.',
        answer: z.strictObject({
          intact: z.boolean(),
          entries: z.number().int(),
          broken_at: z.number().int().nullable().describe('`seq` of the first wrong entry.'),
          missing: z
            .strictObject({ seq: z.number().int(), hash: z.string() })
            .nullable()
            .describe('A former last entry that is missing: the end of the log was cut off.'),
          head: z
            .string()
            .nullable()
            .describe('Hash of the newest entry; the gateway also logs it.'),
        }),
      },
      run: async () => {
        const { entries, brokenAt, missing, head } = await audit.check();
        const body = {
          intact: brokenAt === undefined && missing === undefined,
          entries,
          broken_at: brokenAt ?? null,
          missing: missing === undefined ? null : { seq: missing.seq, hash: missing.hash },
          head: head ?? null,
        };
        return { status: 200, body };
      },
    },
  ];
}

function parsed(text: string | undefined): Json {
  return text === undefined ? null : (tryParse(text) ?? null);
}
