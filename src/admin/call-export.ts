/** `/api/calls/export`: the calls of a filter as one file, which is read page by page while it is sent. */
import { z } from 'zod';
import type { KeyRing } from '../access/keys/keys.ts';
import { csvRows, csvText } from '../core/display.ts';
import { type Cost, dollarsText } from '../core/money.ts';
import { tokenClasses } from '../core/token-classes.ts';
import type { JsonObject } from '../json/value.ts';
import type { CallPage, CallQuery, CallRow } from '../store/calls.ts';
import type { Store } from '../store/store.ts';
import { call, callFilters, callJson, countsJson, readCallFilter } from './calls.ts';
import { type AdminAnswer, type AdminRoute, dateText, readInput } from './route.ts';
import type { UsageRouteDeps } from './usage.ts';

const query = z.strictObject({
  ...callFilters.shape,
  format: z
    .enum(['json', 'csv'], 'must be json or csv')
    .default('json')
    .describe('json: as in a list of calls; csv: a header line and a line for each call.'),
});

/** Rows that are read from the store at once. Other queries run between pages. */
const pageRows = 1000;

/** Columns of the CSV that are parts of the cost, in dollars with all digits. */
const costColumns: { readonly [column: string]: keyof Cost } = {
  cost_usd: 'total',
  cost_input_usd: 'input',
  cost_cache_read_usd: 'cacheRead',
  cost_cache_write_usd: 'cacheWrite',
  cost_output_usd: 'output',
  cost_reasoning_usd: 'reasoning',
  cost_call_usd: 'call',
};

const csvColumns: readonly string[] = [
  'id',
  'started_at',
  'key',
  'key_name',
  'team',
  'tags',
  'user',
  'endpoint',
  'model',
  'provider',
  'upstream_model',
  'mode',
  'stream',
  'outcome',
  'status',
  'error',
  'fault',
  'reason',
  'message',
  'limit',
  'attempts',
  ...tokenClasses.map(({ column }) => column),
  'usage_source',
  'suspect',
  ...Object.keys(costColumns),
  'cache_saved_usd',
  'reserved_usd',
  'overrun',
  'first_event_ms',
  'total_ms',
  'notes',
  'metadata',
];

export function exportRoutes(deps: UsageRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/calls/export',
      about: {
        summary:
          'Export all calls of a filter, newest first, as a file. If it fails midway, the connection breaks, so that a client notices.',
        query,
        answer: z.strictObject({ calls: z.array(call) }),
        csv: true,
      },
      run: (request) => exported(deps, readInput(query, request.query)),
    },
  ];
}

async function exported(
  { store, keys, clock, flushLedger }: UsageRouteDeps,
  wanted: z.output<typeof query>,
): Promise<AdminAnswer> {
  const filter = readCallFilter(wanted, clock);
  const now = clock.wall();
  await flushLedger?.().catch(() => undefined);
  // Calls that begin while the file is written are not in it.
  const asked = { ...filter, until: Math.min(filter.until ?? Infinity, now + 1), limit: pageRows };
  // Before the answer begins, so that a store failure decides the status.
  const pages = pagesOf(store, asked, await store.calls.list(asked));
  const { format } = wanted;
  return {
    status: 200,
    body: {},
    fileName: `calls-${dateText(now).slice(0, 10)}.${format}`,
    pieces:
      format === 'csv'
        ? { type: 'text/csv; charset=utf-8', content: csvPieces(pages, keys) }
        : { type: 'application/json', content: jsonPieces(pages) },
  };
}

type Pages = AsyncIterable<readonly CallRow[]>;

async function* pagesOf(store: Store, asked: CallQuery, first: CallPage): Pages {
  let page = first;
  for (;;) {
    yield page.calls;
    if (page.next === undefined) return;
    page = await store.calls.list({ ...asked, before: page.next });
  }
}

async function* csvPieces(pages: Pages, keys: KeyRing): AsyncIterable<string> {
  yield csvText(csvColumns, []);
  for await (const calls of pages) {
    yield csvRows(
      csvColumns,
      calls.map((each) => csvRow(each, keys)),
    );
  }
}

function csvRow(row: CallRow, keys: KeyRing): JsonObject {
  const { cost, cacheSaved: saved, reservedNanodollars: reserved, tags, keyId } = row;
  const costs = Object.entries(costColumns).map(([column, part]): [string, string | null] => [
    column,
    cost === undefined ? null : dollarsText(cost[part]),
  ]);
  return {
    ...callJson(row),
    ...countsJson(row.charged),
    ...Object.fromEntries(costs),
    key_name: keys.find(keyId)?.record.name ?? null,
    // A tag has no comma.
    tags: tags.join(','),
    cache_saved_usd: saved === undefined ? null : dollarsText(saved),
    reserved_usd: reserved === undefined ? null : dollarsText(reserved),
  };
}

async function* jsonPieces(pages: Pages): AsyncIterable<string> {
  yield '{"calls":[';
  let before = '\n';
  for await (const calls of pages) {
    if (calls.length === 0) continue;
    yield before + calls.map((each) => JSON.stringify(callJson(each))).join(',\n');
    before = ',\n';
  }
  yield '\n]}\n';
}
