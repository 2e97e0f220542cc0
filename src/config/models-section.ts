/** `models:` of the file: names, and who answers them. */
import type { CheckedFile } from './config-file.ts';
import type { ConfigIssue } from './config-error.ts';
import type { KnownProviders } from './known-provider.ts';
import { suggestion } from './nearest.ts';
import { optionalTimeouts } from './providers-section.ts';
import type { Environment } from './references.ts';
import { hedgeProblem, readHedge, readRetry } from './routing-section.ts';
import type { ConfigFile } from './schema.ts';
import type { RouteSettings, TargetSettings } from './settings.ts';

export interface ModelScope {
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
    const rules = readRules(form, file);
    const problem = hedgeProblem(rules);
    if (problem !== undefined) scope.report(file.issue(['models', name, 'hedge'], problem));
    return {
      name,
      targets,
      order: ('order' in route ? route.order : undefined) ?? 'listed',
      ...('affinity' in route && route.affinity !== undefined ? { affinity: route.affinity } : {}),
      ...rules,
      ...('strict' in route && route.strict === true ? { strict: true } : {}),
      ...('server_tools' in route && route.server_tools !== undefined
        ? { serverTools: route.server_tools }
        : {}),
      ...optionalTimeouts('timeouts' in route ? route.timeouts : undefined),
      where: file.where(['models', name]),
    };
  });
}

function readRules(
  form: RouteForm,
  { content }: CheckedFile,
): Pick<RouteSettings, 'retry' | 'hedge'> {
  const own = typeof form === 'string' ? undefined : form;
  return { ...readRetry(own?.retry, content.retry), ...readHedge(own?.hedge) };
}

/** Where the target of an index stands below its name. */
export function targetPath(form: RouteForm, index: number): readonly (string | number)[] {
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
