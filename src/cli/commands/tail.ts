/** `tail`: calls as they end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isObject, type JsonObject } from '../../json/value.ts';
import { readArguments, UsageError, withUsage } from '../arguments.ts';
import { CallCauses } from '../call-causes.ts';
import type { AdminClient, Command, CommandContext } from '../command.ts';
import { noteUnknownKey } from '../keys-of-store.ts';
import { cell, objectsOf, requireOk } from '../reply.ts';
import { noScreen, paint, type Colour } from '../screen.ts';
import { printable } from '../table.ts';

const help = `Usage: model-gateway tail [options]

Prints calls as they end, one line each: time of the request (UTC), outcome,
name of the key, model and target, tokens in and out, cost, duration. A line
below a failed call has its fault (limit, client, provider, gateway) and its
cause: the limit, the provider's message, or the error message that the client
got. Ctrl-C ends it.

  --lines N        calls from before that are shown first; default: 10
  --no-follow      print those and exit
  --key ID         only calls of this key; likewise --model NAME, --team NAME,
                   --provider NAME, --user NAME, --outcome NAME,
                   --fault KIND (limit, client, provider, gateway)
  --json           one object a line, as GET /api/calls lists it
`;

const filters = ['key', 'model', 'team', 'provider', 'user', 'outcome', 'fault'] as const;
const everyMs = 1000;
/** Read each time; calls beyond these are only counted. */
const pageSize = 500;

export const tailCommand: Command = {
  name: 'tail',
  summary: 'print calls as they end',
  help,
  run: (args, context) => withUsage(context, 'tail', () => run(args, context)),
};

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const given = readArguments(args, {
    values: ['lines', ...filters],
    switches: ['no-follow', 'json'],
  });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const lines = given.value('lines') ?? '10';
  if (!/^\d{1,3}$/.test(lines) || Number(lines) > pageSize) {
    throw new UsageError(`--lines: give a number from 0 to ${pageSize}.`);
  }
  const query = new URLSearchParams({ limit: String(pageSize) });
  for (const name of filters) {
    const value = given.value(name);
    if (value !== undefined) query.set(name, value);
  }
  const admin = await context.admin();
  const causes = new CallCauses(admin);
  const show = async (call: JsonObject): Promise<void> =>
    context.stdout(
      given.has('json') ? `${JSON.stringify(call)}\n` : await lineOf(call, causes, context),
    );
  const before = await newest(admin, query);
  for (const call of before.slice(0, Number(lines)).toReversed()) await show(call);
  const isUnknown = before.length === 0 && (await noteUnknownKey(given.value('key'), context));
  if (before.length === 0 && !isUnknown && !given.has('json')) {
    context.stderr('There are no such calls yet.\n');
  }
  if (given.has('no-follow')) return 0;
  await follow(before, { admin, query, show, context });
  return 0;
}

interface Following {
  readonly admin: AdminClient;
  readonly query: URLSearchParams;
  readonly context: CommandContext;
  show(call: JsonObject): Promise<void>;
}

/** Ends with the process, or with the gateway. */
async function follow(
  before: readonly JsonObject[],
  { admin, query, show, context }: Following,
): Promise<never> {
  // A long call ends after calls that began later: new calls are recognised by their ids.
  let seen = new Set(before.map(({ id }) => id));
  for (;;) {
    await sleep(everyMs);
    const calls = await newest(admin, query);
    const added = calls.filter(({ id }) => !seen.has(id));
    if (added.length === pageSize) {
      context.stderr(`More than ${pageSize} calls ended at once; some are not shown.\n`);
    }
    for (const call of added.toReversed()) await show(call);
    seen = new Set([...calls.map(({ id }) => id), ...[...seen].slice(0, pageSize)]);
  }
}

async function newest(admin: AdminClient, query: URLSearchParams): Promise<readonly JsonObject[]> {
  return objectsOf(requireOk(await admin.request('GET', `/api/calls?${query}`)), 'calls');
}

async function lineOf(
  call: JsonObject,
  causes: CallCauses,
  { screen = noScreen }: CommandContext,
): Promise<string> {
  const { status, error, outcome, key } = call;
  const charged = isObject(call['charged']) ? call['charged'] : {};
  const cost = call['cost_usd'];
  const target =
    call['provider'] === null
      ? ''
      : ` -> ${cell(call['provider'])}/${cell(call['upstream_model'])}`;
  const input = ['fresh_input_tokens', 'cache_read_tokens', 'cache_write_tokens']
    .map((name) => charged[name])
    .reduce((sum: number, value) => sum + (typeof value === 'number' ? value : 0), 0);
  const result = `${cell(status)} ${error === null ? cell(outcome) : cell(error)}`;
  const cells = [
    cell(call['started_at']),
    paint(screen, colourOf(outcome), printable(result.padEnd(20))),
    typeof key === 'string' ? await causes.keyName(key) : '-',
    `${cell(call['model'])}${target}`,
    `${input} in, ${cell(charged['output_tokens'])} out`,
    typeof cost === 'number' ? `$${cell(cost)}` : 'price unknown',
    `${Math.round(Number(call['total_ms']))} ms`,
  ];
  const line = cells.map((text, i) => (i === 1 ? text : printable(text))).join('  ');
  if (typeof call['message'] !== 'string') return `${line}\n`;
  const { fault, reason } = call;
  const whose = [fault, reason].filter((text) => typeof text === 'string').join(', ');
  const why = printable(`${whose}: ${await causes.sentence(call)}`);
  return `${line}\n    ${paint(screen, 'dim', why)}\n`;
}

function colourOf(outcome: unknown): Colour {
  if (outcome === 'ok') return 'green';
  return outcome === 'canceled' ? 'yellow' : 'red';
}
