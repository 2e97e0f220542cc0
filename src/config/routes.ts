/** `models:` of the file: names, and who answers them. */
import type { HedgeRule, RetryRules } from '../core/provider.ts';
import type { CheckedFile, Environment } from './config-file.ts';
import { type ConfigIssue, pathText, suggestion } from './errors.ts';
import { givenOptions, optionLines } from './options.ts';
import { givenTimeouts, type KnownProviders } from './providers.ts';
import type { ConfigFile } from './schema.ts';
import { hedgeOptions, retryOptions, routeOptions, timeoutOptions } from './sections.ts';
import type { OriginLine, RouteSettings, TargetSettings } from './settings.ts';

interface ModelScope {
  readonly known: KnownProviders;
  readonly env: Environment;
  report(issue: ConfigIssue): void;
}

type RouteForm = NonNullable<ConfigFile['models']>[string];

/** The routes; a target whose provider is neither declared nor known is reported with its line. */
export function readRoutes(file: CheckedFile, scope: ModelScope): readonly RouteSettings[] {
  return Object.entries(file.content.models ?? {}).map(([name, form]) => {
    const route = typeof form === 'string' ? { targets: [form] } : form;
    const targets = route.targets.map((each) =>
      typeof each === 'string' ? readTarget(each, 1) : readTarget(each.target, each.weight ?? 1),
    );
    targets.forEach(({ provider }, index) => {
      const problem = providerProblem(provider, file, scope);
      if (problem !== undefined) {
        scope.report(file.issue(['models', name, ...targetPath(form, index)], problem));
      }
    });
    const own: Partial<Exclude<RouteForm, string>> = typeof form === 'string' ? {} : form;
    const rules = readRules(own, file);
    if (rules.hedge !== undefined && rules.retry?.afterSent === false) {
      scope.report(file.issue(['models', name, 'hedge'], hedgeProblem));
    }
    const { order = 'listed', ...options } = givenOptions(routeOptions, own);
    return {
      name,
      targets,
      order,
      ...options,
      ...rules,
      ...givenTimeouts(own.timeouts),
      where: file.where(['models', name]),
    };
  });
}

const hedgeProblem =
  'sends a request twice, which retry.after_sent: false forbids: remove one of them';

/** The route's rules of retries before those of the file; the hedge is the route's alone. */
function readRules(
  { retry, hedge }: Partial<Exclude<RouteForm, string>>,
  { content }: CheckedFile,
): { readonly retry?: RetryRules; readonly hedge?: HedgeRule } {
  const rules = {
    ...givenOptions(retryOptions, content.retry),
    ...givenOptions(retryOptions, retry),
  };
  const afterMs = hedge?.after;
  return {
    ...(Object.keys(rules).length === 0 ? {} : { retry: rules }),
    ...(afterMs === undefined ? {} : { hedge: { afterMs } }),
  };
}

/** Where the target of an index stands below its name. */
function targetPath(form: RouteForm, index: number): readonly (string | number)[] {
  return typeof form === 'string' ? [] : ['targets', index];
}

/** `provider/model`, split at the first slash: model names may hold more of them. */
function readTarget(text: string, weight: number): TargetSettings {
  const slash = text.indexOf('/');
  return { provider: text.slice(0, slash), model: text.slice(slash + 1), weight };
}

function providerProblem(
  provider: string,
  file: CheckedFile,
  { known, env }: ModelScope,
): string | undefined {
  if (file.declared.has(provider)) return undefined;
  const preset = known.get(provider);
  if (preset === undefined) {
    const names = [...file.declared, ...known.keys()];
    return `there is no provider "${provider}"${suggestion(provider, names)}`;
  }
  const { keyVariable } = preset;
  if (keyVariable === undefined || (env[keyVariable] ?? '') !== '') return undefined;
  return `provider "${provider}" has no key: set ${keyVariable} or declare it under providers`;
}

/** The lines of `check` for a route: its targets, and what the file sets. */
export function routeLines(
  { name, targets, order, retry, hedge, timeouts, ...options }: RouteSettings,
  file: CheckedFile,
): readonly OriginLine[] {
  const path = ['models', name];
  const form = file.content.models?.[name];
  const targetLines = targets.map(({ provider, model, weight }, index) => {
    const keys = [...path, ...(form === undefined ? [] : targetPath(form, index))];
    const share = order === 'weighted' ? ` (weight ${weight})` : '';
    return {
      path: pathText(keys),
      value: `${provider}/${model}${share}`,
      origin: file.where(keys),
    };
  });
  const retryPath = (key: string): readonly string[] =>
    file.isSet([...path, 'retry', key]) ? [...path, 'retry'] : ['retry'];
  return [
    ...targetLines,
    ...optionLines(routeOptions, { order, ...options }, { path, file }),
    ...Object.entries(retryOptions).flatMap(([setting, row]) =>
      optionLines({ [setting]: row }, retry ?? {}, { path: retryPath(row.key), file }),
    ),
    ...optionLines(hedgeOptions, hedge ?? {}, { path: [...path, 'hedge'], file }),
    ...optionLines(timeoutOptions, timeouts ?? {}, { path: [...path, 'timeouts'], file }),
  ].filter(({ origin }) => origin !== 'default');
}
