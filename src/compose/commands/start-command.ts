/** The command `start`. It loads nothing of the other commands: they read files with a large library. */
import { withUsage } from '../../cli/arguments.ts';
import { banner } from '../../cli/banner.ts';
import type { Command, CommandContext } from '../../cli/command.ts';
import { programName } from '../../cli/program.ts';
import { flagsHelp, parseFlags } from '../../config/base.ts';
import { durationText } from '../../config/options.ts';
import { collectGarbageOfStart } from '../../http/overload/load.ts';
import { shippedModels } from '../../local-models/model-folder.ts';
import type { RunningGateway } from '../options.ts';
import { processSignals, samePressMs, type Signal } from '../signals.ts';

const help = `Usage: model-gateway start [options]

Starts the gateway: the data plane (all endpoints) and the admin plane.

${flagsHelp()}
Each flag can be set by an environment variable, too: MODEL_GATEWAY_LISTEN for
--listen, MODEL_GATEWAY_ADMIN_LISTEN for --admin-listen, and so on.

SIGTERM, Ctrl-C  stop when running calls are done, after two minutes at most.
                 If a load balancer polls /readyz, calls are accepted for five
                 more seconds after SIGTERM (\`drain:\` in the config). A second
                 signal stops at once.
SIGHUP           reload the config; stop if the terminal of the gateway was
                 closed. Under nohup the gateway survives its terminal.
SIGUSR2          replace the workers one by one
`;

export const startCommand: Command = {
  name: 'start',
  summary: 'start the gateway',
  help,
  run: (args, context) => withUsage(context, 'start', () => runGateway(args, context)),
};

async function runGateway(args: readonly string[], context: CommandContext): Promise<number> {
  const parsed = parseFlags(args);
  if (parsed.help) {
    context.stdout(help);
    return 0;
  }
  const { start } = await import('../start.ts');
  const gateway = await start({
    flags: parsed.flags,
    env: context.env,
    beforeListening: collectGarbageOfStart,
    announce: (started) => context.stdout(bannerOf(started, context)),
  });
  return untilStopped(gateway, context);
}

function bannerOf(gateway: RunningGateway, { env, screen }: CommandContext): string {
  const { settings, providers, newKey, newAdminToken } = gateway;
  const only = providers.every((id) => id === 'local');
  const shipped = shippedModels.map(({ name }) => `local/${name}`)[0];
  const defaultModel = only ? shipped : (settings.routes[0]?.name ?? shipped);
  const facts = {
    url: gateway.url,
    adminUrl: gateway.adminUrl,
    ...(newKey === undefined ? {} : { key: newKey }),
    ...(newAdminToken === undefined ? {} : { adminToken: newAdminToken }),
    keyFromEnvironment: isSet(env, 'MODEL_GATEWAY_KEY'),
    adminTokenFromEnvironment: isSet(env, 'MODEL_GATEWAY_ADMIN_TOKEN'),
    providers,
    ...(defaultModel === undefined ? {} : { defaultModel }),
    dataDir: settings.dataDir,
    program: programName(env, process.cwd()),
    ...(settings.configFile === undefined ? {} : { configFile: settings.configFile }),
  };
  return banner(facts, screen);
}

const lingerMs = 500;

/** A timer that a package has left behind (the next try of a span) is nothing to wait for. */
function leave(code: number, resolve: (code: number) => void): void {
  setTimeout(() => process.exit(code), lingerMs).unref();
  resolve(code);
}

/** Resolves with the exit code once a signal has ended the gateway. */
function untilStopped(gateway: RunningGateway, context: CommandContext): Promise<number> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = (code: number, reason: string): void => {
      if (stopping) {
        gateway.cut();
        return;
      }
      stopping = true;
      tellOfWait(gateway, context);
      // Ctrl-C: a person at a terminal, without a load balancer to wait for.
      gateway.stop({ announced: reason === 'SIGTERM', reason }).then(
        () => leave(code, resolve),
        (error: unknown) => {
          const why = error instanceof Error ? error.message : String(error);
          process.stderr.write(`model-gateway: ${why}\n`);
          leave(1, resolve);
        },
      );
    };
    const toDo: { readonly [name in Signal]: () => void } = {
      SIGHUP: () => {
        if (!processSignals.hasLostTerminal) void gateway.reload();
        // Kernel and shell both send it: the second one must not cut the running calls.
        else if (!stopping) stop(0, 'terminal closed');
      },
      SIGUSR2: () => void gateway.renew(),
      SIGTERM: () => stop(0, 'SIGTERM'),
      SIGINT: () => stop(0, 'SIGINT'),
    };
    processSignals.handle((signal) => toDo[signal]());
    // After an unknown error the state is unknown: running calls may finish, then the process ends (F94).
    process.on('uncaughtException', (error) => {
      process.stderr.write(`model-gateway: ${error.stack ?? error.message}\n`);
      stop(1, 'error');
    });
  });
}

/** A stop that ends sooner than this needs no word. When the word is there, Ctrl-C counts as pressed again. */
const silentStopMs = samePressMs + 200;

/** Prints at a terminal what the stop waits for. */
function tellOfWait(gateway: RunningGateway, { errorScreen, stderr }: CommandContext): void {
  if (errorScreen?.columns === undefined) return;
  const tell = async (): Promise<void> => {
    const calls = await gateway.runningCalls();
    if (calls === 0) return;
    const still = calls === 1 ? '1 call still runs' : `${calls} calls still run`;
    const most = durationText(gateway.settings.drain.limitMs);
    stderr(`\nStopping: ${still} (at most ${most}). Press Ctrl-C again to end now.\n`);
  };
  setTimeout(() => void tell(), silentStopMs).unref();
}

/** As a variable, or as the file of one. */
function isSet(env: CommandContext['env'], name: string): boolean {
  return (env[name] ?? '') !== '' || (env[`${name}_FILE`] ?? '') !== '';
}
