/** `local:` of the file: where model files lie, and how single models are run. */
import { dirname, join, resolve } from 'node:path';
import type { CheckedFile } from './config-file.ts';
import type { ConfigIssue } from './errors.ts';
import { givenOptions, optionLines } from './options.ts';
import type { ConfigFile } from './schema.ts';
import { localModelOptions, localOptions } from './sections.ts';
import type { LocalModelEntry, LocalSettings, OriginLine } from './settings.ts';

interface LocalScope {
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
  const { modelsDir: folder, ...options } = givenOptions(localOptions, local);
  const models = Object.entries(local.models ?? {}).map(([name, form]) => {
    const isDemonstration = name.toLowerCase() === demonstration;
    if (isDemonstration && file !== undefined && form?.path !== undefined) {
      const message = 'tiny is the built-in model; its file cannot be changed';
      scope.report(file.issue(['local', 'models', name, 'path'], message));
    }
    return readModel(name, form ?? {}, directory);
  });
  return {
    ...options,
    modelsDir: folder === undefined ? join(scope.dataDir, 'models') : resolve(directory, folder),
    models,
  };
}

function readModel(name: string, form: ModelForm, directory: string): LocalModelEntry {
  const { path, sha256, ...options } = givenOptions(localModelOptions, form);
  return {
    name,
    ...options,
    ...(path === undefined ? {} : { path: resolve(directory, path) }),
    ...(sha256 === undefined ? {} : { sha256: sha256.toLowerCase() }),
  };
}

/** The lines of `check`: the folder, and what the file sets. */
export function localLines(
  settings: LocalSettings,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  const [folder, ...options] = optionLines(localOptions, settings, { path: ['local'], file });
  const models = settings.models.flatMap((model) =>
    optionLines(localModelOptions, model, { path: ['local', 'models', model.name], file }),
  );
  const given = [...options, ...models].filter(({ origin }) => origin !== 'default');
  return folder === undefined ? given : [folder, ...given];
}
