/**
 * Part of the composition root: what commands can say of models while no gateway runs on the data
 * directory.
 */
import type { Settings } from './config/settings.ts';
import { LineLog } from './observe/log.ts';
import { systemClock } from './observe/clock.ts';
import { ModelLists } from './providers/model-list.ts';
import { Registry } from './providers/registry.ts';
import type { AdminModel, ModelProblem } from './server/admin.ts';
import type { PricedTarget } from './server/admin-prices.ts';
import { adminModel } from './start/models.ts';
import type { Environment } from './start/start.ts';
import { createLocalModels } from './start/local.ts';
import { priceBook, pricedTargets } from './start/prices.ts';
import { HttpClient } from './wire/http-client.ts';

const nobodyKnows = { engines: [], health: { describe: (): undefined => undefined } };
const silent = new LineLog({ fd: 2, level: 'silent', clock: systemClock });

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
  const book = priceBook(settings, silent);
  return withRegistry(settings, env, (registry) =>
    pricedTargets({ registry, book, clock: systemClock }, model),
  );
}

async function withRegistry<T>(
  settings: Settings,
  env: Environment,
  ask: (registry: Registry, problems: readonly ModelProblem[]) => Promise<T>,
): Promise<T> {
  const client = new HttpClient();
  const local = createLocalModels(settings, silent);
  const { connectMs } = settings.timeouts;
  const lists = new ModelLists({ client, clock: systemClock, log: silent, connectMs });
  const registry = new Registry({
    declared: settings.providers,
    routes: settings.routes,
    timeouts: settings.timeouts,
    env,
    lists,
    local: local.engines,
  });
  await local.refresh(settings.local);
  try {
    return await ask(registry, local.problems());
  } finally {
    await client.close();
    await local.engines.stop();
  }
}
