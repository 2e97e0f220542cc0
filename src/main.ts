/**
 * The program's door: which command, and what each is handed. Everything heavier is loaded by the
 * command that needs it.
 */
import { realpathSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from './cli/command.ts';
import { processSignals } from './compose/signals.ts';
import type { RunningGateway, StartOptions } from './compose/start.ts';

/** Starts a gateway in this process. @throws ConfigError, StoreError, or the error of listening. */
export async function startGateway(options: StartOptions): Promise<RunningGateway> {
  const { start } = await import('./compose/start.ts');
  return start(options);
}

const loaders: { readonly [name: string]: () => Promise<Command> } = {
  start: async () => (await import('./compose/commands/start-command.ts')).startCommand,
  check: async () => (await import('./compose/commands/config-commands.ts')).checkCommand,
  keys: async () => (await import('./cli/commands/keys.ts')).keysCommand,
  teams: async () => (await import('./cli/commands/policies.ts')).teamsCommand,
  tags: async () => (await import('./cli/commands/policies.ts')).tagsCommand,
  models: async () => (await import('./compose/commands/model-commands.ts')).modelsCommand,
  prices: async () => (await import('./cli/commands/prices.ts')).pricesCommand,
  pull: async () => (await import('./compose/commands/model-commands.ts')).pullCommand,
  usage: async () => (await import('./cli/commands/usage.ts')).usageCommand,
  audit: async () => (await import('./cli/commands/audit.ts')).auditCommand,
  backup: async () =>
    (await import('./cli/commands/backup.ts')).backupCommand({ cwd: process.cwd() }),
  copy: async () => (await import('./compose/commands/copy-stores.ts')).copyCommand(process.cwd()),
  explain: async () =>
    (await import('./cli/commands/explain.ts')).explainCommand({ cwd: process.cwd() }),
  connect: async () => (await import('./cli/commands/connect.ts')).connectCommand,
  status: async () => (await import('./cli/commands/status.ts')).statusCommand,
  errors: async () => (await import('./cli/commands/errors.ts')).errorsCommand,
  tail: async () => (await import('./cli/commands/tail.ts')).tailCommand,
  init: async () => (await import('./compose/commands/config-commands.ts')).initCommand,
  import: async () => (await import('./compose/commands/config-commands.ts')).importCommand,
  completion: async () => {
    const { completionCommand } = await import('./cli/completion.ts');
    const others = Object.entries(loaders).filter(([name]) => name !== 'completion');
    return completionCommand(await Promise.all(others.map(([, load]) => load())));
  },
  version: async () => {
    const [{ versionCommand }, { version }] = await Promise.all([
      import('./cli/version.ts'),
      import('./compose/options.ts'),
    ]);
    return versionCommand({ version, node: process.version });
  },
};

/** All commands but `help`, in the order in which it lists them. */
export function loadCommands(): Promise<readonly Command[]> {
  return Promise.all(Object.values(loaders).map((load) => load()));
}

async function run(args: readonly string[]): Promise<number> {
  const [name = 'help', ...rest] = args;
  const { paint, screenOf } = await import('./cli/screen.ts');
  const { printable } = await import('./cli/table.ts');
  let isNamed = false;
  const errorScreen = screenOf(process.stderr, process.env);
  const context = {
    stdout: (text: string): void => void process.stdout.write(text),
    stderr: (text: string): void => void process.stderr.write(text),
    screen: screenOf(process.stdout, process.env),
    errorScreen,
    ...(errorScreen.columns === undefined ? {} : { terminalColumns: errorScreen.columns }),
    env: process.env,
    admin: async () => {
      const { findGateway } = await import('./compose/commands/find-gateway.ts');
      const { from, client } = await findGateway(process.env, process.cwd());
      // A person must see which of several gateways was meant; a program has said it.
      if (!isNamed && !rest.includes('--json') && !rest.includes('--csv')) {
        process.stderr.write(`${paint(errorScreen, 'dim', printable(from))}\n`);
      }
      isNamed = true;
      return client;
    },
    gatewayUrl: async () => {
      const { runningUrl } = await import('./compose/commands/find-gateway.ts');
      return runningUrl(process.env, process.cwd());
    },
  };
  const load = Object.hasOwn(loaders, name) ? loaders[name] : undefined;
  if (load !== undefined) {
    // Packages load when they are needed. Without them a command is refused before it has done a part of its work.
    if (name !== 'version') import.meta.resolve('zod');
    if (name === 'start') processSignals.listen();
    const command = await load();
    // These two read all flags themselves, and print where each value comes from.
    if (['start', 'check'].includes(name)) return command.run(rest, context);
    const { readGatewayFlags } = await import('./cli/gateway-flags.ts');
    const { withUsage } = await import('./cli/arguments.ts');
    return withUsage(context, name, async () => {
      const gatewayFlags = readGatewayFlags(rest);
      Object.assign(process.env, gatewayFlags.env);
      return command.run(gatewayFlags.args, context);
    });
  }
  const { helpCommand, unknownCommand } = await import('./cli/help.ts');
  const commands = await loadCommands();
  if (name === '--version' || name === '-v') return run(['version']);
  if (['help', '--help', '-h'].includes(name)) return helpCommand(commands).run(rest, context);
  context.stderr(unknownCommand(name, commands));
  return 2;
}

/** How long a command that failed may take to write what it says, and to end by itself. */
const lingerMs = 2_000;

/** A checkout without `npm ci`. */
function isNotInstalled(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    // By import, and by require in the joined program.
    ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(String(error.code)) &&
    /^Cannot find (?:package|module '[a-z])/.test(error.message)
  );
}

function isProgram(): boolean {
  const called = process.argv[1];
  return called !== undefined && realpathSync(called) === fileURLToPath(import.meta.url);
}

/** No top-level `await`: the joined program is of CommonJS modules (docs/decisions/0071-the-joined-program.md). */
async function runProgram(): Promise<void> {
  enableCompileCache();
  // The reader of a pipe left (`| head`, `| less`), or the terminal was closed: the program continues without output. So
  // it does where a disk is full, which is a failure.
  let isUnwritten = false;
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error) => {
      const code = 'code' in error ? String(error.code) : error.message;
      if (['EPIPE', 'EIO'].includes(code) || isUnwritten) return;
      isUnwritten = true;
      process.exitCode = 1;
      process.stderr.write(`model-gateway: The output cannot be written (${code}).\n`);
    });
  }
  try {
    const code = await run(process.argv.slice(2));
    process.exitCode = isUnwritten ? 1 : code;
  } catch (error) {
    const text = isNotInstalled(error)
      ? `The packages of this program are not installed. Run "npm ci" in ${join(import.meta.dirname, '..')}.`
      : error instanceof Error
        ? error.message
        : String(error);
    const { printableLines } = await import('./cli/table.ts');
    // Each line of it is a problem of its own.
    const isList = error instanceof Error && error.name === 'ConfigError';
    const lines = printableLines(text);
    process.stderr.write(
      `model-gateway: ${isList ? lines.replaceAll('\n', '\nmodel-gateway: ') : lines}\n`,
    );
    process.exitCode = 1;
    // A start may fail after it has opened the store, whose thread would keep the process running.
    setTimeout(() => process.exit(), lingerMs).unref();
  }
}

if (isProgram()) void runProgram();
