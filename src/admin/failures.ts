/** `/api/errors`: failed calls by what they have in common. */
import { z } from 'zod';
import { faultKinds } from '../core/faults.ts';
import type { JsonObject } from '../json/value.ts';
import type { FailureGroup } from '../store/calls.ts';
import {
  type AdminAnswer,
  type AdminRoute,
  dateText,
  next,
  page,
  readInput,
  time,
} from './route.ts';
import { groupFilter, inPeriod, readFilter, readPeriod, type UsageRouteDeps } from './usage.ts';

/** Groupings by name. */
const facets = ['provider', 'key', 'model', 'answered', 'team', 'limit'] as const;
const groupings = ['error', ...facets] as const;
type Grouping = (typeof groupings)[number];
/** Groups of a facet, at most: those that one page shows. */
const maxOfFacet = 50;

const faults = faultKinds.map(({ fault }) => fault);
export const faultFilter = z
  .enum(faults, `must be one of ${faults.join(', ')}`)
  .optional()
  .describe('Whose fault: limit, client, provider or gateway.');

const query = z.strictObject({
  by: z
    .enum(groupings, `must be one of ${groupings.join(', ')}`)
    .default('error')
    .describe(
      'error: by fault, error code, reason and HTTP status. model: as requested; answered: the target that answered, provider/model.',
    ),
  ...inPeriod,
  since: inPeriod.since.default('24h'),
  ...groupFilter,
  fault: faultFilter,
  facets: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(maxOfFacet, `must be at most ${maxOfFacet}`)
    .optional()
    .describe('Also this many groups of each other grouping, in `facets`.'),
  ...page.shape,
});

const text = z.string().nullable();
const count = z.number().int();

const group = z.strictObject({
  name: text.optional().describe('The key, model, …; null: none. Not with by=error.'),
  key_name: text.optional().describe('Only with by=key.'),
  fault: z.enum(faults).nullable().optional().describe('Only with by=error, as the next three.'),
  error: text.optional(),
  reason: text.optional(),
  status: count.nullable().optional().describe('The HTTP status that the client saw.'),
  calls: count,
  ...Object.fromEntries(faultKinds.map(({ column, about }) => [column, count.describe(about)])),
  last_at: time,
  last_call: z.string().describe('Id of the newest of these calls.'),
  last_message: text.describe('The error message that its client got.'),
});

const answer = z.strictObject({
  since: time,
  until: time,
  cut: z
    .boolean()
    .describe('There are more failed calls than the newest 50,000, which are counted.'),
  groups: z.array(group),
  facets: z
    .strictObject({
      provider: z.array(group),
      key: z.array(group),
      model: z.array(group),
      answered: z.array(group),
      team: z.array(group),
      limit: z.array(group),
    })
    .optional()
    .describe('Only with `facets`: the groups with the most calls of each grouping by name.'),
  next,
});

export function failureRoutes(deps: UsageRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/errors',
      about: {
        summary:
          'Failed calls by error, provider, key, model, answering target, team or limit, the largest group first.',
        query,
        answer,
      },
      run: (request) => failures(deps, readInput(query, request.query)),
    },
  ];
}

async function failures(
  deps: UsageRouteDeps,
  wanted: z.output<typeof query>,
): Promise<AdminAnswer> {
  const { store, clock, flushLedger } = deps;
  const { since, until } = readPeriod(wanted, clock);
  await flushLedger?.().catch(() => undefined);
  const { by, fault, limit, after, facets: ofFacet } = wanted;
  const filter = readFilter(wanted);
  const found = await store.calls.failures({
    since,
    until,
    filter,
    ...(fault === undefined ? {} : { fault }),
  });
  const merged = mergedBy(by, found.groups);
  const start = after === undefined ? 0 : merged.findIndex(({ id }) => id === after) + 1;
  const shown = merged.slice(start, start + limit);
  const hasMore = start + limit < merged.length;
  const body = {
    since: dateText(since),
    until: dateText(until),
    cut: found.isCut,
    groups: shown.map((each) => groupJson(each, by, deps)),
    ...(ofFacet === undefined ? {} : { facets: facetsJson(found.groups, ofFacet, deps) }),
    next: hasMore ? (shown.at(-1)?.id ?? null) : null,
  };
  return { status: 200, body };
}

function facetsJson(
  groups: readonly FailureGroup[],
  ofFacet: number,
  deps: UsageRouteDeps,
): JsonObject {
  return Object.fromEntries(
    facets.map((by) => {
      const shown = mergedBy(by, groups).slice(0, ofFacet);
      return [by, shown.map((each) => groupJson(each, by, deps))];
    }),
  );
}

interface Merged {
  /** Names the group in `after`. */
  readonly id: string;
  readonly parts: FailureGroup[];
  calls: number;
}

/** The groups of the store put together; the one with the most calls first. */
function mergedBy(by: Grouping, groups: readonly FailureGroup[]): readonly Merged[] {
  const merged = new Map<string, Merged>();
  for (const group of groups) {
    const id = by === 'error' ? errorId(group) : group[by];
    const there = merged.get(id) ?? { id, parts: [], calls: 0 };
    merged.set(id, there);
    there.parts.push(group);
    there.calls += group.calls;
  }
  return [...merged.values()].toSorted((a, b) => b.calls - a.calls || (a.id < b.id ? -1 : 1));
}

function errorId({ fault, error, reason, status }: FailureGroup): string {
  return [fault, error, reason, status ?? ''].join(' ');
}

function groupJson(
  { id, parts, calls }: Merged,
  by: Grouping,
  { keys }: UsageRouteDeps,
): JsonObject {
  const newest = parts.reduce((a, b) => (b.last.at > a.last.at ? b : a));
  const sums = faultKinds.map(({ fault, column }) => {
    const own = parts.filter((each) => each.fault === fault);
    return [column, own.reduce((sum, each) => sum + each.calls, 0)] as const;
  });
  const { fault, error, reason, status, last } = newest;
  return {
    ...(by === 'error'
      ? {
          fault: orNull(fault),
          error: orNull(error),
          reason: orNull(reason),
          status: status ?? null,
        }
      : { name: orNull(id) }),
    ...(by === 'key' ? { key_name: keys.find(id)?.record.name ?? null } : {}),
    calls,
    ...Object.fromEntries(sums),
    last_at: dateText(last.at),
    last_call: last.id,
    last_message: orNull(last.message),
  };
}

function orNull(name: string): string | null {
  return name === '' ? null : name;
}
