/** `init`: a first `gateway.yaml` with comments. */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isEntry } from '../../config/config-file.ts';
import { readAddress } from '../../config/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { readArguments, UsageError, withUsage } from '../arguments.ts';
import { shellWord } from '../shell-word.ts';
import type { Command, CommandContext } from '../command.ts';
import { printable } from '../table.ts';

export interface InitDeps {
  /** Vendors that need only a key, with the variable of it. */
  readonly known: readonly { readonly id: string; readonly keyVariable: string }[];
  /** Absolute path of the JSON Schema of the file. */
  readonly schema: string;
  readonly cwd: string;
  /** How this program is called. */
  readonly program: string;
  /** Asks a person, whose answer is undefined when the question was left by Ctrl-C; absent where none is there. */
  readonly ask: ((question: string) => Promise<string | undefined>) | undefined;
}

const help = `Usage: model-gateway init [options]

Writes a commented gateway.yaml into this folder. At a terminal it asks for what
the options leave open. An existing file is never changed.

  --providers LIST  vendors, separated by commas; default: those whose key
                    variable is set, or none
  --listen ADDRESS  address of the data plane (127.0.0.1:8686)
  --file PATH       another name (gateway.yaml)
  --yes             ask nothing
`;

/** The file that is read without `--config`. */
const usualName = 'gateway.yaml';

/** A question was left by Ctrl-C. */
class Left extends Error {}

/** Of shells, for a program that Ctrl-C ended. */
const interruptedCode = 130;

export function initCommand(deps: InitDeps): Command {
  return {
    name: 'init',
    summary: 'write a first gateway.yaml with comments',
    help,
    run: (args, context) =>
      withUsage(context, 'init', async () => {
        try {
          return await run(args, context, deps);
        } catch (error) {
          if (!(error instanceof Left)) throw error;
          context.stderr('\nNothing was written.\n');
          return interruptedCode;
        }
      }),
  };
}

async function run(
  args: readonly string[],
  context: CommandContext,
  { known, schema, cwd, program, ask }: InitDeps,
): Promise<number> {
  const given = readArguments(args, { values: ['providers', 'listen', 'file'], switches: ['yes'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const name = given.value('file') ?? usualName;
  const path = resolve(cwd, name);
  if (isEntry(path)) {
    throw new UsageError(`${name} exists and stays as it is. Choose another name with --file.`);
  }
  const found = known
    .filter(({ keyVariable }) => (context.env[keyVariable] ?? '') !== '')
    .map(({ id }) => id);
  const asking = given.has('yes') ? undefined : ask;
  const providers = given.value('providers');
  const chosen =
    providers === undefined
      ? await askForVendors(asking, known, found.join(','))
      : vendorsIn(providers, known);
  const listen =
    given.value('listen') ??
    (await answer(asking, { question: 'Address of the data plane', usual: '127.0.0.1:8686' }));
  if (readAddress(listen) === undefined) {
    throw new UsageError(
      `--listen: ${printable(listen)} is not an address. Use HOST:PORT, PORT (loopback) or [::1]:PORT.`,
    );
  }
  const rows = known.filter(({ id }) => chosen.includes(id));
  write(path, name, configText({ rows, listen, schema, program, env: context.env }));
  const isUsual = path === resolve(cwd, usualName);
  const config = isUsual ? '' : ` --config ${shellWord(name)}`;
  context.stdout(
    `Wrote ${name}. Next: ${program} check${config} shows what it sets, ${program} start${config} uses it.\n`,
  );
  if (isUsual) {
    context.stdout(
      'A gateway that runs in this folder without a config applies it at once; listen applies at the next start.\n',
    );
  }
  return 0;
}

function write(path: string, name: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx' });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new Error(
      `${printable(name)} cannot be written (${code}). Choose another place with --file.`,
      { cause: error },
    );
  }
}

/** Asks again until all are known. */
async function askForVendors(
  ask: InitDeps['ask'],
  known: InitDeps['known'],
  usual: string,
): Promise<readonly string[]> {
  const all = known.map(({ id }) => id).join(', ');
  let question = `Providers, separated by commas (${all})`;
  for (;;) {
    const said = await answer(ask, { question, usual });
    try {
      return vendorsIn(said, known);
    } catch (error) {
      if (ask === undefined || !(error instanceof UsageError)) throw error;
      question = `${error.message.replace('--providers: ', '')}\nProviders`;
    }
  }
}

/** @throws UsageError for a vendor that is not known */
function vendorsIn(text: string, known: InitDeps['known']): readonly string[] {
  const ids = known.map(({ id }) => id);
  const chosen = [...new Set(text.split(',').map((id) => id.trim()))].filter(
    (id) => id !== '' && id !== 'none',
  );
  const unknown = chosen.find((id) => !ids.includes(id));
  if (unknown === undefined) return chosen;
  const meant = nearest(unknown, ids);
  const hint = meant === undefined ? ` Known: ${ids.join(', ')}.` : ` Did you mean "${meant}"?`;
  throw new UsageError(`--providers: ${printable(unknown)} is not a known vendor.${hint}`);
}

async function answer(
  ask: InitDeps['ask'],
  { question, usual }: { readonly question: string; readonly usual: string },
): Promise<string> {
  if (ask === undefined) return usual;
  const said = await ask(`${question} [${usual === '' ? 'none' : usual}]: `);
  if (said === undefined) throw new Left();
  return said.trim() === '' ? usual : said.trim();
}

interface ConfigFacts {
  readonly rows: InitDeps['known'];
  readonly listen: string;
  readonly schema: string;
  readonly program: string;
  readonly env: CommandContext['env'];
}

function configText({ rows, listen, schema, program, env }: ConfigFacts): string {
  const providers = rows.map(({ id, keyVariable }) => {
    const isSet = (env[keyVariable] ?? '') !== '';
    return `  ${id}: {}${' '.repeat(Math.max(1, 20 - id.length))}# its key: ${keyVariable}${isSet ? '' : ', not set in this shell'}`;
  });
  return `# yaml-language-server: $schema=${schema}
# The gateway applies edits without a restart, as a whole or not at all.
# Every option: docs/options.md. What applies now: ${program} check

listen: ${JSON.stringify(listen)}             # data plane, for clients
# admin_listen: 127.0.0.1:8687        # dashboard, admin API, metrics

${rows.length === 0 ? '# providers:\n#   openai: {}              # its key: OPENAI_API_KEY' : `providers:\n${providers.join('\n')}`}
#   team-vllm:                        # any server that speaks one of the APIs
#     dialect: openai-chat
#     base_url: http://vllm.internal:8000/v1
#     api_key: \${TEAM_VLLM_KEY}       # from the environment, or \${file:/run/secrets/key}

# models:                             # names of yours
#   sonnet: anthropic/claude-sonnet-5
#   fast:                             # the second target answers when the first cannot
#     targets: [openai/gpt-5-mini, team-vllm/qwen3-32b]

# storage: sqlite                     # or postgres://USER:PASSWORD@HOST/DATABASE
`;
}
