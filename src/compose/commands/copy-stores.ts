/** Part of the composition root: the ends of a copy, by what a person calls them. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { copyCommand as makeCopyCommand, type CopyResult } from '../../cli/commands/copy.ts';
import type { Command } from '../../cli/command.ts';
import { readPostgres } from '../../config/storage.ts';
import type { ServerAddress } from '../../core/addresses.ts';
import { copyStore } from '../../store/copy/copy-store.ts';
import { PostgresSide } from '../../store/copy/postgres-side.ts';
import { SqliteSide } from '../../store/copy/sqlite-side.ts';

export function copyCommand(cwd: string): Command {
  return makeCopyCommand({ copy: (from, to, onTable) => copyStores({ from, to, cwd, onTable }) });
}

export interface CopyStoresInput {
  /** A data directory or the address of a PostgreSQL database, as `to`. */
  readonly from: string;
  readonly to: string;
  /** Where relative directories start. */
  readonly cwd: string;
  onTable?(name: string, rows: number): void;
}

/** @throws StoreError; Error when an address cannot be read */
export async function copyStores({
  from,
  to,
  cwd,
  onTable = () => undefined,
}: CopyStoresInput): Promise<CopyResult> {
  const [there, here] = [addressOf(from, cwd), addressOf(to, cwd)];
  if (resolve(cwd, from) === resolve(cwd, to)) throw new Error('FROM and TO are the same store.');
  const source =
    there === undefined ? SqliteSide.source(resolve(cwd, from)) : await PostgresSide.source(there);
  try {
    const target =
      here === undefined ? SqliteSide.target(resolve(cwd, to)) : await PostgresSide.target(here);
    try {
      // Their key is in the directory, and gateways on a shared store have none but that of the environment.
      const leavesContents =
        there === undefined &&
        here !== undefined &&
        existsSync(join(resolve(cwd, from), 'content.key'));
      const without = new Set(leavesContents ? ['kept_contents'] : []);
      const tables = await copyStore({ from: source, to: target, onTable, without });
      const remarks = leavesContents ? [contentsRemark] : [];
      return { from: source.shown, to: target.shown, tables, remarks };
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

const contentsRemark =
  'Stored contents of calls stay behind: content.key of the directory seals them, and gateways on PostgreSQL use ' +
  'MODEL_GATEWAY_CONTENT_KEY.';

/** Undefined for a directory. @throws Error that does not quote the address */
function addressOf(text: string, cwd: string): ServerAddress | undefined {
  if (!/^postgres(ql)?:\/\//.test(text)) return undefined;
  return readPostgres(text, {
    directory: cwd,
    complain: (message) => {
      throw new Error(`The address of the database ${message}.`);
    },
  });
}
