/** Part of the composition root: the folder of model files, and the engines that run what lies in it. */
import { join } from 'node:path';
import type { LocalSettings, Settings } from '../config/settings.ts';
import type { Log } from '../core/runtime.ts';
import { openaiChatUpstream } from '../dialects/openai-chat/upstream.ts';
import { readModelFolder, type FolderProblem } from '../local-models/model-folder.ts';
import { tinyModel } from '../local-models/tiny.ts';
import { systemClock } from '../observe/clock.ts';
import { createLocalEngines, type LocalEngines, type LocalLimits } from '../providers/local.ts';

export interface LocalModels {
  readonly engines: LocalEngines;
  /** What lies in the folder and cannot be called. */
  problems(): readonly FolderProblem[];
  /** Calls back each time that the folder was looked at. */
  onLooked(tell: () => void): void;
  /** Looks at the folder again; models that are run as before are left alone. Never rejects. */
  refresh(settings: LocalSettings): Promise<void>;
}

/** Holds the demonstration model until the folder is looked at for the first time. */
export function createLocalModels(
  settings: Pick<Settings, 'dataDir' | 'local'>,
  log: Log,
): LocalModels {
  const engines = createLocalEngines({
    models: [tinyModel],
    dialect: openaiChatUpstream,
    cacheDir: join(settings.dataDir, 'cache'),
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
    const told = new Set(problems.map(textOf));
    for (const problem of contents.problems) {
      if (!told.has(textOf(problem))) log.warn('local model left out', { ...problem });
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
