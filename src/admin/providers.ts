/** `/api/providers` and `/api/downloads`: who answers calls, and which model files are on their way. */
import { z } from 'zod';
import type { Clock } from '../core/runtime.ts';
import { type AdminRoute, dateText, time } from './route.ts';

export interface AdminProvider {
  readonly id: string;
  /** Base address, without what a password could stand in. */
  readonly address: string;
  /** File and line, environment variable, `if it answers`, … */
  readonly origin: string;
  /** False for one that was looked for and is not there. */
  readonly there: boolean;
  /** Names, where there are several keys; never values. */
  readonly credentials: readonly string[];
}

interface AdminDownload {
  readonly name: string;
  readonly bytes: number;
  readonly totalBytes?: number;
  readonly writtenAt: number;
}

export interface ProviderRouteParts {
  readonly clock: Clock;
  providers(): readonly AdminProvider[];
  downloads(): Promise<readonly AdminDownload[]>;
}

const provider = z.strictObject({
  id: z.string(),
  address: z.string(),
  origin: z.string().describe('Where it is configured.'),
  there: z.boolean().describe('False: a local engine that does not answer.'),
  credentials: z
    .array(z.string())
    .describe('Names of the credentials, if there are several; never values.'),
});

const download = z.strictObject({
  name: z.string().describe('Id of the model after the download.'),
  bytes: z.number().int(),
  total_bytes: z.number().int().nullable().describe('Null: the server did not report it.'),
  written_at: time.describe('Time of the last received bytes.'),
  active: z.boolean().describe('Bytes arrived within the last fifteen seconds.'),
});

const restMs = 15_000;

export function providerRoutes(parts: ProviderRouteParts): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/providers',
      about: {
        summary: 'List the providers that are configured or discovered.',
        answer: z.strictObject({ providers: z.array(provider) }),
      },
      run: () => {
        const providers = parts.providers().map(({ id, address, origin, there, credentials }) => ({
          id,
          address,
          origin,
          there,
          credentials: [...credentials],
        }));
        return { status: 200, body: { providers } };
      },
    },
    {
      method: 'GET',
      path: '/api/downloads',
      about: {
        summary: 'List downloads of model files that run or were interrupted.',
        answer: z.strictObject({ downloads: z.array(download) }),
      },
      run: async () => {
        const now = parts.clock.wall();
        const downloads = (await parts.downloads()).map((each) => ({
          name: each.name,
          bytes: each.bytes,
          total_bytes: each.totalBytes ?? null,
          written_at: dateText(each.writtenAt),
          active: now - each.writtenAt < restMs,
        }));
        return { status: 200, body: { downloads } };
      },
    },
  ];
}
