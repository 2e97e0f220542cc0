/** `backup`: a complete copy of the store while the gateway runs. */
import { resolve } from 'node:path';
import { readArguments, UsageError, withUsage } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { cell, requireOk } from '../reply.ts';

const help = `Usage: model-gateway backup FILE

Writes a complete copy of keys, ledger and audit log (SQLite) to FILE, which
must not exist. The gateway keeps running. To restore the copy: stop the
gateway, move gateway.db, gateway.db-wal and gateway.db-shm out of the data
directory, and put the copy there as gateway.db.
`;

export interface BackupOptions {
  /** Where a relative FILE starts. */
  readonly cwd: string;
}

export function backupCommand(options: BackupOptions): Command {
  return {
    name: 'backup',
    summary: 'copy keys, ledger and audit log to a file while the gateway runs',
    help,
    run: (args, context) => withUsage(context, 'backup', () => run(args, context, options)),
  };
}

async function run(
  args: readonly string[],
  context: CommandContext,
  { cwd }: BackupOptions,
): Promise<number> {
  const given = readArguments(args, { positionals: ['FILE'] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const [file] = given.positionals;
  if (file === undefined) throw new UsageError('FILE is missing.');
  const admin = await context.admin();
  const done = requireOk(await admin.request('POST', '/api/backup', { path: resolve(cwd, file) }));
  context.stdout(`The copy is complete: ${cell(done['path'])}\n`);
  return 0;
}
