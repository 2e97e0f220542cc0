/** `models`: what can be called, and who answers. */
import { readArguments, withUsage } from './arguments.ts';
import type { Command, CommandContext } from './command.ts';
import { cell, jsonText, objectsOf, requireOk } from './reply.ts';
import { columns } from './table.ts';

const help = `Usage: model-gateway models [--json]

Lists the names that clients may use, with the targets behind each and their health.

  --json    an array: id, and targets with target and health
`;

export const modelsCommand: Command = {
  name: 'models',
  summary: 'list what can be called, with targets and their health',
  help,
  run: (args, context) => withUsage(context, 'models', () => run(args, context)),
};

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const given = readArguments(args, { switches: ['json'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const admin = await context.admin();
  const models = objectsOf(requireOk(await admin.request('GET', '/api/models')), 'models');
  if (given.has('json')) {
    context.stdout(jsonText(models));
    return 0;
  }
  const rows = models.flatMap((model) =>
    objectsOf(model, 'targets').map((target, i) => [
      i === 0 ? cell(model['id']) : '',
      cell(target['target']),
      cell(target['health']),
    ]),
  );
  context.stdout(
    rows.length === 0
      ? 'No model can be called.\n'
      : columns([['MODEL', 'TARGET', 'HEALTH'], ...rows]),
  );
  return 0;
}
