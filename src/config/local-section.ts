/** `local:` of the file: where model files lie, and how single models are run. */
import { dirname, join, resolve } from 'node:path';
import type { CheckedFile } from './config-file.ts';
import { pathText, type ConfigIssue } from './config-error.ts';
import { durationText, sizeText } from './quantity.ts';
import type { ConfigFile } from './schema.ts';
import { defaults, type LocalModelEntry, type LocalSettings, type OriginLine } from './settings.ts';

export interface LocalScope {
  /** Absolute. */
  readonly dataDir: string;
  report(issue: ConfigIssue): void;
}

type ModelForm = NonNullable<NonNullable<NonNullable<ConfigFile['local']>['models']>[string]>;

/** The model that ships; its file cannot be another. */
const demonstration = 'tiny';

export function readLocal(file: CheckedFile | undefined, scope: LocalScope): LocalSettings {
  const local = file?.content.local ?? {};
  const directory = file === undefined ? '' : dirname(file.place.path);
  const { models_dir: folder, idle_unload: idleUnloadMs, max_loaded: maxLoaded } = local;
  const { hang: hangMs, memory } = local;
  const models = Object.entries(local.models ?? {}).map(([name, form]) => {
    const isDemonstration = name.toLowerCase() === demonstration;
    if (isDemonstration && file !== undefined && form?.path !== undefined) {
      const message = 'tiny is the model that ships; its file cannot be another';
      scope.report(file.issue(['local', 'models', name, 'path'], message));
    }
    return readModel(name, form ?? {}, directory);
  });
  return {
    modelsDir:
      folder === undefined ? join(scope.dataDir, defaults.modelsDir) : resolve(directory, folder),
    ...(idleUnloadMs === undefined ? {} : { idleUnloadMs }),
    ...(hangMs === undefined ? {} : { hangMs }),
    ...(maxLoaded === undefined ? {} : { maxLoaded }),
    ...(memory === undefined ? {} : { memoryBytes: memory }),
    models,
  };
}

function readModel(name: string, form: ModelForm, directory: string): LocalModelEntry {
  const { path, sha256, context, threads, parallel, idle_unload: idleUnloadMs } = form;
  return {
    name,
    ...(path === undefined ? {} : { path: resolve(directory, path) }),
    ...(sha256 === undefined ? {} : { sha256: sha256.toLowerCase() }),
    ...(context === undefined ? {} : { context }),
    ...(threads === undefined ? {} : { threads }),
    ...(parallel === undefined ? {} : { parallel }),
    ...(idleUnloadMs === undefined ? {} : { idleUnloadMs }),
  };
}

/** Each effective value with its origin (N1); what the engine decides by itself is left out. */
export function localOrigins(
  settings: LocalSettings,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  const form = file?.content.local ?? {};
  const folder: OriginLine = {
    path: 'local.models_dir',
    value: settings.modelsDir,
    origin:
      file === undefined || form.models_dir === undefined
        ? 'default'
        : file.where(['local', 'models_dir']),
  };
  if (file === undefined) return [folder];
  const line = (keys: readonly string[], value: string | undefined): readonly OriginLine[] =>
    value === undefined
      ? []
      : [{ path: pathText(['local', ...keys]), value, origin: file.where(['local', ...keys]) }];
  return [
    folder,
    ...line(['idle_unload'], idleText(settings.idleUnloadMs)),
    ...line(['hang'], settings.hangMs === undefined ? undefined : durationText(settings.hangMs)),
    ...line(['max_loaded'], settings.maxLoaded?.toString()),
    ...line(
      ['memory'],
      settings.memoryBytes === undefined ? undefined : sizeText(settings.memoryBytes),
    ),
    ...settings.models.flatMap((model) => {
      const at = ['models', model.name];
      return [
        ...line([...at, 'path'], model.path),
        ...line([...at, 'sha256'], model.sha256),
        ...line([...at, 'context'], model.context?.toString()),
        ...line([...at, 'threads'], model.threads?.toString()),
        ...line([...at, 'parallel'], model.parallel?.toString()),
        ...line([...at, 'idle_unload'], idleText(model.idleUnloadMs)),
      ];
    }),
  ];
}

function idleText(ms: number | undefined): string | undefined {
  return ms === 0 ? 'never' : ms === undefined ? undefined : durationText(ms);
}
