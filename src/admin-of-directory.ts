/**
 * Part of the composition root: how a command reaches the admin API. Through the gateway that runs on
 * the data directory, else on the directory's store itself, with the same powers and answers.
 */
import type { AdminClient } from './cli/command.ts';
import { httpAdminClient } from './cli/admin-client.ts';
import { loadSettings } from './config/load.ts';
import { providerParts } from './start/providers.ts';
import { isObject } from './core/json.ts';
import type { Log } from './core/runtime.ts';
import type { ModelProblem } from './server/admin.ts';
import { readRunFile } from './server/run-file.ts';
import { knownProviders, type Environment } from './start/start.ts';

/** Where the gateway that runs on the data directory listens; undefined when none does. */
export async function runningUrl(env: Environment, cwd: string): Promise<string | undefined> {
  try {
    const { dataDir } = await loadSettings({ flags: {}, env, cwd, knownProviders });
    const running = readRunFile(dataDir);
    if (running === undefined) return undefined;
    const client = httpAdminClient({ address: running.admin, token: running.control });
    const { body } = await client.request('GET', '/api/status');
    const url = isObject(body) ? body['url'] : undefined;
    return typeof url === 'string'
      ? url.replace(/^(https?:\/\/)(0\.0\.0\.0|\[::\])/, '$1127.0.0.1')
      : undefined;
  } catch {
    // A broken config or a gateway that just ended: the customary address is a good answer then.
    return undefined;
  }
}

const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** @throws ConfigError, or StoreError when the directory cannot be opened. */
export async function adminOfDirectory(env: Environment, cwd: string): Promise<AdminClient> {
  const settings = await loadSettings({ flags: {}, env, cwd, knownProviders });
  const running = readRunFile(settings.dataDir);
  if (running !== undefined) {
    return httpAdminClient({ address: running.admin, token: running.control });
  }
  return {
    request: async (method, path, body) => {
      const { openAdminHandler } = await import('./start/access.ts');
      const { modelsWithoutGateway, pricesWithoutGateway } = await import('./without-gateway.ts');
      let problems: readonly ModelProblem[] = [];
      const gateway = {
        models: async () => {
          const found = await modelsWithoutGateway(settings, env);
          problems = found.problems;
          return found.models;
        },
        modelProblems: () => problems,
        prices: (model: string | undefined) => pricesWithoutGateway(settings, env, model),
        defaultPrice: () => settings.prices.otherwise,
        config: () => settings,
        ...providerParts({ settings, providers: [] }, env),
        status: () => ({ ready: false, why: 'no gateway runs on this data directory' }),
        reload: () =>
          Promise.resolve({ applied: false, problems: ['no gateway runs on this data directory'] }),
      };
      const { handle, close } = await openAdminHandler({ settings, env, log: silent, gateway });
      try {
        return await handle(method, path, { body });
      } finally {
        await close();
      }
    },
  };
}
