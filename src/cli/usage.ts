/** `usage`: what was called, and how many tokens it took. */
import type { Json, JsonObject } from '../core/conversation.ts';
import { readArguments, UsageError, withUsage } from './arguments.ts';
import type { Command, CommandContext } from './command.ts';
import { csvText } from './csv.ts';
import { cell, jsonText, objectsOf, requireOk } from './reply.ts';
import { columns } from './table.ts';

const help = `Usage: model-gateway usage [--by key|model|provider|team|day] [--since 7d] [--json|--csv]

Sums the calls by key (default), model, provider, team or day (UTC). Input tokens include cached ones;
the cost is unknown until there are prices.

  --by GROUP      key, model, provider, team or day; tag is not available yet
  --since WHEN    90m, 24h, 7d, 2w, or a date such as 2026-01-31; default 30d
  --json          an array of rows: the group, calls, failed, input_tokens, cache_read_tokens,
                  cache_write_tokens, output_tokens, cost_usd (null: unknown)
  --csv           the same columns as CSV
`;

const sums = [
  'calls',
  'failed',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'cost_usd',
] as const;

export const usageCommand: Command = {
  name: 'usage',
  summary: 'show calls and tokens by key, model, provider, team or day',
  help,
  run: (args, context) => withUsage(context, 'usage', () => run(args, context)),
};

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const given = readArguments(args, { values: ['by', 'since'], switches: ['json', 'csv'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  if (given.has('json') && given.has('csv')) {
    throw new UsageError('--csv and --json cannot stand together.');
  }
  const by = given.value('by') ?? 'key';
  if (by === 'tag') throw new UsageError('--by tag is not available yet.');
  const query = new URLSearchParams({ by });
  const since = given.value('since');
  if (since !== undefined) query.set('since', since);
  const admin = await context.admin();
  const answer = requireOk(await admin.request('GET', `/api/usage?${query.toString()}`));
  const rows = objectsOf(answer, 'rows');
  const groups = by === 'key' ? ['key', 'key_name'] : [by];
  if (given.has('json')) context.stdout(jsonText(rows));
  else if (given.has('csv')) context.stdout(csvText([...groups, ...sums], rows));
  else context.stdout(table(groups, rows));
  return 0;
}

function table(groups: readonly string[], rows: readonly JsonObject[]): string {
  if (rows.length === 0) return 'There are no calls in this time.\n';
  const names = [...groups, ...sums];
  const lines = [
    names.map((name) => name.toUpperCase().replaceAll('_', ' ')),
    ...rows.map((row) => names.map((name) => cell(row[name]))),
    ['total', ...groups.slice(1).map(() => ''), ...sums.map((name) => cell(total(rows, name)))],
  ];
  return columns(lines.map((line) => line.map((text, i) => aligned(lines, { text, i, groups }))));
}

/** Numbers stand at the right of their column, so that they can be compared at a glance. */
function aligned(
  lines: readonly (readonly string[])[],
  at: { readonly text: string; readonly i: number; readonly groups: readonly string[] },
): string {
  if (at.i < at.groups.length) return at.text;
  return at.text.padStart(Math.max(...lines.map((line) => line[at.i]?.length ?? 0)));
}

/** One unknown makes the sum unknown: absent is not zero. */
function total(rows: readonly JsonObject[], name: string): Json {
  let sum = 0;
  for (const row of rows) {
    const value = row[name];
    if (typeof value !== 'number') return null;
    sum += value;
  }
  return sum;
}
