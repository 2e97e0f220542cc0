/** `import`: a `gateway.yaml` from the config of another gateway, with a word on each of its lines. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { foreignOrigin, reason } from '../../config/config-file.ts';
import { ConfigError, fileAndLine, pathText } from '../../config/errors.ts';
import { configForm } from '../../config/schema.ts';
import { readFindings } from '../../config/schema-issues.ts';
import { type ConfigPath, readYaml, type YamlText } from '../../config/yaml-text.ts';
import { isObject } from '../../json/value.ts';
import { readArguments, UsageError, withUsage, type Arguments } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { columns, printable } from '../table.ts';
import { Draft, inOrder, type FileOrigin, type KnownVendor, type NoteKind } from './draft.ts';
import { readLitellm } from './litellm.ts';
import { readLitellmKeys } from './litellm-keys.ts';
import { readOpenrouter, readPortkey } from './presets.ts';
import { type Table, tableOf } from './values.ts';

const help = `Usage: model-gateway import ORIGIN FILE [options]

Reads the config of another gateway and writes a commented gateway.yaml. It says
of each line what was taken, what changed, what has no counterpart, and what is
not known. Secrets stay where they are: the result refers to the environment.

  litellm FILE      config.yaml of the LiteLLM proxy
  portkey FILE      a Portkey config (JSON)
  openrouter FILE   an OpenRouter preset (JSON)

  --out PATH        write to PATH; without it the result goes to stdout and
                    the report to stderr
  --force           PATH may exist
  --keys FILE       litellm: its virtual keys, the answer of
                    GET /key/list?return_full_object=true; clients keep them
  --name NAME       portkey, openrouter: the model name for clients (default:
                    the name of the file)
`;

const origins = new Map([
  ['litellm', 'LiteLLM'],
  ['portkey', 'Portkey'],
  ['openrouter', 'OpenRouter'],
]);

export interface ImportParts {
  readonly cwd: string;
  readonly vendors: readonly KnownVendor[];
  /** How this program is called. */
  readonly program: string;
}

export function importCommand(parts: ImportParts): Command {
  return {
    name: 'import',
    summary: 'make a gateway.yaml from the config of another gateway',
    help,
    run: (args, context) => withUsage(context, 'import', () => run(args, context, parts)),
  };
}

async function run(
  args: readonly string[],
  context: CommandContext,
  { cwd, vendors, program }: ImportParts,
): Promise<number> {
  const given = readArguments(args, {
    values: ['out', 'keys', 'name'],
    switches: ['force'],
    positionals: ['ORIGIN', 'FILE'],
  });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const [origin = '', file = ''] = given.positionals;
  const gateway = origins.get(origin);
  if (gateway === undefined) {
    throw new UsageError(`${printable(origin)}: give one of ${[...origins.keys()].join(', ')}.`);
  }
  const out = given.value('out');
  if (out !== undefined && existsSync(resolve(cwd, out)) && !given.has('force')) {
    throw new UsageError(`${out} exists and stays as it is. Give another --out, or --force.`);
  }
  const yaml = readOther(file, cwd);
  const keysFile = given.value('keys');
  if (keysFile !== undefined && origin !== 'litellm') {
    throw new UsageError('--keys belongs to litellm.');
  }
  const keys = keysFile === undefined ? undefined : readOther(keysFile, cwd);
  const draft = new Draft(vendors);
  fill(draft, { origin, root: tableOf(merged(yaml.value)), keys, given, context, file });
  checkForm(draft);
  // `keys` is no member of LiteLLM's config.
  const ofKeys = (path: ConfigPath): boolean => keys !== undefined && path[0] === 'keys';
  const names: FileOrigin = {
    gateway,
    file: basename(file),
    line: (path) => (ofKeys(path) ? undefined : yaml.lineOf(path)),
    at: (path) =>
      ofKeys(path)
        ? fileAndLine(basename(keysFile ?? ''), keys?.lineOf(path))
        : fileAndLine(basename(file), yaml.lineOf(path)),
    name: (path) => (path.length === 0 ? '(the file)' : printable(pathText(path))),
  };
  if (draft.isEmpty) {
    context.stderr(report(draft, names, context));
    throw new UsageError(nothingTaken(yaml.value, { origin, gateway, file }));
  }
  const text = draft.text(names);
  if (out === undefined) context.stdout(text);
  else
    writeFileSync(resolve(cwd, out), text, { mode: 0o600, flag: given.has('force') ? 'w' : 'wx' });
  const print = out === undefined ? context.stderr : context.stdout;
  print(report(draft, names, context));
  print(nextSteps(draft, out, program));
  return 0;
}

