/** `completion`: what a shell needs to complete commands, actions and flags. */
import { readArguments, UsageError, withUsage } from './arguments.ts';
import type { Command, CommandContext } from './command.ts';
import { gatewayFlags } from './gateway-flags.ts';

const help = `Usage: model-gateway completion bash|zsh|fish

Prints the completion of commands, actions and flags for a shell. Load it with

  bash   source <(model-gateway completion bash)    in ~/.bashrc
  zsh    source <(model-gateway completion zsh)     in ~/.zshrc, after compinit
  fish   model-gateway completion fish | source     in config.fish
`;

/** @param commands all others */
export function completionCommand(commands: readonly Command[]): Command {
  const command: Command = {
    name: 'completion',
    summary: 'print the completion for bash, zsh or fish',
    help,
    choices: ['bash', 'zsh', 'fish'],
    run: (args, context) =>
      withUsage(context, 'completion', () => run(args, context, [...commands, command])),
  };
  return command;
}

async function run(
  args: readonly string[],
  context: CommandContext,
  commands: readonly Command[],
): Promise<number> {
  const given = readArguments(args, { positionals: ['SHELL'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const [shell = ''] = given.positionals;
  const scripts = new Map([
    ['bash', bash],
    ['zsh', zsh],
    ['fish', fish],
  ]);
  const script = scripts.get(shell);
  if (script === undefined) throw new UsageError(`${shell}: give bash, zsh or fish.`);
  context.stdout(script(commands.map(wordsOf)));
  return 0;
}

interface CommandWords {
  readonly name: string;
  readonly summary: string;
  readonly actions: readonly string[];
  readonly flags: readonly string[];
}

/** Flags are those that the help names, which is what a person can know, too, and those that every command takes. */
function wordsOf({
  name,
  summary,
  help: text,
  actions = new Map(),
  choices = [],
}: Command): CommandWords {
  const helps = [text, ...[...actions.values()].map((action) => action.help)];
  const flags = helps.flatMap((each) =>
    [...each.matchAll(/(?:model-gateway ([a-z]+) )?(--[a-z][a-z0-9-]+)/g)]
      // A help may refer to a flag of another command.
      .filter(([, other]) => other === undefined || other === name)
      .map(([, , flag = '']) => flag),
  );
  return {
    name,
    summary,
    actions: [...actions.keys(), ...choices],
    flags: [...new Set([...flags, ...gatewayFlags, '--help'])].sort(),
  };
}

function cases(words: readonly CommandWords[]): string {
  return words
    .map(
      ({ name, actions, flags }) => `    ${name}) words="${[...actions, ...flags].join(' ')}" ;;`,
    )
    .join('\n');
}

function bash(words: readonly CommandWords[]): string {
  return `_model_gateway() {
  local words="${words.map(({ name }) => name).join(' ')}"
  if [ "$COMP_CWORD" -gt 1 ]; then case "\${COMP_WORDS[1]}" in
${cases(words)}
    *) words="" ;;
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [ "\${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _model_gateway model-gateway
`;
}

function zsh(words: readonly CommandWords[]): string {
  return `#compdef model-gateway
_model_gateway() {
  local words_of="${words.map(({ name }) => name).join(' ')}"
  if (( CURRENT > 2 )); then case "$words[2]" in
${cases(words).replaceAll(') words=', ') words_of=')}
    *) words_of="" ;;
  esac; fi
  compadd -- \${=words_of}
  (( CURRENT > 2 )) && _files
}
compdef _model_gateway model-gateway
`;
}

function fish(words: readonly CommandWords[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "\\\\'")}'`;
  const lines = words.flatMap(({ name, summary, actions, flags }) => [
    `complete -c model-gateway -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
    ...actions.map(
      (action) => `complete -c model-gateway -n '__fish_seen_subcommand_from ${name}' -a ${action}`,
    ),
    ...flags.map(
      (flag) =>
        `complete -c model-gateway -n '__fish_seen_subcommand_from ${name}' -l ${flag.slice(2)}`,
    ),
  ]);
  return `${lines.join('\n')}\n`;
}
