/** `status`: the gateway that runs here. */
import type { JsonObject } from '../../json/value.ts';
import { readArguments, withUsage } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { cell, jsonText, requireOk } from '../reply.ts';
import { columns, printable } from '../table.ts';

const help = `Usage: model-gateway status [--json]

Shows the gateway that runs on the data directory: version, addresses,
providers, store and running calls. Exits with 1 if none runs or it is not
ready.

  --json    the object of GET /api/status
`;

/** Shown first, in this order, under these names. */
const first = [
  ['ready', 'ready'],
  ['version', 'version'],
  ['url', 'data plane'],
  ['providers', 'providers'],
  ['live_calls', 'running calls'],
  ['config', 'config'],
  ['data_dir', 'data'],
] as const;

export const statusCommand: Command = {
  name: 'status',
  summary: 'show the running gateway: readiness, addresses, providers, calls',
  help,
  run: (args, context) => withUsage(context, 'status', () => run(args, context)),
};

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const given = readArguments(args, { switches: ['json'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const admin = await context.admin();
  const status = requireOk(await admin.request('GET', '/api/status'));
  const { ready, why } = status;
  if (given.has('json')) context.stdout(jsonText(status));
  else if (typeof why === 'string') context.stderr(`${printable(why)}\n`);
  else context.stdout(table(status, context));
  return ready === true ? 0 : 1;
}

function isTold(value: JsonObject[string]): boolean {
  return value !== 0 && value !== null;
}

function table(status: JsonObject, { screen }: CommandContext): string {
  const named = new Map<string, string>(first);
  const names = [...named.keys(), ...Object.keys(status).filter((name) => !named.has(name))];
  const rows = names
    // Counters at 0 say nothing; --json has them.
    .filter((name) => status[name] !== undefined && (named.has(name) || isTold(status[name])))
    .map((name) => [named.get(name) ?? name.replaceAll('_', ' '), cell(status[name])]);
  return columns(rows, { screen });
}
