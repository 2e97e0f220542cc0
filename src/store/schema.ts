/** The version of the tables, which each database carries. */
import { StoreError } from './store-error.ts';

/**
 * Rises with every released change of a table, of either engine; a release that raises it migrates. Versions below 20
 * are those of development before the first release.
 */
export const schemaVersion = 30;

/** Stored instead of the version until a copy into the database has ended. */
export const unfinishedCopy = 0;

/**
 * @param version of the database
 * @param shown its name in messages
 * @throws StoreError `newer_schema`, `older_schema`
 */
export function requireSchemaVersion(version: number, shown: string): void {
  if (version === unfinishedCopy) {
    throw new StoreError(
      'older_schema',
      `${shown} holds a copy that has not ended. Run "model-gateway copy" again; it goes on where it was.`,
    );
  }
  if (version > schemaVersion) {
    throw new StoreError(
      'newer_schema',
      `${shown} has schema ${version}, written by a newer version; this one knows schema ` +
        `${schemaVersion}. Start the newer version, or restore a backup from before the upgrade.`,
    );
  }
  if (version < schemaVersion) {
    throw new StoreError(
      'older_schema',
      `${shown} has schema ${version}, of a development version before the first release; it cannot be ` +
        'brought to this one. It is left as it is: start the version that wrote it, or move it away to begin ' +
        'with an empty store and no keys.',
    );
  }
}
