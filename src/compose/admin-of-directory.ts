/**
 * Part of the composition root: how a command reaches the admin API. Through the gateway that runs on
 * the data directory, else on the directory's store itself, with the same powers and answers.
 */
import type { AdminModel, ModelProblem } from '../admin/handler.ts';
import type { PricedTarget } from '../admin/prices.ts';
import { readRunFile } from '../admin/operations.ts';
import { httpAdminClient } from '../cli/admin-client.ts';
import type { AdminClient } from '../cli/command.ts';
import { loadSettings } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import type { Log } from '../core/runtime.ts';
import { isObject } from '../json/value.ts';
import { LineLog } from '../observe/log.ts';
import { systemClock } from '../observe/runtime.ts';
import { Credentials } from '../providers/credentials/credentials.ts';
import { ModelLists } from '../providers/model-list.ts';
import { Registry } from '../providers/registry.ts';
import { HttpClient } from '../wire/http-client.ts';
import { adminModel, createLocalModels } from './local.ts';
import { listedWindows, pricedTargets, priceTable, providerParts } from './providers.ts';
import { type Environment, knownProviders } from './start.ts';

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
      const { openAdminHandler } = await import('./access.ts');
      const { modelsWithoutGateway, pricesWithoutGateway } =
        await import('./admin-of-directory.ts');
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

// Part of the composition root: what commands can say of models while no gateway runs on the data
// directory.

const nobodyKnows = { engines: [], health: { describe: (): undefined => undefined } };
const silentLog = new LineLog({ fd: 2, level: 'silent', clock: systemClock });

/** What could be called, and what in the folder of models could not. */
export function modelsWithoutGateway(
  settings: Settings,
  env: Environment,
): Promise<{ readonly models: readonly AdminModel[]; readonly problems: readonly ModelProblem[] }> {
  return withRegistry(settings, env, async (registry, problems) => {
    const listings = await registry.list();
    return { models: listings.map((listing) => adminModel(listing, nobodyKnows)), problems };
  });
}

/** What a model, or all that could be called, would cost. */
export function pricesWithoutGateway(
  settings: Settings,
  env: Environment,
  model: string | undefined,
): Promise<readonly PricedTarget[]> {
  const prices = priceTable(settings, silentLog);
  return withRegistry(settings, env, (registry) =>
    pricedTargets({ registry, prices, clock: systemClock }, model),
  );
}

async function withRegistry<T>(
  settings: Settings,
  env: Environment,
  ask: (registry: Registry, problems: readonly ModelProblem[]) => Promise<T>,
): Promise<T> {
  const client = new HttpClient();
  const local = createLocalModels(settings, silentLog);
  const { connectMs } = settings.timeouts;
  const lists = new ModelLists({ client, clock: systemClock, log: silentLog, connectMs });
  const registry = new Registry({
    declared: settings.providers,
    routes: settings.routes,
    timeouts: settings.timeouts,
    env,
    lists,
    credentials: new Credentials(systemClock),
    local: local.engines,
    listedWindow: listedWindows(settings),
  });
  await local.refresh(settings.local);
  try {
    return await ask(registry, local.problems());
  } finally {
    await client.close();
    await local.engines.stop();
  }
}
