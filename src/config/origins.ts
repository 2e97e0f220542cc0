/** Each effective value with its origin (N1), for `check`. Secrets read `[secret]`. */
import type { Timeouts } from '../core/provider.ts';
import type { CheckedFile } from './config-file.ts';
import { pathText } from './config-error.ts';
import { targetPath } from './models-section.ts';
import { limitOrigins } from './limits-section.ts';
import { durationText, sizeText } from './quantity.ts';
import type { OriginLine, ProviderSettings, RouteSettings, Settings } from './settings.ts';

type Path = readonly (string | number)[];

/** The lines of everything that only the file can set. */
export function fileOrigins(
  settings: Pick<Settings, 'limits' | 'timeouts' | 'clients' | 'drain' | 'providers' | 'routes'>,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  const content = file?.content ?? {};
  const place = (path: Path, isSet: boolean): string =>
    file === undefined || !isSet ? 'default' : file.where(path);
  const line = (path: Path, value: string, isSet: boolean): OriginLine => ({
    path: pathText(path),
    value,
    origin: place(path, isSet),
  });
  const { timeouts, clients, drain } = content;
  const { waitMs, limitMs } = settings.drain;
  return [
    ...limitOrigins(settings.limits, file),
    ...timeoutValues(settings.timeouts).map(([path, value]) =>
      line(path, value, timeouts?.[path[1]] !== undefined),
    ),
    ...(['chat', 'messages'] as const).map((name) =>
      line(
        ['clients', 'keep_alive', name],
        orNeverText(settings.clients.keepAliveMs[name]),
        clients?.keep_alive !== undefined,
      ),
    ),
    line(
      ['clients', 'stalled'],
      durationText(settings.clients.stalledMs),
      clients?.stalled !== undefined,
    ),
    line(
      ['drain', 'wait'],
      waitMs === undefined ? '5s where /readyz is asked for' : waitText(waitMs),
      waitMs !== undefined,
    ),
    line(['drain', 'limit'], durationText(limitMs), drain?.limit !== undefined),
    ...(file === undefined
      ? []
      : [
          ...settings.providers.flatMap((provider) => providerLines(provider, file)),
          ...settings.routes.flatMap((route) => routeLines(route, file)),
        ]),
  ];
}

function waitText(ms: number): string {
  return ms === 0 ? '0s' : durationText(ms);
}

function orNeverText(ms: number): string {
  return ms === Number.POSITIVE_INFINITY ? 'never' : durationText(ms);
}

const timeoutNames = [
  ['connect', 'connectMs'],
  ['first_event', 'firstEventMs'],
  ['reasoning', 'reasoningMs'],
  ['document', 'documentMs'],
  ['idle', 'idleMs'],
  ['total', 'totalMs'],
  ['rate_window', 'rateWindowMs'],
] as const;

type TimeoutPath = readonly ['timeouts', (typeof timeoutNames)[number][0] | 'min_rate'];

function providerLines(provider: ProviderSettings, file: CheckedFile): readonly OriginLine[] {
  const root: Path = ['providers', provider.id];
  const { dialect, baseUrl, apiKey, headers } = provider;
  const values: readonly (readonly [Path, string | undefined])[] = [
    [['dialect'], dialect],
    [['base_url'], baseUrl],
    [['api_key'], apiKey?.toString()],
    ...(provider.credentials ?? []).map(
      ({ name, key }) => [['credentials', name], key.toString()] as const,
    ),
    // A header may be a credential under any name.
    ...[...headers.keys()].map((name) => [headerPath(provider, name, file), '[secret]'] as const),
    [['like'], provider.like],
    [['betas'], provider.betas?.join(', ')],
    [['trace_context'], provider.traceContext?.toString()],
    [['region'], provider.region],
    [['server_tools'], provider.serverTools?.toString()],
    [['proxy'], provider.proxy?.toString()],
    [['ca'], file.content.providers?.[provider.id]?.ca],
    [['on_abort'], provider.onAbort],
    ...timeoutValues(provider.timeouts),
  ];
  const set = values.filter((entry): entry is [Path, string] => entry[1] !== undefined);
  if (set.length === 0) return [at(file, root, 'preset')];
  return set.map(([path, value]) => at(file, [...root, ...path], value));
}

function headerPath(provider: ProviderSettings, name: string, file: CheckedFile): Path {
  const written = Object.keys(file.content.providers?.[provider.id]?.headers ?? {});
  return ['headers', written.find((each) => each.toLowerCase() === name) ?? name];
}

function routeLines(route: RouteSettings, file: CheckedFile): readonly OriginLine[] {
  const root: Path = ['models', route.name];
  const form = file.content.models?.[route.name];
  const targets = route.targets.map(({ provider, model, weight }, index) => {
    const path = form === undefined ? [] : targetPath(form, index);
    const share = route.order === 'weighted' ? ` (weight ${weight})` : '';
    return at(file, [...root, ...path], `${provider}/${model}${share}`);
  });
  const hasOrder = typeof form === 'object' && form.order !== undefined;
  return [
    ...targets,
    ...(hasOrder ? [at(file, [...root, 'order'], route.order)] : []),
    ...(route.affinity === undefined
      ? []
      : [at(file, [...root, 'affinity'], String(route.affinity))]),
    ...retryLines(route, file),
    ...(route.hedge === undefined
      ? []
      : [at(file, [...root, 'hedge', 'after'], durationText(route.hedge.afterMs))]),
    ...(route.strict === true ? [at(file, [...root, 'strict'], 'true')] : []),
    ...(route.serverTools === undefined
      ? []
      : [at(file, [...root, 'server_tools'], String(route.serverTools))]),
    ...timeoutValues(route.timeouts).map(([path, value]) => at(file, [...root, ...path], value)),
  ];
}

function retryLines({ name, retry }: RouteSettings, file: CheckedFile): readonly OriginLine[] {
  const form = file.content.models?.[name];
  const own = typeof form === 'object' ? form.retry : undefined;
  const values = [
    ['after_sent', retry?.afterSent],
    ['context_overflow', retry?.contextOverflow],
  ] as const;
  return values.flatMap(([key, value]) => {
    if (value === undefined) return [];
    const near = own?.[key] === undefined ? ['retry', key] : ['models', name, 'retry', key];
    return [at(file, near, String(value))];
  });
}

function timeoutValues(
  timeouts: Partial<Timeouts> | undefined,
): readonly (readonly [TimeoutPath, string])[] {
  const { minBytesPerS: rate } = timeouts ?? {};
  return [
    ...timeoutNames.flatMap(([name, key]): [TimeoutPath, string][] => {
      const ms = timeouts?.[key];
      return ms === undefined ? [] : [[['timeouts', name], durationText(ms)]];
    }),
    ...(rate === undefined ? [] : [[['timeouts', 'min_rate'], sizeText(rate)] as const]),
  ];
}

function at(file: CheckedFile, path: Path, value: string): OriginLine {
  return { path: pathText(path), value, origin: file.where(path) };
}
