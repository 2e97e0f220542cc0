/** Part of the composition root: the folder of model files and the engines that run them. */
import type { AdminModel } from '../admin/handler.ts';
import type { LocalSettings, Settings } from '../config/settings.ts';
import type { Log } from '../core/runtime.ts';
import { openaiChatUpstream } from '../dialects/openai-chat/upstream.ts';
import {
  type DeadCredential,
  healthy,
  neverCalled,
  type TargetHealth,
  worstOf,
} from '../gateway/targets/health.ts';
import { localModelJson } from '../http/models.ts';
import type { JsonObject } from '../json/value.ts';
import {
  type FolderProblem,
  readModelFolder,
  shippedModels,
} from '../local-models/model-folder.ts';
import { systemClock } from '../observe/runtime.ts';
import {
  createLocalEngines,
  type LocalEngines,
  type LocalLimits,
  type LocalModelStatus,
} from '../providers/local.ts';
import type { ModelListing } from '../providers/registry.ts';

export interface LocalModels {
  readonly engines: LocalEngines;
  /** Files in the folder that cannot be used. */
  problems(): readonly FolderProblem[];
  /** Calls back each time that the folder was examined. */
  onLooked(tell: () => void): void;
  /** Examines the folder again; models that are run as before are left alone. Never rejects. */
  refresh(settings: LocalSettings): Promise<void>;
}

/** Holds the demonstration model until the folder is examined for the first time. */
export function createLocalModels(settings: Pick<Settings, 'local'>, log: Log): LocalModels {
  const engines = createLocalEngines({
    models: shippedModels,
    dialect: openaiChatUpstream,
    limits: limitsOf(settings.local),
    log,
    clock: systemClock,
  });
  let problems: readonly FolderProblem[] = [];
  let line = Promise.resolve();
  let looked = (): void => undefined;
  const look = async (local: LocalSettings): Promise<void> => {
    const contents = await readModelFolder(local.modelsDir, local.models);
    engines.replace(contents.models, limitsOf(local));
    const known = new Set(problems.map(textOf));
    for (const problem of contents.problems) {
      if (!known.has(textOf(problem))) log.warn('local_model_skipped', { ...problem });
    }
    problems = contents.problems;
    looked();
  };
  return {
    engines,
    problems: () => problems,
    onLooked: (tell) => {
      looked = tell;
    },
    refresh: (local) => {
      // One after the other: the last look must be the one that holds.
      line = line.then(() => look(local));
      return line;
    },
  };
}

function textOf({ subject, why }: FolderProblem): string {
  return `${subject} ${why}`;
}

function limitsOf({ idleUnloadMs, hangMs, maxLoaded, memoryBytes }: LocalSettings): LocalLimits {
  return {
    ...(idleUnloadMs === undefined ? {} : { idleUnloadMs }),
    ...(hangMs === undefined ? {} : { hangMs }),
    ...(maxLoaded === undefined ? {} : { maxLoaded }),
    ...(memoryBytes === undefined ? {} : { maxBytes: memoryBytes }),
  };
}

// Part of the composition root: models and their state, as the operator is shown them.

interface TargetStates {
  readonly engines: readonly LocalModelStatus[];
  readonly health: Pick<TargetHealth, 'describe'>;
}

/** A model as the admin API shows it. */
export function adminModel(
  { id, targets, credentials, facts, local, order, weights, abilities }: ModelListing,
  { engines, health }: TargetStates,
): AdminModel {
  return {
    id,
    targets: targets.map((target) => ({
      target,
      health:
        worstOf([
          health.describe(target),
          engineHealth(engines.find(({ name }) => `local/${name}` === target)),
        ]) ?? neverCalled,
      ...credentialStates(credentials?.[target], (name) => health.describe(target, name)),
      ...(weights?.[target] === undefined ? {} : { weight: weights[target] }),
    })),
    ...(order === undefined ? {} : { order }),
    ...(abilities === undefined ? {} : { abilities }),
    ...(facts?.maxInputTokens === undefined ? {} : { maxInputTokens: facts.maxInputTokens }),
    ...(facts?.maxOutputTokens === undefined ? {} : { maxOutputTokens: facts.maxOutputTokens }),
    ...(local === undefined ? {} : { local: localModelJson(local) }),
  };
}

/** Undefined where the next call starts the engine. */
function engineHealth(engine: LocalModelStatus | undefined): string | undefined {
  if (engine?.phase === 'failed') return `down: ${engine.reason ?? 'the engine failed'}`;
  return engine?.phase === 'ready' ? healthy : undefined;
}

function credentialStates(
  names: readonly string[] | undefined,
  describe: (name: string) => string | undefined,
): Pick<AdminModel['targets'][number], 'credentials'> {
  if (names === undefined) return {};
  return { credentials: names.map((name) => ({ name, health: describe(name) ?? neverCalled })) };
}

/** As webhooks send it. */
export function deadCredentialJson(dead: DeadCredential): JsonObject {
  return {
    provider: dead.provider,
    credential: dead.credential ?? null,
    error: dead.error,
    status: dead.status ?? null,
    retry_after_s: dead.retryAfterMs / 1000,
  };
}
