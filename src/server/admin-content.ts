/** `/api/calls/:id/content`: what a call said, of keys whose content is logged (docs/content.md). */
import { z } from 'zod';
import type { ContentBook, FoundContent } from './content/content-book.ts';
import type { KeyRouteParts } from './admin-keys.ts';
import { AdminError, type AdminAnswer, type AdminRequest, type AdminRoute } from './admin-route.ts';
import type { UsageRouteParts } from './admin-usage.ts';

export interface ContentRouteParts
  extends Pick<UsageRouteParts, 'store' | 'flushLedger'>, Pick<KeyRouteParts, 'keys' | 'audit'> {
  readonly contents: Pick<ContentBook, 'find' | 'removeOf'>;
}

const body = z.strictObject({
  bytes: z.number().int().describe('Of the body itself, before anything was left out.'),
  cut: z.boolean().describe('Something is missing for its length.'),
  form: z
    .enum(['json', 'events', 'text'])
    .describe('Events: those of a stream, pieces of one text put together.'),
  content: z.unknown().describe('Without keys, credentials and bytes of media.'),
});

const headers = z.array(
  z.strictObject({
    name: z.string(),
    value: z.string().nullable().describe('Null: not kept, it may be a secret.'),
  }),
);

const contentAnswer = z.strictObject({
  id: z.string(),
  state: z
    .enum(['kept', 'absent', 'locked', 'unreadable'])
    .describe(
      'absent: never kept, removed since, or lost; locked: sealed with a key that is not here; unreadable: damaged.',
    ),
  logged_now: z.boolean().describe('What calls of this key say is kept now.'),
  request: z
    .strictObject({
      method: z.string(),
      path: z.string(),
      headers,
      body: body.nullable().describe('Null: it was not read.'),
    })
    .nullable()
    .describe('Null unless `kept`.'),
  answer: z
    .strictObject({
      status: z.number().int(),
      headers,
      body,
      whole: z.boolean().describe('It came to its end.'),
    })
    .nullable()
    .describe('What the client was sent; null: nothing.'),
  attempts: z
    .array(z.strictObject({ target: z.string(), status: z.number().int().nullable(), body }))
    .describe('What upstreams answered instead of an answer.'),
});

export function contentRoutes(parts: ContentRouteParts): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/calls/:id/content',
      about: {
        summary: 'Show what a call asked and was answered, where its key logs content.',
        answer: contentAnswer,
      },
      run: ({ id }) => show(parts, id),
    },
    {
      method: 'DELETE',
      path: '/api/keys/:id/content',
      about: {
        summary: 'Remove what was kept of what the calls of a key said.',
        answer: z.strictObject({ removed: z.number().int().describe('Of how many calls.') }),
      },
      run: (request) => remove(parts, request),
    },
  ];
}

const nothing = { request: null, answer: null, attempts: [] };

async function show(
  { contents, store, keys, flushLedger }: ContentRouteParts,
  id: string,
): Promise<AdminAnswer> {
  await flushLedger?.().catch(() => undefined);
  const found = await contents.find(id);
  const row = await store.findCall(id);
  if (row === undefined && found.state === 'absent') {
    throw new AdminError(404, 'There is no such call; it may be older than the ledger keeps.');
  }
  const loggedNow = row !== undefined && keys.find(row.keyId)?.record.logContent === true;
  const { state } = found;
  return { status: 200, body: { id, state, logged_now: loggedNow, ...shown(found) } };
}

/** As it was kept: the members are those of `contentAnswer`. */
function shown(found: FoundContent): AdminAnswer['body'] {
  if (found.state !== 'kept') return nothing;
  const { request = null, answer = null, attempts = [] } = found.content;
  return { request, answer, attempts };
}

async function remove(
  { contents, keys, audit, flushLedger }: ContentRouteParts,
  { id, actor }: AdminRequest,
): Promise<AdminAnswer> {
  if (keys.find(id) === undefined) throw new AdminError(404, `There is no key with the id ${id}.`);
  await flushLedger?.().catch(() => undefined);
  const removed = await contents.removeOf(id);
  const done = { actor, action: 'key.content.delete', subject: `key:${id}` } as const;
  await audit.note({ ...done, after: { removed } });
  return { status: 200, body: { removed } };
}
