/** `check`: loads the settings exactly as `start` does and says where each value comes from. */
import { ConfigError, type ConfigIssue } from '../../config/errors.ts';
import { FlagError, flagsHelp, parseFlags, type ParsedFlags } from '../../config/base.ts';
import type { KnownProviders } from '../../config/providers.ts';
import { loadSettings } from '../../config/load.ts';
import type { Settings } from '../../config/settings.ts';
import { usageText } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { noScreen, paint } from '../screen.ts';
import { columns, printable, printableLines } from '../table.ts';

/** A provider that the gateway would have, and why. */
export interface DescribedProvider {
  readonly id: string;
  /** Where it is called; `embedded` for the engine that ships with the gateway. */
  readonly address: string;
  /** `env OPENAI_API_KEY`, `gateway.yaml:3`, `answers on 127.0.0.1:11434`. */
  readonly origin: string;
  /** Where the credential of a cloud comes from, in words; never a value. */
  readonly credential?: string;
}

export interface CheckDeps {
  readonly cwd: string;
  readonly knownProviders: KnownProviders;
  /** All providers that `start` would have. May throw what `start` would throw. */
  describeProviders(
    settings: Settings,
    env: CommandContext['env'],
  ): readonly DescribedProvider[] | Promise<readonly DescribedProvider[]>;
  /** Asks the providers for their models, with the credentials that calls have. */
  askProviders?(
    settings: Settings,
    env: CommandContext['env'],
  ): Promise<readonly { readonly id: string; readonly works: boolean; readonly message: string }[]>;
  /** What this machine lacks of a valid configuration, e.g. files of models; absent = not examined. */
  lookAround?(settings: Settings): Promise<readonly string[]>;
}

const help = `Usage: model-gateway check [flags of start] [--ask] [--json]

Validates the configuration that start would use and prints each effective value
with its origin. Exits with 1 on any error, and lists all errors with file and
line on stderr.

${flagsHelp()}  --ask                     ask each provider for its models, with its key;
                            exits with 1 if one fails
  --json                    one object: valid, config_file, settings, providers,
                            warnings, errors; with --ask also asked

Each flag can be set by an environment variable, too: MODEL_GATEWAY_LISTEN for
--listen, MODEL_GATEWAY_ADMIN_LISTEN for --admin-listen, and so on.
`;

export function checkCommand(deps: CheckDeps): Command {
  return {
    name: 'check',
    summary: 'validate the configuration and show where each value comes from',
    help,
    run: (args, context) => run(args, context, deps),
  };
}

async function run(
  args: readonly string[],
  context: CommandContext,
  deps: CheckDeps,
): Promise<number> {
  // Known before the flags are: a wrong flag is reported as JSON too.
  const asJson = args.includes('--json');
  try {
    const parsed = parseFlags(args, { switches: ['json', 'ask'] });
    if (parsed.help) context.stdout(help);
    else return await report(parsed, context, deps);
    return 0;
  } catch (error) {
    const issues = issuesOf(error);
    if (asJson) context.stdout(json({ valid: false, errors: issues }));
    if (error instanceof FlagError) {
      context.stderr(usageText(error, 'check'));
      return 2;
    }
    const text = error instanceof Error ? error.message : String(error);
    context.stderr(`${paint(context.errorScreen ?? noScreen, 'red', printableLines(text))}\n`);
    return 1;
  }
}

async function report(
  { flags, json: asJson, ask }: ParsedFlags,
  context: CommandContext,
  { cwd, knownProviders, describeProviders, lookAround, askProviders }: CheckDeps,
): Promise<number> {
  const { env } = context;
  const settings = await loadSettings({ flags, env, cwd, knownProviders });
  const providers = await describeProviders(settings, env);
  const { origins } = settings;
  const warnings = [...settings.warnings, ...((await lookAround?.(settings)) ?? [])];
  const asked = ask ? ((await askProviders?.(settings, env)) ?? []) : undefined;
  const code = asked?.some(({ works }) => !works) === true ? 1 : 0;
  if (asJson) {
    const config_file = settings.configFile ?? null;
    context.stdout(
      json({
        valid: true,
        config_file,
        settings: origins,
        providers,
        warnings,
        errors: [],
        ...(asked === undefined ? {} : { asked }),
      }),
    );
    return code;
  }
  const { screen = noScreen, errorScreen = noScreen } = context;
  // Defaults are dimmed.
  const colourOf = (cell: string, column: number): 'dim' | undefined =>
    column === 2 && cell === 'default' ? 'dim' : undefined;
  const lines = origins.map(({ path, value, origin }) => [path, value, origin]);
  context.stdout(columns(lines, { screen, colourOf }));
  const found = providers.map(({ id, address, origin, credential }) => [
    `  ${id}`,
    address,
    credential === undefined || credential === origin ? origin : `${origin}, ${credential}`,
  ]);
  context.stdout(`\n${paint(screen, 'bold', 'providers')}\n${columns(found, { screen })}`);
  if (asked !== undefined) {
    const rows = asked.map(({ id, works, message }) => [
      `  ${id}`,
      works ? 'works' : 'fails',
      printable(message),
    ]);
    context.stdout(`\n${paint(screen, 'bold', 'asked')}\n${columns(rows, { screen })}`);
  }
  for (const warning of warnings) {
    context.stderr(`${paint(errorScreen, 'yellow', 'warning')}: ${printable(warning)}\n`);
  }
  context.stdout(`\n${paint(screen, 'green', 'The configuration is valid.')}\n`);
  return code;
}

function issuesOf(error: unknown): readonly ConfigIssue[] {
  if (error instanceof ConfigError) return error.issues;
  return [{ path: '', message: error instanceof Error ? error.message : String(error) }];
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
