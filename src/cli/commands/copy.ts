/** `copy`: a whole store from SQLite to PostgreSQL or back, while no gateway runs on either. */
import { readArguments, UsageError, withUsage } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { columns } from '../table.ts';

const help = `Usage: model-gateway copy FROM TO [--json]

Copies keys, policies, ledger, sums, budgets, audit log and everything sealed
from one store to another, and compares counts and sums of every column. Every
gateway on either must be stopped. If it is interrupted, run it again: it goes
on where it was. A target that has data of its own is refused.

  FROM, TO   a data directory (SQLite), or postgres://USER:PASSWORD@HOST/NAME;
             '\${NAME}' takes the address from the environment
`;

export interface CopiedRows {
  readonly name: string;
  readonly rows: number;
  /** How many counts and sums were equal. */
  readonly compared: number;
}

export interface CopyResult {
  /** Without user and password. */
  readonly from: string;
  readonly to: string;
  readonly tables: readonly CopiedRows[];
  /** What a person must know. */
  readonly remarks: readonly string[];
}

export interface CopyParts {
  /** @throws StoreError */
  copy(
    from: string,
    to: string,
    onTable: (name: string, rows: number) => void,
  ): Promise<CopyResult>;
}

export function copyCommand(parts: CopyParts): Command {
  return {
    name: 'copy',
    summary: 'copy a stopped store to another, SQLite or PostgreSQL',
    help,
    run: (args, context) => withUsage(context, 'copy', () => run(args, context, parts)),
  };
}

async function run(
  args: readonly string[],
  context: CommandContext,
  { copy }: CopyParts,
): Promise<number> {
  const given = readArguments(args, { switches: ['json'], positionals: ['FROM', 'TO'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const [from = '', to = ''] = given.positionals.map((text) => resolved(text, context.env));
  const isJson = given.has('json');
  const result = await copy(from, to, (name, rows) => {
    if (!isJson && rows > 0) context.stderr(`${name}: ${rows} rows written\n`);
  });
  if (isJson) context.stdout(`${JSON.stringify(result, null, 2)}\n`);
  else {
    const rows = result.tables.map(({ name, rows: count, compared }) => [
      name,
      String(count),
      `${compared} counts and sums equal`,
    ]);
    context.stdout(columns([['table', 'rows', 'compared'], ...rows], { head: true }));
    for (const remark of result.remarks) context.stdout(`${remark}\n`);
    context.stdout(`\nCopied ${result.from} to ${result.to}. The source is unchanged.\n`);
  }
  return 0;
}

function resolved(text: string, env: CommandContext['env']): string {
  const name = /^\$\{(\w+)\}$/.exec(text)?.[1];
  if (name === undefined) return text;
  const value = env[name] ?? '';
  if (value === '') throw new UsageError(`The environment variable ${name} is not set.`);
  return value;
}
