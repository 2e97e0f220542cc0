/** `models`: what can be called, and who answers; `models remove` deletes a fetched one. */
import { isObject, type JsonObject } from '../../json/value.ts';
import { readArguments, UsageError, withUsage } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { cell, jsonText, objectsOf, requireOk } from '../reply.ts';
import { bytesText, countText } from '../../core/display.ts';
import type { Colour, Screen } from '../screen.ts';
import { columns, printable } from '../table.ts';

const help = `Usage: model-gateway models [--json]
       model-gateway models remove NAME [--json]

Lists the names that clients may use, with the targets of each and their health;
for models that run on this machine (local/NAME) also file size, parameters,
context and quantisation. Health is healthy, degraded, down or unknown
(never called).

  --json    an array: id, max_input_tokens and max_tokens (null: unknown),
            targets with target and health, and for local models local

models remove deletes a model that pull downloaded. model-gateway pull --list
suggests models to start with.
`;

export interface ModelsCommandDeps {
  /** Deletes a local model. @returns its id and the bytes that are free again. */
  remove(name: string): Promise<{ readonly id: string; readonly bytes: number }>;
}

export function modelsCommand(deps: ModelsCommandDeps): Command {
  return {
    name: 'models',
    summary: 'list the models that can be called, with targets and health',
    help,
    choices: ['remove'],
    run: (args, context) =>
      withUsage(context, 'models', () =>
        args[0] === 'remove' ? remove(args.slice(1), context, deps) : list(args, context),
      ),
  };
}

async function list(args: readonly string[], context: CommandContext): Promise<number> {
  const given = readArguments(args, { switches: ['json'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const admin = await context.admin();
  const answer = requireOk(await admin.request('GET', '/api/models'));
  const models = objectsOf(answer, 'models');
  for (const problem of objectsOf(answer, 'problems')) {
    const text = `${cell(problem['subject'])} ${cell(problem['why'])}`;
    context.stderr(`left out: ${printable(text)}\n`);
  }
  context.stdout(given.has('json') ? jsonText(models) : table(models, context.screen));
  return 0;
}

/** Where something is wrong, and where it is known that nothing is. */
function colourOf(text: string, column: number): Colour | undefined {
  if (column !== 2) return undefined;
  if (text.startsWith('down')) return 'red';
  if (text.startsWith('degraded')) return 'yellow';
  return text === 'healthy' ? 'green' : undefined;
}

function table(models: readonly JsonObject[], screen: Screen | undefined): string {
  if (models.length === 0) return 'No model can be called.\n';
  const hasLocal = models.some(({ local }) => isObject(local));
  const rows = models.flatMap((model) => {
    const about = hasLocal ? localCells(model['local']) : [];
    return objectsOf(model, 'targets').flatMap((target, i) => [
      [
        i === 0 ? cell(model['id']) : '',
        cell(target['target']),
        cell(target['health']),
        ...(i === 0 ? about : []),
      ],
      ...credentialRows(target),
    ]);
  });
  const head = ['MODEL', 'TARGET', 'HEALTH'];
  const more = hasLocal ? ['SIZE', 'PARAMETERS', 'CONTEXT', 'QUANT', ''] : [];
  const look = { head: true, screen, colourOf, whole: [0, 1] };
  return columns([[...head, ...more], ...rows], look).replace(/ +$/gm, '');
}

/** Below its target, each by its name. */
function credentialRows(target: JsonObject): readonly (readonly string[])[] {
  if (target['credentials'] === undefined) return [];
  return objectsOf(target, 'credentials').map(({ name, health }) => [
    '',
    `  with ${cell(name)}`,
    cell(health),
  ]);
}

function localCells(local: unknown): readonly string[] {
  if (!isObject(local)) return [];
  const { size_bytes: bytes, parameters, context, quantization } = local;
  const remarks = [
    ...(local['demonstration'] === true ? ['demonstration model'] : []),
    ...(local['chat_template'] === false ? ['no chat template'] : []),
  ];
  return [
    typeof bytes === 'number' ? bytesText(bytes) : '-',
    typeof parameters === 'number' ? countText(parameters) : '-',
    cell(context),
    cell(quantization),
    remarks.join(', '),
  ];
}

async function remove(
  args: readonly string[],
  context: CommandContext,
  deps: ModelsCommandDeps,
): Promise<number> {
  const given = readArguments(args, { switches: ['json'], positionals: ['NAME'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const name = (given.positionals[0] ?? '').replace(/^local\//, '');
  if (name === '') throw new UsageError('NAME is missing.');
  const { id, bytes } = await deps.remove(name);
  context.stdout(
    given.has('json')
      ? jsonText({ id, removed: true, size_bytes: bytes })
      : `Removed ${id} (${bytesText(bytes)}).\n`,
  );
  return 0;
}
