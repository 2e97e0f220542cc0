/** `keys`: makes, lists, shows and revokes keys. */
import type { Json, JsonObject } from '../core/conversation.ts';
import {
  readArguments,
  UsageError,
  withUsage,
  type ArgumentForm,
  type Arguments,
} from './arguments.ts';
import type { AdminClient, Command, CommandContext } from './command.ts';
import { cell, jsonText, objectsOf, requireOk } from './reply.ts';
import { columns } from './table.ts';

const help = `Usage: model-gateway keys create|list|show|revoke [options]

  keys create   make a key; its secret is printed once
  keys list     list the keys, without their secrets
  keys show     show one key
  keys revoke   make a key useless, at once and for ever

Each has --help. They act on the running gateway, or on its data directory when none runs.
keys rotate and keys update are not available yet.
`;

const createHelp = `Usage: model-gateway keys create --name NAME --models GLOB[,GLOB...] [options]

Makes a key and prints its secret, which is shown only here.

  --name NAME         what the key is for
  --models GLOBS      the models it may use, separated by commas; * stands for any text
  --endpoints LIST    chat, messages, count_tokens, models; default: all
  --expires WHEN      30d, 24h, 2w, or a date such as 2026-12-31; default: never
  --team NAME         the team that its usage counts for
  --strict            refuse a request of which a translation would drop or change anything
  --json              one object: id, key, and what the key may do

Not available yet: --rpm, --tpm, --concurrent, --budget, --per.
`;

const listHelp = `Usage: model-gateway keys list [--json]

Lists all keys in the order of their creation. --json gives an array.
`;

const showHelp = `Usage: model-gateway keys show ID [--json]

Shows one key. The secret is not kept and cannot be shown.
`;

const revokeHelp = `Usage: model-gateway keys revoke ID [--json]

Revokes a key: new calls with it are refused at once. This cannot be undone.
`;

interface Action {
  readonly help: string;
  readonly form: ArgumentForm;
  run(given: Arguments, context: CommandContext): Promise<void>;
}

const limitFlags = ['rpm', 'tpm', 'concurrent', 'budget', 'per'] as const;

const actions: ReadonlyMap<string, Action> = new Map<string, Action>([
  [
    'create',
    {
      help: createHelp,
      form: {
        values: ['name', 'models', 'endpoints', 'expires', 'team'],
        switches: ['json', 'strict'],
        notYet: limitFlags,
      },
      run: create,
    },
  ],
  ['list', { help: listHelp, form: { switches: ['json'] }, run: list }],
  ['show', { help: showHelp, form: { switches: ['json'], positionals: ['ID'] }, run: show }],
  ['revoke', { help: revokeHelp, form: { switches: ['json'], positionals: ['ID'] }, run: revoke }],
]);

const laterActions: ReadonlySet<string> = new Set(['rotate', 'update']);

export const keysCommand: Command = {
  name: 'keys',
  summary: 'create, list, show and revoke keys',
  help,
  run: ([name, ...rest], context) => {
    const action = name === undefined ? undefined : actions.get(name);
    if (action !== undefined) {
      return withUsage(context, `keys ${name}`, () => runAction(action, rest, context));
    }
    return withUsage(context, 'keys', async () => {
      if (name === '--help' || name === '-h') {
        context.stdout(help);
        return 0;
      }
      if (name === undefined) throw new UsageError('Say what to do: create, list, show or revoke.');
      if (laterActions.has(name)) throw new UsageError(`keys ${name} is not available yet.`);
      throw new UsageError(`${name}: there is no such keys command.`);
    });
  },
};

async function runAction(
  action: Action,
  args: readonly string[],
  context: CommandContext,
): Promise<number> {
  const given = readArguments(args, action.form);
  if (given.has('help')) context.stdout(action.help);
  else await action.run(given, context);
  return 0;
}

async function create(given: Arguments, context: CommandContext): Promise<void> {
  const name = given.value('name');
  const models = given.value('models');
  if (name === undefined) throw new UsageError('--name is missing: say what the key is for.');
  if (models === undefined) {
    throw new UsageError("--models is missing: say which models the key may use; '*' means all.");
  }
  const endpoints = given.value('endpoints');
  const team = given.value('team');
  const body = {
    name,
    models: splitList(models),
    ...(endpoints === undefined ? {} : { endpoints: splitList(endpoints) }),
    ...(team === undefined ? {} : { team }),
    ...(given.has('strict') ? { strict: true } : {}),
    ...expiry(given.value('expires')),
  };
  const admin = await context.admin();
  const made = requireOk(await admin.request('POST', '/api/keys', body));
  if (given.has('json')) {
    context.stdout(jsonText(made));
    return;
  }
  context.stdout(`${cell(made['key'])}\n\n${details(made)}`);
  context.stderr('The key is shown this once: keep it now.\n');
}

/** `30d` is a span, `2026-12-31` a date; which of them is wrong is for the API to say. */
function expiry(text: string | undefined): { expires_in?: string; expires_at?: string } {
  if (text === undefined) return {};
  return /^\d{4}-/.test(text) ? { expires_at: text } : { expires_in: text };
}

function splitList(text: string): readonly string[] {
  return text.split(',').map((item) => item.trim());
}

async function list(given: Arguments, context: CommandContext): Promise<void> {
  const keys = await allKeys(await context.admin());
  if (given.has('json')) {
    context.stdout(jsonText(keys));
    return;
  }
  const rows = keys.map((key) =>
    ['id', 'name', 'state', 'team', 'strict', 'expires_at', 'endpoints', 'models'].map((name) =>
      cell(key[name]),
    ),
  );
  const head = ['ID', 'NAME', 'STATE', 'TEAM', 'STRICT', 'EXPIRES', 'ENDPOINTS', 'MODELS'];
  context.stdout(rows.length === 0 ? 'There are no keys.\n' : columns([head, ...rows]));
}

async function allKeys(admin: AdminClient): Promise<readonly JsonObject[]> {
  const keys: JsonObject[] = [];
  let after: Json | undefined;
  do {
    const start = typeof after === 'string' ? `&after=${encodeURIComponent(after)}` : '';
    const page = requireOk(await admin.request('GET', `/api/keys?limit=1000${start}`));
    keys.push(...objectsOf(page, 'keys'));
    after = page['next'];
  } while (typeof after === 'string');
  return keys;
}

async function show(given: Arguments, context: CommandContext): Promise<void> {
  const admin = await context.admin();
  const key = requireOk(await admin.request('GET', `/api/keys/${idOf(given)}`));
  context.stdout(given.has('json') ? jsonText(key) : details(key));
}

async function revoke(given: Arguments, context: CommandContext): Promise<void> {
  const admin = await context.admin();
  const key = requireOk(await admin.request('POST', `/api/keys/${idOf(given)}/revoke`));
  context.stdout(given.has('json') ? jsonText(key) : `Revoked ${cell(key['id'])}.\n`);
}

function idOf(given: Arguments): string {
  const [id = ''] = given.positionals;
  if (id.startsWith('gw_')) {
    throw new UsageError('ID: give the id of the key (the 8 characters after gw_), not the key.');
  }
  if (!/^[0-9A-Za-z_-]{1,64}$/.test(id)) throw new UsageError('ID: this is no id of a key.');
  return id;
}

function details(key: JsonObject): string {
  const names = Object.keys(key).filter((name) => name !== 'key');
  return columns(names.map((name) => [name.replaceAll('_', ' '), cell(key[name])]));
}
