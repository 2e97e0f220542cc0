/** `keys`: makes, lists, shows, changes, rotates and revokes keys. */
import { isObject, type JsonObject } from '../../json/value.ts';
import { commandOf, type Action, type Command, type CommandContext } from '../command.ts';
import { UsageError, type Arguments } from '../arguments.ts';
import { allKeys } from '../keys-of-store.ts';
import {
  policyFlags,
  policyHelp,
  policyMembers,
  scopeFlags,
  scopeHelp,
  scopeMembers,
  scopeSwitches,
  splitList,
} from '../key-options.ts';
import { policyText } from './policies.ts';
import { cell, jsonText, objectsOf, requireOk } from '../reply.ts';
import { columns, printable } from '../table.ts';
import { unmatchedNote } from '../unmatched-models.ts';
import { usageRows } from './usage.ts';

const help = `Usage: model-gateway keys create|list|show|update|rotate|revoke|forget [options]

  keys create   create a key; its secret is printed once
  keys list     list the keys, without their secrets
  keys show     show one key: permissions, limits and spending
  keys update   change permissions and limits of a key
  keys rotate   give a key a new secret; the old one works for one more day
  keys revoke   revoke a key immediately and permanently
  keys forget   remove its logged content and stored responses

Each has --help. They talk to the running gateway, or use its data directory if
no gateway runs.
`;

const createHelp = `Usage: model-gateway keys create --name NAME --models GLOB[,GLOB...] [options]

Creates a key and prints its secret, which is shown only here.

  --name NAME         purpose of the key
  --models GLOBS      models that it may use, separated by commas; * matches any
                      text
${scopeHelp}${policyHelp}  --json              one object: id, key and permissions
`;

const updateHelp = `Usage: model-gateway keys update ID [options]

Changes a key; options that are not given keep their values. Running calls are
not affected.

  --name NAME         purpose of the key
  --models GLOBS      models that it may use, separated by commas; * matches any
                      text
${scopeHelp}${policyHelp}  --json              the changed key

"none" removes a value: --team none, --cache none, --rpm none, --limits none,
--budget none (with --per: only of that period), --expires never. --no-strict,
--shrink and --no-log-content undo their opposites.
`;

const rotateHelp = `Usage: model-gateway keys rotate ID [--overlap 24h] [--json]

Creates a new secret for the key and prints it; it is shown only here. Id,
limits and usage stay.

  --overlap SPAN      how long the old secret works: 0 to 7d; default: 24h
`;

const listHelp = `Usage: model-gateway keys list [--json]

Lists all keys: first those from environment and config, then by creation time.
SPENT 30D is the cost of the calls of the last 30 days with a known price.
--json prints an array.
`;

const showHelp = `Usage: model-gateway keys show ID [--json]

Shows one key with its limits, spending and last use. The secret is not stored
and cannot be shown.
`;

const revokeHelp = `Usage: model-gateway keys revoke ID [--json]

Revokes a key: new calls are refused at once, running calls are cut. This cannot
be undone.
`;

const forgetHelp = `Usage: model-gateway keys forget ID [--json]

Removes the stored content of a key: its logged requests and answers
(--log-content), and the responses that its clients can continue
(previous_response_id). The calls stay in the ledger. This cannot be undone.
`;

const idOnly = { switches: ['json'], positionals: ['ID'] } as const;
const keyFlags = {
  values: ['name', 'models', ...scopeFlags, ...policyFlags],
  switches: ['json', ...scopeSwitches],
} as const;

export const keysCommand: Command = commandOf(
  {
    name: 'keys',
    summary: 'create, list, show, update, rotate, revoke or forget keys',
    help,
  },
  new Map<string, Action>([
    ['create', { help: createHelp, form: keyFlags, run: create }],
    ['list', { help: listHelp, form: { switches: ['json'] }, run: list }],
    ['show', { help: showHelp, form: idOnly, run: show }],
    ['update', { help: updateHelp, form: { ...keyFlags, positionals: ['ID'] }, run: update }],
    ['rotate', { help: rotateHelp, form: { ...idOnly, values: ['overlap'] }, run: rotate }],
    ['revoke', { help: revokeHelp, form: idOnly, run: revoke }],
    ['forget', { help: forgetHelp, form: idOnly, run: forget }],
  ]),
);

async function create(given: Arguments, context: CommandContext): Promise<void> {
  const name = given.value('name');
  const models = given.value('models');
  if (name === undefined) throw new UsageError('--name is missing: name the purpose of the key.');
  if (models === undefined) {
    throw new UsageError(
      "--models is missing: list the models that the key may use; '*' means all.",
    );
  }
  const body = {
    name,
    models: splitList(models),
    ...scopeMembers(given),
    ...policyMembers(given),
  };
  const admin = await context.admin();
  printSecret(requireOk(await admin.request('POST', '/api/keys', body)), given, context);
  await noteUnmatched(models, given, context);
}