const readProblems = new Map([
  ['ENOENT', 'does not exist'],
  ['EISDIR', 'is a directory, not a file'],
]);

/** @throws ConfigError with file and line where the text is not YAML; UsageError where it is not a mapping */
function readOther(file: string, cwd: string): YamlText {
  let text: string;
  try {
    text = readFileSync(resolve(cwd, file), 'utf8');
  } catch (error) {
    const why = reason(error);
    const words = readProblems.get(why) ?? `cannot be read (${why})`;
    throw new UsageError(`${file} ${words}.`);
  }
  // References stay as they are: what they lead to is no part of the result.
  const yaml = readYaml({ text, resolve: (each) => ({ text: each }) });
  const broken = yaml.findings.filter(({ path }) => path.at(-1) !== '<<');
  if (broken.length > 0) {
    throw new ConfigError(
      broken.map(({ path, message, line }) => ({
        file,
        path: pathText(path),
        message,
        ...(line === undefined ? {} : { line }),
      })),
    );
  }
  if (!isObject(yaml.value)) {
    throw new UsageError(`${file} is empty, or holds no mapping of names to values.`);
  }
  return yaml;
}

interface Imported {
  readonly origin: string;
  readonly gateway: string;
  readonly file: string;
}

/** A file that gave nothing is most likely another one than was meant. */
function nothingTaken(value: unknown, { origin, gateway, file }: Imported): string {
  const found = foreignOrigin(value);
  const hint =
    found === undefined || found.word === origin
      ? ''
      : ` It looks like a config of ${found.gateway}: give ${found.word} in place of ${origin}.`;
  return `Nothing was written: ${printable(file)} has nothing that can be taken from a config of ${gateway}.${hint}`;
}

/** YAML's merge key, which the files of other gateways use. */
function merged(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(merged);
  if (!isObject(value)) return value;
  const { '<<': base, ...own } = value;
  const bases = (Array.isArray(base) ? base : [base]).map((each) => tableOf(merged(each)));
  const entries = Object.entries(own).map(([name, each]) => [name, merged(each)] as const);
  return Object.assign({}, ...bases.toReversed(), Object.fromEntries(entries));
}

interface FillInput {
  readonly origin: string;
  readonly root: Table;
  /** Virtual keys of LiteLLM. */
  readonly keys: YamlText | undefined;
  readonly given: Arguments;
  readonly context: CommandContext;
  readonly file: string;
}

function fill(draft: Draft, { origin, root, keys, given, context, file }: FillInput): void {
  const name = given.value('name') ?? basename(file).replace(/\.[a-z]+$/i, '');
  if (origin === 'litellm') {
    readLitellm(root, draft, context.env);
    if (keys !== undefined) readLitellmKeys(keys.value, draft);
    return;
  }
  if (origin === 'portkey') readPortkey(root, draft, name.replace(/\s+/g, '-'));
  else readOpenrouter(root, draft, name.replace(/\s+/g, '-'));
}

/** What the form of this gateway's config refuses is said here, too; values that are references are not known yet. */
function checkForm(draft: Draft): void {
  const value = draft.value();
  const checked = configForm.safeParse(value);
  if (checked.success) return;
  for (const { path, message } of readFindings(checked.error.issues, value)) {
    const found = path.reduce<unknown>((at, step) => tableOf(at)[String(step)], value);
    if (typeof found === 'string' && found.includes('${')) continue;
    draft.note('not known', [], `${pathText(path)} of the result: ${message}`);
  }
}

const kinds: readonly NoteKind[] = ['taken', 'changed', 'left out', 'not known'];

function report(draft: Draft, names: FileOrigin, { screen }: CommandContext): string {
  const rows = inOrder(draft.notes, names).map(({ path, kind, text }) => [
    names.at(path),
    kind,
    names.name(path),
    text,
  ]);
  const table = columns(rows, {
    ...(screen === undefined ? {} : { screen: { colour: screen.colour } }),
    colourOf: (cell, column) =>
      column !== 1 ? undefined : cell === 'taken' ? 'green' : cell === 'changed' ? 'yellow' : 'red',
  });
  const sums = kinds.map((kind) => {
    const count = draft.notes.filter((note) => note.kind === kind).length;
    return `${count} ${kind}`;
  });
  return `${table}\n${sums.join(', ')}.\n`;
}

function nextSteps(draft: Draft, out: string | undefined, program: string): string {
  const variables = [...draft.variables].toSorted();
  const set = variables.length === 0 ? '' : `Set ${variables.join(', ')} where the gateway runs.\n`;
  const check = `${program} check --config ${out ?? 'gateway.yaml'}`;
  return out === undefined ? set : `Wrote ${out}. ${set}Next: ${check}\n`;
}
