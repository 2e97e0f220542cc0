/** `/api/backup`: a complete copy of the store while everything goes on. */
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import type { AuditLog } from '../access/audit.ts';
import { StoreError } from '../store/store-error.ts';
import type { Store } from '../store/store.ts';
import { AdminError, readInput, type AdminRoute } from './admin-route.ts';

export interface BackupRouteParts {
  readonly store: Store;
  readonly audit: AuditLog;
}

const body = z.strictObject({
  path: z
    .string('is the absolute path of a file')
    .max(4096, 'is too long')
    .refine(isAbsolute, 'must be absolute')
    .describe('Where no file is yet, on the machine of the gateway.'),
});

export function backupRoutes({ store, audit }: BackupRouteParts): readonly AdminRoute[] {
  return [
    {
      method: 'POST',
      path: '/api/backup',
      about: {
        summary: 'Write a complete copy of the SQLite store to a file.',
        body,
        answer: z.strictObject({ path: z.string() }),
      },
      run: async (request) => {
        const { path } = readInput(body, request.body);
        // First the entry: no copy exists that no entry tells of, and the copy has it itself.
        const { actor } = request;
        const subject = `file:${path}`;
        await audit.note({ actor, action: 'store.backup', subject });
        try {
          await store.backup(path).catch(told);
        } catch (error) {
          await audit.note({ actor, action: 'store.backup_failed', subject });
          throw error;
        }
        return { status: 200, body: { path } };
      },
    },
  ];
}

/** A file that is there already, or cannot be written, is no store that is away. */
function told(error: unknown): never {
  if (error instanceof StoreError && error.kind === 'failed')
    throw new AdminError(409, error.message);
  throw error;
}
