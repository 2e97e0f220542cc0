/** `status`: the gateway that runs here. */
import type { Json, JsonObject } from '../../json/value.ts';
import { readArguments, withUsage } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { cell, jsonText, objectsOf, requireOk } from '../reply.ts';
import { columns, printable } from '../table.ts';

const help = `Usage: model-gateway status [--json]

Shows the gateway that runs on the data directory: version, process, addresses,
health of each provider, store and running calls. Exits with 1 if none runs or
it is not ready.

  --json    the object of GET /api/status, with provider_health by provider
`;

/** Shown first, in this order, under these names. */
const first = [
  ['ready', 'ready'],
  ['version', 'version'],
  ['pid', 'process'],
  ['url', 'data plane'],
  ['admin_url', 'admin plane'],
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
  if (typeof why === 'string') {
    if (given.has('json')) context.stdout(jsonText(status));
    else context.stderr(`${printable(why)}\n`);
    return 1;
  }
  const answer = requireOk(await admin.request('GET', '/api/providers'));
  const health = objectsOf(answer, 'providers')
    .filter(({ there }) => there === true)
    .map((provider): [string, Json] => [cell(provider['id']), provider['health'] ?? null]);
  if (given.has('json')) {
    context.stdout(jsonText({ ...status, provider_health: Object.fromEntries(health) }));
  } else context.stdout(table(status, health, context));
  return ready === true ? 0 : 1;
}

function isTold(value: JsonObject[string]): boolean {
  return value !== 0 && value !== null;
}

function table(
  status: JsonObject,
  health: readonly (readonly [string, Json])[],
  { screen }: CommandContext,
): string {
  const named = new Map<string, string>(first);
  const names = [...named.keys(), ...Object.keys(status).filter((name) => !named.has(name))];
  const rows = names
    // Counters at 0 say nothing; --json has them.
    .filter((name) => status[name] !== undefined && (named.has(name) || isTold(status[name])))
    .flatMap((name) =>
      name === 'providers' && health.length > 0
        ? health.map(([id, state], i) => [i === 0 ? 'providers' : '', `${id}: ${cell(state)}`])
        : [[named.get(name) ?? name.replaceAll('_', ' '), cell(status[name])]],
    );
  // Values are copied.
  return columns(rows, { screen, whole: [0, 1] });
}
