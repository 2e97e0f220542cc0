/** Part of the composition root: the commands that bring and remove model files. */
import { modelsCommand as makeModelsCommand } from '../../cli/commands/models.ts';
import { pullCommand as makePullCommand, type PullReport } from '../../cli/commands/pull.ts';
import type { Command } from '../../cli/command.ts';
import { loadSettings } from '../../config/load.ts';
import type { Settings } from '../../config/settings.ts';
import { isObject } from '../../json/value.ts';
import { knownModels, removeModel } from '../../local-models/model-folder.ts';
import { PullError } from '../../local-models/part-file.ts';
import { pull, type Pulled } from '../../local-models/pull.ts';
import { systemClock } from '../../observe/runtime.ts';
import { localModelJson } from '../../http/models.ts';
import { runningAdmin } from './find-gateway.ts';
import { knownProviders } from '../providers.ts';

export const pullCommand: Command = makePullCommand({
  known: knownModels,
  clock: systemClock,
  pull: async (options, events) => {
    const settings = await settingsHere();
    const request = {
      ...options,
      folder: settings.local.modelsDir,
      cwd: process.cwd(),
      env: process.env,
    };
    const pulled = await pull(request, events);
    return reportOf(pulled, await tellGateway(settings, pulled.model.name));
  },
});

export const modelsCommand: Command = makeModelsCommand({
  remove: async (name) => {
    const settings = await settingsHere();
    const declared = settings.local.models.find((each) => each.name === name);
    if (declared?.path !== undefined) {
      throw new PullError(
        `local/${name} is the file ${declared.path} by the config; take it out of there instead.`,
      );
    }
    const bytes = await removeModel(settings.local.modelsDir, name);
    await tellGateway(settings, name);
    return { id: `local/${name}`, bytes };
  },
});

function settingsHere(): Promise<Settings> {
  return loadSettings({
    flags: {},
    env: process.env,
    cwd: process.cwd(),
    knownProviders,
    secrets: 'optional',
  });
}

function reportOf({ model, record, already }: Pulled, gateway: PullReport['gateway']): PullReport {
  const warnings =
    model.hasChatTemplate === false
      ? ['The file has no chat template: it is not a chat model, and the engine cannot run it.']
      : [];
  return {
    id: `local/${model.name}`,
    path: model.path,
    sizeBytes: model.bytes,
    sha256: record.sha256,
    verified: record.verified,
    source: record.source,
    already,
    about: localModelJson(model),
    warnings,
    gateway,
  };
}

/** A running gateway examines its folder when its models are listed. */
async function tellGateway({ dataDir }: Settings, name: string): Promise<PullReport['gateway']> {
  try {
    const running = runningAdmin(dataDir, process.env);
    if (running === undefined) return 'not running';
    const { body } = await running.client.request('GET', '/api/models');
    const models = isObject(body) ? body['models'] : undefined;
    const knows =
      Array.isArray(models) &&
      models.some((model) => isObject(model) && model['id'] === `local/${name}`);
    return knows ? 'knows it' : 'not loaded';
  } catch {
    return 'not loaded';
  }
}