/** Programs that read JSON know what they ask for. */
async function noteUnmatched(
  models: string | undefined,
  given: Arguments,
  context: CommandContext,
): Promise<void> {
  if (models === undefined || given.has('json')) return;
  const note = await unmatchedNote(splitList(models), await context.admin());
  if (note !== undefined) context.stderr(`note: ${printable(note)}\n`);
}

async function update(given: Arguments, context: CommandContext): Promise<void> {
  const name = given.value('name');
  const models = given.value('models');
  const body = {
    ...(name === undefined ? {} : { name }),
    ...(models === undefined ? {} : { models: splitList(models) }),
    ...scopeMembers(given),
    ...policyMembers(given),
  };
  if (Object.keys(body).length === 0)
    throw new UsageError('Nothing to change: give at least one option.');
  const path = `/api/keys/${idOf(given)}`;
  const admin = await context.admin();
  const key = requireOk(await admin.request('PATCH', path, body));
  context.stdout(given.has('json') ? jsonText(key) : details(key));
  await noteUnmatched(models, given, context);
}

async function rotate(given: Arguments, context: CommandContext): Promise<void> {
  const overlap = given.value('overlap');
  const path = `/api/keys/${idOf(given)}/rotate`;
  const admin = await context.admin();
  const made = await admin.request('POST', path, overlap === undefined ? {} : { overlap });
  printSecret(requireOk(made), given, context);
}

function printSecret(made: JsonObject, given: Arguments, context: CommandContext): void {
  if (given.has('json')) {
    context.stdout(jsonText(made));
    return;
  }
  context.stdout(`${cell(made['key'])}\n\n${details(made)}`);
  context.stderr('The key is shown only now. Store it safely.\n');
}

async function list(given: Arguments, context: CommandContext): Promise<void> {
  const keys = await allKeys(await context.admin());
  if (given.has('json')) {
    context.stdout(jsonText(keys));
    return;
  }
  const names = [
    'id',
    'name',
    'state',
    'last_used_at',
    'spent',
    'team',
    'strict',
    'expires_at',
    'endpoints',
    'models',
  ];
  const spent = await spentByKey(context);
  const rows = keys.map((key) => [
    ...names.map((name) => cell(name === 'spent' ? spent(cell(key['id'])) : key[name])),
    policyText(key),
  ]);
  const head = [
    'ID',
    'NAME',
    'STATE',
    'LAST USED',
    'SPENT 30D',
    'TEAM',
    'STRICT',
    'EXPIRES',
    'ENDPOINTS',
    'MODELS',
    'LIMITS',
  ];
  context.stdout(
    rows.length === 0
      ? 'There are no keys.\n'
      : columns([head, ...rows], { head: true, screen: context.screen, whole: [0] }),
  );
}

/** Dollars of the last 30 days; null: the price of its calls is unknown. */
async function spentByKey(context: CommandContext): Promise<(id: string) => string | null> {
  const query = new URLSearchParams({ by: 'key', since: '30d', limit: '10000' });
  const rows = await usageRows(query, context);
  const costs = new Map(rows.map(({ key, cost_usd: cost }) => [cell(key), cost]));
  return (id) => {
    const cost = costs.has(id) ? costs.get(id) : 0;
    return typeof cost === 'number' ? `$${cell(cost)}` : null;
  };
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

async function forget(given: Arguments, context: CommandContext): Promise<void> {
  const admin = await context.admin();
  const id = idOf(given);
  const done = requireOk(await admin.request('DELETE', `/api/keys/${id}/content`));
  const { removed } = done;
  const calls = removed === 1 ? 'call' : 'calls';
  const text = `Removed the content of ${cell(removed)} ${calls} of ${id}, and its stored responses.\n`;
  context.stdout(given.has('json') ? jsonText(done) : text);
}

function idOf(given: Arguments): string {
  const [id = ''] = given.positionals;
  if (id.startsWith('gw_')) {
    throw new UsageError('ID: give the id of the key (the 8 characters after gw_), not the key.');
  }
  if (!/^[0-9A-Za-z_-]{1,64}$/.test(id)) throw new UsageError('ID: this is not a key id.');
  return id;
}

/** Members with a line of their own, and members that are not values of the key. */
const notShown = new Set(['key', 'rpm', 'tpm', 'concurrent', 'limits', 'budgets', 'previous']);

function details(key: JsonObject): string {
  const names = Object.keys(key).filter((name) => !notShown.has(name));
  const rows = names.map((name) => [name.replaceAll('_', ' '), cell(key[name])]);
  const old = objectsOf(key, 'previous').map((secret) => [
    'old secret until',
    cell(isObject(secret) ? secret['valid_until'] : null),
  ]);
  return columns([...rows, ...old, ['limits', policyText(key)]]);
}
