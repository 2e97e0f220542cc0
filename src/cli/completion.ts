/** `completion`: what a shell needs to complete commands, actions and flags. */
import { readArguments, UsageError, withUsage } from './arguments.ts';
import type { Command, CommandContext } from './command.ts';
import { gatewayFlags } from './gateway-flags.ts';
import { helpCommand } from './help.ts';

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
      withUsage(context, 'completion', () => {
        const all = [...commands, command];
        return run(args, context, [...all, helpCommand(all)]);
      }),
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

/** A shell's cases: actions for a word without a dash, flags for one with it. */
function cases(words: readonly CommandWords[], variable: string): string {
  return words
    .map(
      ({ name, actions, flags }) =>
        `    ${name}) ${variable}="${actions.join(' ')}"; flags="${flags.join(' ')}" ;;`,
    )
    .join('\n');
}

function bash(words: readonly CommandWords[]): string {
  return `_model_gateway() {
  local words="${words.map(({ name }) => name).join(' ')}" flags="--help" word="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -gt 1 ]; then case "\${COMP_WORDS[1]}" in
${cases(words, 'words')}
    *) words=""; flags="" ;;
  esac; fi
  [ "$COMP_CWORD" -gt 2 ] && words=""
  case "$word" in -*) words="$flags" ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [ "\${#COMPREPLY[@]}" -eq 0 ] && [ "$COMP_CWORD" -gt 1 ]; then
    compopt -o filenames 2>/dev/null
    local IFS=$'\\n'
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -F _model_gateway model-gateway
`;
}

function zsh(words: readonly CommandWords[]): string {
  return `#compdef model-gateway
_model_gateway() {
  local actions="${words.map(({ name }) => name).join(' ')}" flags="--help"
  if (( CURRENT > 2 )); then case "$words[2]" in
${cases(words, 'actions')}
    *) actions=""; flags="" ;;
  esac; fi
  (( CURRENT > 3 )) && actions=""
  if [[ "$words[CURRENT]" == -* ]]; then compadd -- \${=flags}
  elif [[ -n "$actions" ]]; then compadd -- \${=actions}
  else _files
  fi
}
compdef _model_gateway model-gateway
`;
}

function fish(words: readonly CommandWords[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "\\'")}'`;
  const lines = words.flatMap(({ name, summary, actions, flags }) => {
    // The second word: later ones are names, files and values.
    const first = `-n '__fish_seen_subcommand_from ${name}; and test (count (commandline -opc)) -eq 2'`;
    const always = `-n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c model-gateway -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
      ...(actions.length === 0
        ? []
        : [`complete -c model-gateway ${first} -f -a '${actions.join(' ')}'`]),
      ...flags.map((flag) => `complete -c model-gateway ${always} -l ${flag.slice(2)}`),
    ];
  });
  return `${lines.join('\n')}\n`;
}
