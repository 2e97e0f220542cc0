/** Part of the composition root: the admin API for commands on a data directory on which no gateway runs. */
import type { AdminModel, ModelProblem } from '../../admin/handler.ts';
import type { PricedTarget } from '../../admin/providers.ts';
import type { AdminClient } from '../../cli/command.ts';
import { loadSettings } from '../../config/load.ts';
import type { Settings } from '../../config/settings.ts';
import type { Log } from '../../core/runtime.ts';
import { LineLog } from '../../observe/log.ts';
import { systemClock } from '../../observe/runtime.ts';
import { Credentials } from '../../providers/credentials/credentials.ts';
import { type ProviderCheck, askProvider, ModelLists } from '../../providers/model-list.ts';
import { Registry } from '../../providers/registry.ts';
import { HttpClient } from '../../wire/http-client.ts';
import { adminModel, createLocalModels } from '../local.ts';
import type { Environment } from '../options.ts';
import {
  knownProviders,
  listedWindows,
  pricedTargets,
  priceTable,
  providerDeps,
} from '../providers.ts';

const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export interface DirectoryStore {
  readonly kind: Settings['storage']['database'];
  readonly client: AdminClient;
  /** Answers what needs no data, and makes no directory. */
  readonly withoutData: AdminClient;
}

/** @throws ConfigError */
export async function storeOfDirectory(env: Environment, cwd: string): Promise<DirectoryStore> {
  const load = { flags: {}, env, cwd, knownProviders, secrets: 'optional' } as const;
  const settings = withoutUnresolved(await loadSettings(load));
  return {
    kind: settings.storage.database,
    client: clientOf(settings, env),
    withoutData: clientOf({ ...settings, storage: { database: 'memory' } }, env),
  };
}

/** Providers without their key, and the routes that lead to them, cannot be called from here. */
function withoutUnresolved(settings: Settings): Settings {
  const { providers, routes, unresolved } = settings;
  const names = (section: RegExp): ReadonlySet<string | undefined> =>
    new Set(unresolved.map(({ path }) => section.exec(path)?.[1]));
  const gone = { providers: names(/^providers\.([^.[]+)/), routes: names(/^models\.([^.[]+)/) };
  return {
    ...settings,
    providers: providers.filter(({ id }) => !gone.providers.has(id)),
    routes: routes.filter(
      ({ name, targets }) =>
        !gone.routes.has(name) && !targets.some(({ provider }) => gone.providers.has(provider)),
    ),
  };
}

function clientOf(settings: Settings, env: Environment): AdminClient {
  return {
    request: async (method, path, body) => {
      const { openAdminHandler } = await import('../access.ts');
      let problems: readonly ModelProblem[] = [];
      const gateway = {
        models: async () => {
          const found = await modelsWithoutGateway(settings, env);
          problems = [...unresolvedIn(settings), ...found.problems];
          return found.models;
        },
        modelProblems: () => problems,
        prices: (model: string | undefined) => pricesWithoutGateway(settings, env, model),
        defaultPrice: () => settings.prices.otherwise,
        config: () => settings,
        ...providerDeps({ settings, providers: [] }, env),
        status: () => ({ ready: false, why: noGateway }),
        reload: () => Promise.resolve({ applied: false, problems: [noGateway] }),
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

const noGateway = 'no gateway runs on this data directory';

/** Entries of the config that this shell cannot resolve. */
function unresolvedIn({ unresolved }: Settings): readonly ModelProblem[] {
  return unresolved.map(({ path, message }) => ({ subject: `${path}:`, why: message }));
}

// Part of the composition root: what commands can say of models while no gateway runs on the data
// directory.

const noRuntimeState = { engines: [], health: { describe: (): undefined => undefined } };
const silentLog = new LineLog({ fd: 2, level: 'silent', clock: systemClock });

/** The models that could be called, and the files of the model folder that could not. */
function modelsWithoutGateway(
  settings: Settings,
  env: Environment,
): Promise<{ readonly models: readonly AdminModel[]; readonly problems: readonly ModelProblem[] }> {
  return withRegistry(settings, env, async (registry, problems) => {
    const listings = await registry.list();
    return { models: listings.map((listing) => adminModel(listing, noRuntimeState)), problems };
  });
}

/** The price of a model, or of all that could be called. */
function pricesWithoutGateway(
  settings: Settings,
  env: Environment,
  model: string | undefined,
): Promise<readonly PricedTarget[]> {
  const prices = priceTable(settings, env, silentLog);
  return withRegistry(settings, env, (registry) =>
    pricedTargets({ registry, prices, clock: systemClock }, model),
  );
}

/** Asks each configured provider for its models, with the credential that calls have. */
export function askProviders(
  settings: Settings,
  env: Environment,
): Promise<readonly ProviderCheck[]> {
  return withRegistry(settings, env, async (registry, _problems, client) =>
    Promise.all(
      registry.configured.map((each) => askProvider(client, each, settings.timeouts.connectMs)),
    ),
  );
}

async function withRegistry<T>(
  settings: Settings,
  env: Environment,
  ask: (registry: Registry, problems: readonly ModelProblem[], client: HttpClient) => Promise<T>,
): Promise<T> {
  const client = new HttpClient();
  const local = createLocalModels(settings, silentLog);
  const { connectMs } = settings.timeouts;
  const lists = new ModelLists({ client, clock: systemClock, log: silentLog, connectMs });
  const registry = new Registry({
    declared: settings.providers,
    routes: settings.routes,
    timeouts: settings.timeouts,
    retry: settings.retry,
    env,
    lists,
    credentials: new Credentials(systemClock),
    local: local.engines,
    listedWindow: listedWindows(settings, env),
  });
  await local.refresh(settings.local);
  try {
    return await ask(registry, local.problems(), client);
  } finally {
    await client.close();
    await local.engines.stop();
  }
}
