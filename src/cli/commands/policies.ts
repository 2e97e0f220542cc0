/** `teams` and `tags`: what keys may use together. */
import type { Json, JsonObject } from '../../json/value.ts';
import {
  commandOf,
  type Action,
  type AdminClient,
  type Command,
  type CommandContext,
} from '../command.ts';
import { UsageError, type Arguments } from '../arguments.ts';
import {
  namedByFlags,
  namedByHelp,
  namedByMembers,
  policyFlags,
  policyHelp,
  policyMembers,
} from '../key-options.ts';
import { cell, jsonText, objectsOf, requireOk } from '../reply.ts';
import { columns } from '../table.ts';

export const teamsCommand: Command = commandOfKind('team');
export const tagsCommand: Command = commandOfKind('tag');

function commandOfKind(kind: 'team' | 'tag'): Command {
  const name = `${kind}s`;
  const ofTag = kind === 'tag';
  const shared = kind === 'team' ? 'the keys of a team' : 'all calls with a tag';
  const nameOnly = { switches: ['json'], positionals: ['NAME'] } as const;
  const actions = new Map<string, Action>([
    [
      'list',
      {
        help: `Usage: model-gateway ${name} list [--json]\n\nLists the ${name} that have limits or budgets, by name. --json gives an array.\n`,
        form: { switches: ['json'] },
        run: (given, context) => list(kind, given, context),
      },
    ],
    [
      'show',
      {
        help: `Usage: model-gateway ${name} show NAME [--json]\n\nShows the limits and budgets that ${shared} share, and their spending.\n`,
        form: nameOnly,
        run: (given, context) => request(kind, { method: 'GET' }, { given, context }),
      },
    ],
    [
      'set',
      {
        help: `Usage: model-gateway ${name} set NAME [options]

Replaces the limits and budgets that ${shared} share.

${policyHelp}${ofTag ? namedByHelp : ''}  --json              the changed ${kind}
`,
        form: {
          values: [...policyFlags, ...(ofTag ? namedByFlags : [])],
          switches: ['json'],
          positionals: ['NAME'],
        },
        run: (given, context) => {
          const body = { ...policyMembers(given), ...(ofTag ? namedByMembers(given) : {}) };
          return request(kind, { method: 'PUT', body }, { given, context });
        },
      },
    ],
    [
      'remove',
      {
        help: `Usage: model-gateway ${name} remove NAME [--json]\n\nRemoves the limits and budgets of the ${kind}. Its keys and usage stay.\n`,
        form: nameOnly,
        run: (given, context) => remove(kind, given, context),
      },
    ],
  ]);
  const help = `Usage: model-gateway ${name} list|show|set|remove [options]

  ${name} list     list the ${name} that have limits or budgets
  ${name} show     show one and its spending
  ${name} set      set limits and budgets that ${shared} share
  ${name} remove   remove limits and budgets

Each has --help. They talk to the running gateway, or use its data directory if
no gateway runs.
`;
  return commandOf({ name, summary: `limits and budgets of ${name}`, help }, actions);
}

async function list(kind: string, given: Arguments, context: CommandContext): Promise<void> {
  const found = await allOf(kind, await context.admin());
  if (given.has('json')) {
    context.stdout(jsonText(found));
    return;
  }
  const rows = found.map((each) => [cell(each['name']), cell(each['source']), policyText(each)]);
  const none = `There are no ${kind}s with limits or budgets.\n`;
  context.stdout(
    rows.length === 0
      ? none
      : columns([['NAME', 'SOURCE', 'LIMITS'], ...rows], {
          head: true,
          screen: context.screen,
          whole: [0],
        }),
  );
}

async function allOf(kind: string, admin: AdminClient): Promise<readonly JsonObject[]> {
  const found: JsonObject[] = [];
  let after: Json | undefined;
  do {
    const start = typeof after === 'string' ? `&after=${encodeURIComponent(after)}` : '';
    const page = requireOk(await admin.request('GET', `/api/${kind}s?limit=1000${start}`));
    found.push(...objectsOf(page, `${kind}s`));
    after = page['next'];
  } while (typeof after === 'string');
  return found;
}

interface Run {
  readonly given: Arguments;
  readonly context: CommandContext;
}

async function request(
  kind: string,
  wanted: { readonly method: string; readonly body?: Json },
  { given, context }: Run,
): Promise<void> {
  const path = pathOf(kind, given);
  const admin = await context.admin();
  const answer = requireOk(await admin.request(wanted.method, path, wanted.body));
  if (given.has('json')) {
    context.stdout(jsonText(answer));
    return;
  }
  const { name, source } = answer;
  const rows = [
    ['name', cell(name)],
    ['source', cell(source)],
    ['limits', policyText(answer)],
    ...(kind === 'tag' ? [['set by', namedByText(answer)]] : []),
  ];
  context.stdout(columns(rows));
}

function namedByText({ keys, teams }: JsonObject): string {
  const names = [
    ...textsOf(keys).map((id) => (id === '*' ? 'all keys' : `key ${id}`)),
    ...textsOf(teams).map((name) => (name === '*' ? 'all teams' : `team ${name}`)),
  ];
  return names.length === 0 ? 'the keys that have it' : names.join(', ');
}

function textsOf(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.map(cell) : [];
}

async function remove(kind: string, given: Arguments, context: CommandContext): Promise<void> {
  const path = pathOf(kind, given);
  const admin = await context.admin();
  const answer = requireOk(await admin.request('DELETE', path));
  context.stdout(
    given.has('json') ? jsonText(answer) : `Removed the limits of ${cell(answer['name'])}.\n`,
  );
}

function pathOf(kind: string, given: Arguments): string {
  const [name = ''] = given.positionals;
  if (name.trim() === '') throw new UsageError('NAME: give a name.');
  return `/api/${kind}s/${encodeURIComponent(name)}`;
}

// Limits and budgets of the admin API's answers, in one line.

/** One of them, and several. */
const units: ReadonlyMap<string, readonly [string, string]> = new Map([
  ['requests', ['request per minute', 'requests per minute']],
  ['tokens', ['token per minute', 'tokens per minute']],
  ['concurrent', ['concurrent call', 'concurrent calls']],
]);

/** `60 requests per minute; $3.20 of $10 a month`; `-` where there are none. */
export function policyText(holder: JsonObject): string {
  const limits = objectsOf(holder, 'limits').map(({ kind, amount, model }) => {
    const what = units.get(cell(kind))?.[amount === 1 ? 0 : 1] ?? cell(kind);
    return `${cell(amount)} ${what}${typeof model === 'string' ? ` of ${model}` : ''}`;
  });
  const budgets = objectsOf(holder, 'budgets').map(budgetText);
  return [...limits, ...budgets].join('; ') || '-';
}

function budgetText({ usd, per, time_zone: zone, spent_usd: spent }: JsonObject): string {
  const whole = `$${cell(usd)}`;
  const amount = spent === undefined ? whole : `$${cell(spent)} of ${whole}`;
  if (per === 'ever') return `${amount} in total`;
  return `${amount} a ${cell(per)}${zone === 'UTC' ? '' : ` (${cell(zone)})`}`;
}
