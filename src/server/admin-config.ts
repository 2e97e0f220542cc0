/** `/api/config`: the settings that hold, each with where it comes from (N3). */
import { z } from 'zod';
import type { OriginLine } from '../config/settings.ts';
import type { AdminRoute } from './admin-route.ts';

export interface EffectiveConfig {
  /** Of the settings that hold now; secrets stand in it as what they are, never as their values. */
  readonly origins: readonly OriginLine[];
  readonly warnings: readonly string[];
  /** Absent = no file. */
  readonly configFile?: string | undefined;
}

export interface ConfigRouteParts {
  config(): EffectiveConfig;
}

const answer = z.strictObject({
  config_file: z.string().nullable(),
  settings: z.array(
    z.strictObject({
      path: z.string().describe('As in the file: models.fast.order.'),
      value: z.string(),
      origin: z.string().describe('File and line, environment variable, flag, or default.'),
    }),
  ),
  warnings: z.array(z.string()),
});

export function configRoutes(parts: ConfigRouteParts): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/config',
      about: { summary: 'Show the settings that hold, and where each comes from.', answer },
      run: () => {
        const { origins, warnings, configFile } = parts.config();
        const settings = origins.map(({ path, value, origin }) => ({ path, value, origin }));
        const body = { config_file: configFile ?? null, settings, warnings: [...warnings] };
        return { status: 200, body };
      },
    },
  ];
}
