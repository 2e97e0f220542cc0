/** Reads a command's arguments, and turns what is wrong with them into exit code 2. */
import { parseArgs } from 'node:util';
import { FlagError } from '../config/base.ts';
import { nearest } from '../core/nearest.ts';
import type { CommandContext } from './command.ts';
import { printableLines } from './table.ts';

/** A mistake in the arguments; the message names the flag. Exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

export interface ArgumentForm {
  /** Flags with a value, without the dashes. */
  readonly values?: readonly string[];
  /** Flags without one; `help` is always known. */
  readonly switches?: readonly string[];
  /** Flags of the documented interface that this version does not have. */
  readonly notYet?: readonly string[];
  /** Names of the arguments that must be given, in order, e.g. `ID`. */
  readonly positionals?: readonly string[];
  /** Names of the arguments that may follow them. */
  readonly optional?: readonly string[];
}

export interface Arguments {
  /** The value of a flag; undefined when it was not given. */
  value(name: string): string | undefined;
  /** Whether a switch was given. */
  has(name: string): boolean;
  readonly positionals: readonly string[];
}

/**
 * Reads `--flag value`, `--flag=value`, switches and positional arguments.
 * @throws UsageError for anything that the form does not have. After `--help` nothing is missed.
 */
export function readArguments(args: readonly string[], form: ArgumentForm): Arguments {
  const { values = [], switches = [], notYet = [] } = form;
  const read = parse(args, {
    values: [...values, ...notYet],
    switches: [...switches, 'help'],
  });
  const later = notYet.find((name) => read.values.has(name));
  if (later !== undefined) throw new UsageError(`--${later} is not available yet.`);
  for (const [name, given] of read.values) {
    if (given.length > 1) throw new UsageError(`--${name} is given more than once.`);
    if (given[0]?.trim() === '') throw new UsageError(`--${name} has no value.`);
  }
  if (!read.switches.has('help')) requirePositionals(read.positionals, form);
  return {
    value: (name) => read.values.get(name)?.[0],
    has: (name) => read.switches.has(name),
    positionals: read.positionals,
  };
}

function requirePositionals(
  given: readonly string[],
  { positionals: wanted = [], optional = [] }: ArgumentForm,
): void {
  const missing = wanted[given.length];
  if (missing !== undefined) throw new UsageError(`${missing} is missing.`);
  const extra = given[wanted.length + optional.length];
  if (extra !== undefined) throw new UsageError(`${extra}: unexpected argument.`);
}

interface Read {
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly switches: ReadonlySet<string>;
  readonly positionals: readonly string[];
}

function parse(
  args: readonly string[],
  names: { readonly values: readonly string[]; readonly switches: readonly string[] },
): Read {
  const options = Object.fromEntries([
    ...names.values.map((name) => [name, { type: 'string', multiple: true } as const] as const),
    ...names.switches.map((name) => [name, { type: 'boolean' } as const] as const),
  ]);
  // Not strict: Node's own refusals are long and advise things that no command here takes.
  const { tokens } = parseArgs({
    args: [...args],
    options: { ...options, help: { type: 'boolean', short: 'h' } },
    strict: false,
    tokens: true,
  });
  const values = new Map<string, string[]>();
  const switches = new Set<string>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    if (names.switches.includes(name)) {
      if (value !== undefined) throw new UsageError(`${rawName} takes no value.`);
      switches.add(name);
    } else if (names.values.includes(name)) {
      if (value === undefined) throw new UsageError(`${rawName} needs a value.`);
      values.set(name, [...(values.get(name) ?? []), value]);
    } else {
      const meant = nearest(name, [...names.values, ...names.switches]);
      const hint = meant === undefined ? '' : ` Did you mean --${meant}?`;
      throw new UsageError(`${rawName} is not a flag of this command.${hint}`);
    }
  }
  return { values, switches, positionals };
}

/** Runs a command; a UsageError or FlagError is printed with the command for its help, exit code 2. */
export async function withUsage(
  context: CommandContext,
  command: string,
  run: () => Promise<number>,
): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof FlagError)) throw error;
    context.stderr(usageText(error, command));
    return 2;
  }
}

/** What is wrong with the arguments of a command, and where its help is. */
export function usageText(error: Error, command: string): string {
  return `${printableLines(error.message)}\nSee "model-gateway ${command} --help".\n`;
}
