/** `errors`: why calls failed. */
import type { Json, JsonObject } from '../../json/value.ts';
import { readArguments, withUsage } from '../arguments.ts';
import { CallCauses } from '../call-causes.ts';
import type { AdminClient, Command, CommandContext } from '../command.ts';
import { noteUnknownKey } from '../keys-of-store.ts';
import { cell, jsonText, objectsOf, requireOk } from '../reply.ts';
import { columns } from '../table.ts';

const help = `Usage: model-gateway errors [--by GROUP] [--since 24h] [options]

Counts failed calls by group, largest group first, with time, id and cause of
the newest call of each. The cause is the limit that refused the call, the
message of the provider, or the error message that the client got. The fault is
limit (of a key, team or tag), client, provider or gateway.

  --by GROUP       error (default), provider, key, model (as requested),
                   answered (provider/model that answered), team or limit
  --since WHEN     90m, 24h, 7d, 2w, or a date such as 2026-01-31; default: 24h
  --until WHEN     the same; only calls before this time; default: now
  --fault KIND     only limit, client, provider or gateway
  --key ID         only calls of this key; likewise --team NAME, --model NAME,
                   --provider NAME, --tag NAME
  --json           the rows of GET /api/errors
`;

const filters = [
  'by',
  'since',
  'until',
  'fault',
  'key',
  'team',
  'model',
  'provider',
  'tag',
] as const;

export const errorsCommand: Command = {
  name: 'errors',
  summary: 'count failed calls by cause, provider, key or model',
  help,
  run: (args, context) => withUsage(context, 'errors', () => run(args, context)),
};

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const given = readArguments(args, { values: filters, switches: ['json'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const query = new URLSearchParams({ limit: '1000' });
  for (const name of filters) {
    const value = given.value(name);
    if (value !== undefined) query.set(name, value);
  }
  const admin = await context.admin();
  const groups: JsonObject[] = [];
  let isCut: boolean;
  for (;;) {
    const answer = requireOk(await admin.request('GET', `/api/errors?${query}`));
    groups.push(...objectsOf(answer, 'groups'));
    isCut = answer['cut'] === true;
    const next = answer['next'];
    if (typeof next !== 'string') break;
    query.set('after', next);
  }
  if (groups.length === 0) await noteUnknownKey(given.value('key'), context);
  if (given.has('json')) context.stdout(jsonText(groups));
  else context.stdout(await table(groups, given.value('by') ?? 'error', { admin, context }));
  if (isCut) context.stderr('Only the newest 50,000 failed calls of this period are counted.\n');
  return 0;
}

/** For more groups the cause is the error that the client of the newest call got. */
const maxLookups = 50;

async function table(
  groups: readonly JsonObject[],
  by: string,
  { admin, context }: { readonly admin: AdminClient; readonly context: CommandContext },
): Promise<string> {
  if (groups.length === 0) return 'No calls failed in this period.\n';
  const heads = by === 'error' ? ['fault', 'error', 'reason', 'status'] : [by];
  const causes = new CallCauses(admin);
  const ownCells = async (group: JsonObject): Promise<readonly Json[]> => {
    if (by === 'error') return heads.map((name) => group[name] ?? null);
    const { name = null, key_name: keyName } = group;
    return [
      by === 'limit' && typeof name === 'string' ? await causes.limitName(name) : (keyName ?? name),
    ];
  };
  const rows: string[][] = [];
  for (const group of groups) {
    const { last_call: last, last_message: message } = group;
    const isAsked = rows.length < maxLookups && typeof last === 'string';
    const cause = isAsked ? await causes.sentenceOf(last) : undefined;
    const own = await ownCells(group);
    rows.push([group['calls'] ?? null, ...own, group['last_at'] ?? null, last ?? null].map(cell));
    rows.at(-1)?.push(cause ?? cell(message));
  }
  const head = ['calls', ...heads, 'last at', 'last call', 'cause'];
  const whole = [...head.keys()].slice(0, -1);
  const { screen } = context;
  return columns([head.map((name) => name.toUpperCase()), ...rows], { head: true, screen, whole });
}
