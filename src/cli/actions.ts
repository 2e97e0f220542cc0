/** Commands with actions, as `keys create`: which action, its arguments, its help. */
import {
  readArguments,
  UsageError,
  withUsage,
  type ArgumentForm,
  type Arguments,
} from './arguments.ts';
import type { Command, CommandContext } from './command.ts';

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
        throw new UsageError(`${chosen}: unknown ${name} command.`);
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
