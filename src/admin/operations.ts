/** `/api/config`: the settings that hold, each with where it comes from. */
import type { IncomingHttpHeaders } from 'node:http';
import { isAbsolute } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { z } from 'zod';
import type { AuditLog } from '../access/audit.ts';
import type { OriginLine } from '../config/settings.ts';
import { type Format, contentTypes, formatFor } from '../observe/metrics/metrics.ts';
import { StoreError } from '../store/store-error.ts';
import type { Store } from '../store/store.ts';
import { type AdminAnswer, AdminError, type AdminRoute, errorAnswer, readInput } from './route.ts';

export interface EffectiveConfig {
  /** Of the settings that hold now; secrets are in it as what they are, never as their values. */
  readonly origins: readonly OriginLine[];
  readonly warnings: readonly string[];
  /** Absent = no file. */
  readonly configFile?: string | undefined;
}

export interface ConfigRouteDeps {
  config(): EffectiveConfig;
}

const answer = z.strictObject({
  config_file: z.string().nullable(),
  settings: z.array(
    z.strictObject({
      path: z.string().describe('Path as in the file: models.fast.order.'),
      value: z.string(),
      origin: z.string().describe('File and line, environment variable, flag, or default.'),
    }),
  ),
  warnings: z.array(z.string()),
});

export function configRoutes(deps: ConfigRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/config',
      about: { summary: 'Show the effective configuration and the origin of each value.', answer },
      run: () => {
        const { origins, warnings, configFile } = deps.config();
        const settings = origins.map(({ path, value, origin }) => ({ path, value, origin }));
        const body = { config_file: configFile ?? null, settings, warnings: [...warnings] };
        return { status: 200, body };
      },
    },
  ];
}

// `/api/backup`: a complete copy of the store while everything continues.

export interface BackupRouteDeps {
  readonly store: Store;
  readonly audit: AuditLog;
}

const body = z.strictObject({
  path: z
    .string('is the absolute path of a file')
    .max(4096, 'is too long')
    .refine(isAbsolute, 'must be absolute')
    .describe('Path on the machine of the gateway; the file must not exist.'),
});

export function backupRoutes({ store, audit }: BackupRouteDeps): readonly AdminRoute[] {
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
        // The entry comes first, so that every copy has an entry, which the copy itself contains.
        const { actor } = request;
        const subject = `file:${path}`;
        await audit.note({ actor, action: 'store.backup', subject });
        try {
          await store.backup(path).catch(rethrowBackupError);
        } catch (error) {
          await audit.note({ actor, action: 'store.backup_failed', subject });
          throw error;
        }
        return { status: 200, body: { path } };
      },
    },
  ];
}

/** A file that is there already, or cannot be written, is not a store that is away. */
function rethrowBackupError(error: unknown): never {
  if (error instanceof StoreError && error.kind === 'failed')
    throw new AdminError(409, error.message);
  throw error;
}

// `GET /metrics` of the admin listener: in the format and the encoding that the scraper requests.

export const metricsPath = '/metrics';

export interface MetricsSource {
  /** Whether this token, which is not the admin's, may read metrics. */
  opens(token: string): boolean;
  text(format: Format): Promise<string>;
}

const compress = promisify(gzip);
/** Smaller ones are sent as they are. */
const compressedFrom = 1024;

export async function metricsAnswer(
  source: MetricsSource,
  method: string,
  headers: IncomingHttpHeaders,
): Promise<AdminAnswer> {
  if (method !== 'GET' && method !== 'HEAD') {
    return { ...errorAnswer(405, 'This address takes GET only.'), allow: 'GET, HEAD' };
  }
  const format = formatFor(headers.accept);
  const plain = Buffer.from(await source.text(format));
  const gzipped = plain.length >= compressedFrom && takesGzip(headers['accept-encoding']);
  return {
    status: 200,
    body: {},
    bytes: {
      type: contentTypes[format],
      content: gzipped ? await compress(plain, { level: 1 }) : plain,
      ...(gzipped ? { encoding: 'gzip' } : {}),
    },
  };
}

function takesGzip(accepted: string | string[] | undefined): boolean {
  return String(accepted ?? '')
    .split(',')
    .map((each) => each.trim().toLowerCase().replaceAll(' ', ''))
    .some((each) => each === 'gzip' || (each.startsWith('gzip;q=') && Number(each.slice(7)) > 0));
}
