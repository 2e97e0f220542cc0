/** What every command of the program is. */
import { nearest } from '../core/nearest.ts';
import type { Json } from '../json/value.ts';
import type { Screen } from './screen.ts';
import {
  readArguments,
  UsageError,
  withUsage,
  type ArgumentForm,
  type Arguments,
} from './arguments.ts';

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What `--help` prints; ends with a line end. */
  readonly help: string;
  /** By name, where the first argument is an action. */
  readonly actions?: ReadonlyMap<string, { readonly help: string }>;
  /** Other words that the first argument may be, for completion. */
  readonly choices?: readonly string[];
  /** The exit code. Errors go to stderr; a thrown error is printed by the caller, exit 1. */
  run(args: readonly string[], context: CommandContext): Promise<number>;
}

export interface CommandContext {
  stdout(text: string): void;
  stderr(text: string): void;
  /** Width of the terminal that stderr is; absent = it is none. */
  readonly terminalColumns?: number;
  /** What stdout is; absent = no terminal. */
  readonly screen?: Screen;
  /** The same of stderr. */
  readonly errorScreen?: Screen;
  readonly env: { readonly [name: string]: string | undefined };
  /** The admin API of the gateway that runs on the data directory, or of the directory itself. */
  admin(): Promise<AdminClient>;
  /** Where the data plane of the gateway on the data directory listens; undefined when none runs. */
  gatewayUrl(): Promise<string | undefined>;
}

export interface AdminReply {
  readonly status: number;
  /** The parsed answer; undefined when it was not JSON. */
  readonly body: Json | undefined;
}

/** The gateway, or the store, that a command acts on. */
export interface FoundGateway {
  /** Which one, for people: `Gateway http://127.0.0.1:8687, data in /srv/gw`. */
  readonly from: string;
  readonly client: AdminClient;
}

export interface AdminClient {
  /** The path includes the query string. Rejects only when no answer could be had. */
  request(method: string, path: string, body?: Json): Promise<AdminReply>;
}

// Commands with actions, as `keys create`: which action, its arguments, its help.

export interface Action {
  readonly help: string;
  readonly form: ArgumentForm;
  /** The exit code; 0 when there is none. */
  run(given: Arguments, context: CommandContext): Promise<number | void>;
}

export type Actions = ReadonlyMap<string, Action>;

export function commandOf(
  about: Pick<Command, 'name' | 'summary' | 'help'>,
  actions: Actions,
): Command {
  const { name, help } = about;
  const names = [...actions.keys()];
  const choice = `${names.slice(0, -1).join(', ')} or ${names.at(-1) ?? ''}`;
  return {
    ...about,
    actions,
    run: ([chosen, ...rest], context) => {
      const action = chosen === undefined ? undefined : actions.get(chosen);
      if (action !== undefined) {
        return withUsage(context, `${name} ${chosen}`, () => runAction(action, rest, context));
      }
      return withUsage(context, name, async () => {
        if (chosen === '--help' || chosen === '-h') {
          context.stdout(help);
          return 0;
        }
        if (chosen === undefined) throw new UsageError(`The action is missing: give ${choice}.`);
        const meant = nearest(chosen, names);
        const hint = meant === undefined ? ` Give ${choice}.` : ` Did you mean "${meant}"?`;
        throw new UsageError(`${chosen}: unknown ${name} command.${hint}`);
      });
    },
  };
}

async function runAction(
  action: Action,
  args: readonly string[],
  context: CommandContext,
): Promise<number> {
  const given = readArguments(args, action.form);
  if (!given.has('help')) return (await action.run(given, context)) ?? 0;
  context.stdout(action.help);
  return 0;
}
