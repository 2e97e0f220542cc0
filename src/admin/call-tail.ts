/** `/api/calls/tail`: calls as they end on this gateway, for open pages. */
import { z } from 'zod';
import type { EndedCalls } from '../access/ended-calls.ts';
import type { Clock } from '../core/runtime.ts';
import { call, callFilters, callJson, readCallFilter } from './calls.ts';
import { type AdminAnswer, type AdminRoute, readInput } from './route.ts';

export interface TailRouteDeps {
  /** Absent where no gateway runs: no call ends. */
  readonly ended?: Pick<EndedCalls, 'look'>;
  readonly clock: Clock;
}

const query = z.strictObject({
  limit: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(1000, 'must be at most 1000')
    .default(200)
    .describe('Maximum number of calls: the newest.'),
  after: z.string().max(100).optional().describe('`next` of the previous answer.'),
  ...callFilters.shape,
});

const answer = z.strictObject({
  calls: z.array(call).describe('The call that ended last comes first.'),
  ended: z
    .number()
    .int()
    .describe('Calls of the filter that ended since `after`; `calls` has the newest of them.'),
  lost: z
    .number()
    .int()
    .describe('Calls since `after` that are not kept any more, whatever the filter.'),
  continued: z
    .boolean()
    .describe(
      'False: the first request, or the previous one was more than a minute ago; what ended in between is in the list of calls only.',
    ),
  next: z.string().describe('Pass as `after` in the next request.'),
});

export function tailRoutes(deps: TailRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/calls/tail',
      about: {
        summary: 'Calls that ended on this gateway since the previous request, newest first.',
        query,
        answer,
      },
      run: (request) => tail(deps, readInput(query, request.query)),
    },
  ];
}

function tail({ ended, clock }: TailRouteDeps, wanted: z.output<typeof query>): AdminAnswer {
  const { after, limit } = wanted;
  const filter = readCallFilter(wanted, clock);
  const found = ended?.look({ after, filter, limit });
  const calls = found?.calls.map(callJson) ?? [];
  const { ended: count = 0, lost = 0, continued = false, next = '' } = found ?? {};
  return { status: 200, body: { calls, ended: count, lost, continued, next } };
}
