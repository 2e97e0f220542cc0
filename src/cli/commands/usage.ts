/** `usage`: what was called, how many tokens it took and what it cost. */
import type { Json, JsonObject } from '../../json/value.ts';
import { dollarsNumber } from '../../core/money.ts';
import { faultKinds } from '../../core/faults.ts';
import { summedClasses } from '../../core/token-classes.ts';
import { readArguments, UsageError, withUsage } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { csvText } from '../../core/display.ts';
import { noteUnknownKey } from '../keys-of-store.ts';
import { cell, jsonText, objectsOf, requireOk } from '../reply.ts';
import type { Screen } from '../screen.ts';
import { columns } from '../table.ts';

const help = `Usage: model-gateway usage [--by GROUP] [--since 30d] [options]

Sums calls, tokens and cost by group. Input tokens include cached ones. The cost
covers calls with a known price; calls without one are counted separately.

  --by GROUP       key (default), model (as requested), answered (provider/model
                   that answered), provider, team, tag, user, day or hour (UTC);
                   a call counts for each of its tags, and for its user while it
                   is in the ledger
  --since WHEN     90m, 24h, 7d, 2w, or a date such as 2026-01-31; default: 30d
  --until WHEN     the same; only calls before this time; default: now
  --key ID         only calls of this key; likewise --team NAME, --model NAME,
                   --provider NAME, --tag NAME
  --json           an array of rows: the group, calls, failed, input_tokens,
                   cache_read_tokens, cache_write_tokens, output_tokens,
                   cost_usd (null: unknown), unpriced_calls, failed calls by
                   fault, and tokens of media, web_searches and images
  --csv            the same columns as CSV
`;

const faultSums: readonly string[] = faultKinds.map(({ column }) => column);
const mainSums: readonly string[] = [
  'calls',
  'failed',
  ...faultSums,
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'cost_usd',
  'unpriced_calls',
];
const mediaSums = summedClasses
  .map(({ column }) => column)
  .filter((name) => !mainSums.includes(name));
const sums = [...mainSums, ...mediaSums];

/** Shown in the table only where there are some. */
const rareSums: ReadonlySet<string> = new Set([...faultSums, ...mediaSums]);

/** A column of the table only: others compute it from the two counts. */
const failedShare = 'failed_%';

const filters = ['since', 'until', 'key', 'team', 'model', 'provider', 'tag'] as const;
const pageRows = '10000';

export const usageCommand: Command = {
  name: 'usage',
  summary: 'show calls, tokens and costs by key, model, team, day and more',
  help,
  run: (args, context) => withUsage(context, 'usage', () => run(args, context)),
};

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const given = readArguments(args, { values: ['by', ...filters], switches: ['json', 'csv'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  if (given.has('json') && given.has('csv')) {
    throw new UsageError('--csv and --json cannot be combined.');
  }
  const by = given.value('by') ?? 'key';
  const query = new URLSearchParams({ by, limit: pageRows });
  for (const name of filters) {
    const value = given.value(name);
    if (value !== undefined) query.set(name, value);
  }
  const rows = await usageRows(query, context);
  if (rows.length === 0) await noteUnknownKey(given.value('key'), context);
  const groups = by === 'key' ? ['key', 'key_name'] : [by];
  if (given.has('json')) context.stdout(jsonText(rows));
  else if (given.has('csv')) context.stdout(csvText([...groups, ...sums], rows));
  else {
    // A call counts for each of its tags and once in all; one that has expired, for no user.
    const all = by === 'tag' || by === 'user' ? await usageRows(byDay(query), context) : rows;
    context.stdout(table({ groups, rows, all }, context.screen));
    const gone = by === 'user' ? callsIn(all) - callsIn(rows) : 0;
    if (gone > 0)
      context.stderr(`${gone} calls have expired from the ledger: their users are not known.\n`);
  }
  return 0;
}

/** All pages of `/api/usage`. */
export async function usageRows(
  query: URLSearchParams,
  context: CommandContext,
): Promise<readonly JsonObject[]> {
  const admin = await context.admin();
  const rows: JsonObject[] = [];
  for (;;) {
    const answer = requireOk(await admin.request('GET', `/api/usage?${query.toString()}`));
    rows.push(...objectsOf(answer, 'rows'));
    const next = answer['next'];
    if (typeof next !== 'string') return rows;
    query.set('after', next);
  }
}

function callsIn(rows: readonly JsonObject[]): number {
  return rows.reduce((sum, { calls }) => sum + (typeof calls === 'number' ? calls : 0), 0);
}

/** The same calls, each in one row only. */
function byDay(query: URLSearchParams): URLSearchParams {
  const same = new URLSearchParams(query);
  same.set('by', 'day');
  same.delete('after');
  return same;
}

interface Shown {
  readonly groups: readonly string[];
  readonly rows: readonly JsonObject[];
  /** What the last line adds up. */
  readonly all: readonly JsonObject[];
}

function table({ groups, rows, all }: Shown, screen: Screen | undefined): string {
  if (rows.length === 0) return 'There are no calls in this period.\n';
  const counted = sums.filter(
    (name) => !rareSums.has(name) || rows.some((row) => Boolean(row[name])),
  );
  const shown = counted.flatMap((name) => (name === 'failed' ? [name, failedShare] : [name]));
  const totals = Object.fromEntries(counted.map((name) => [name, total(all, name)]));
  const textOf = (row: JsonObject, name: string): string =>
    name === failedShare ? percent(row) : cell(row[name]);
  const lines = [
    [...groups, ...shown].map((name) => name.toUpperCase().replaceAll('_', ' ')),
    ...rows.map((row) => [...groups, ...shown].map((name) => textOf(row, name))),
    ['total', ...groups.slice(1).map(() => ''), ...shown.map((name) => textOf(totals, name))],
  ];
  const cells = lines.map((line) => line.map((text, i) => aligned(lines, { text, i, groups })));
  return columns(cells, { head: true, screen, whole: [...(cells[0] ?? []).keys()] });
}

function percent({ failed, calls }: JsonObject): string {
  if (typeof failed !== 'number' || typeof calls !== 'number' || calls === 0) return '-';
  return `${((failed / calls) * 100).toFixed(1)}%`;
}

/** Numbers are at the right of their column, so that they can be compared at a glance. */
function aligned(
  lines: readonly (readonly string[])[],
  at: { readonly text: string; readonly i: number; readonly groups: readonly string[] },
): string {
  if (at.i < at.groups.length) return at.text;
  return at.text.padStart(Math.max(...lines.map((line) => line[at.i]?.length ?? 0)));
}

/** What is known; nothing of it is unknown, not 0. Dollars are added as whole nanodollars. */
function total(rows: readonly JsonObject[], name: string): Json {
  const known = rows.map((row) => row[name]).filter((value) => typeof value === 'number');
  if (known.length === 0) return null;
  if (name !== 'cost_usd') return known.reduce((sum, value) => sum + value, 0);
  const nanodollars = known.reduce((sum, value) => sum + Math.round(value * 1e9), 0);
  const unpriced = rows.some((row) => Boolean(row['unpriced_calls']));
  return nanodollars === 0 && unpriced ? null : dollarsNumber(nanodollars);
}
