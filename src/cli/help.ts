/** `help`: the list of commands, or the help of one. */
import { nearest } from '../core/nearest.ts';
import type { Command } from './command.ts';
import { columns } from './table.ts';

/** The text of `help` and of `--help` without a command. */
function overview(commands: readonly Command[]): string {
  const rows = commands.map(({ name, summary }) => [`  ${name}`, summary]);
  return `Chat completions, messages and responses in front of any model.

Usage: model-gateway COMMAND [options]

${columns(rows)}
Every command has --help. Commands find the gateway by its data directory: give
them the --data-dir or --config that start got. On another machine set
--admin-listen https://HOST:PORT and MODEL_GATEWAY_ADMIN_TOKEN. They need no
secret of a provider.
`;
}

/** What to say of a command that does not exist. */
export function unknownCommand(name: string, commands: readonly Command[]): string {
  const meant = nearest(
    name,
    commands.map((command) => command.name),
  );
  const hint = meant === undefined ? '' : ` Did you mean "${meant}"?`;
  return `${name}: unknown command.${hint} "model-gateway help" lists them.\n`;
}

/** @param commands all commands, `help` itself excluded. */
export function helpCommand(commands: readonly Command[]): Command {
  const command: Command = {
    name: 'help',
    summary: 'list the commands, or show the help of one',
    help: 'Usage: model-gateway help [COMMAND]\n\nLists the commands, or prints the help of one.\n',
    choices: commands.map(({ name }) => name),
    run: (args, context) => {
      const name = args.find((arg) => !arg.startsWith('-'));
      const all = [...commands, command];
      const wanted = all.find((each) => each.name === name);
      if (name !== undefined && wanted === undefined) {
        context.stderr(unknownCommand(name, all));
        return Promise.resolve(2);
      }
      context.stdout(wanted?.help ?? overview(all));
      return Promise.resolve(0);
    },
  };
  return command;
}
