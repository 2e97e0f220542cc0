/** A LiteLLM proxy's `config.yaml` as a draft: groups and fallbacks become routes; settings are taken or named. */
import { createHash } from 'node:crypto';
import { durationText } from '../../config/options.ts';
import type { ConfigPath } from '../../config/yaml-text.ts';
import type { Draft, Fields } from './draft.ts';
import { readModelList, timeoutsOf, type Deployment, type Groups } from './litellm-models.ts';
import { noteSettings, orders } from './litellm-settings.ts';
import { listOf, numberOf, referenceName, tableOf, textOf, type Table } from './values.ts';

type Environment = { readonly [name: string]: string | undefined };

/** @param env where the master key may be; its hash is taken, never its text */
export function readLitellm(root: Table, draft: Draft, env: Environment): void {
  const groups = readModelList(root, draft);
  const aliases = readAliases(root, groups, draft);
  const fallbacks = readFallbacks(root, draft);
  const strategy = textOf(tableOf(root['router_settings'])['routing_strategy']);
  for (const [name, deployments] of groups) {
    const route = routeOf(
      { name: aliases.get(name) ?? name, deployments, groups, fallbacks, strategy },
      draft,
    );
    draft.model(name.replace(/\s+/g, '-'), route, deployments[0]?.path ?? []);
  }
  readTimeouts(root, draft);
  readMasterKey(root, draft, env);
  noteSettings(root, draft);
}

/**
 * `model_group_alias` and `model_alias_map`: an alias has the targets of its group, since names do not chain here.
 * @returns the group of each alias
 */
function readAliases(root: Table, groups: Groups, draft: Draft): ReadonlyMap<string, string> {
  const aliases = new Map<string, string>();
  const places: readonly ConfigPath[] = [
    ['router_settings', 'model_group_alias'],
    ['litellm_settings', 'model_alias_map'],
  ];
  for (const place of places) {
    const [section = '', member = ''] = place.map(String);
    for (const [alias, value] of Object.entries(tableOf(tableOf(root[section])[member]))) {
      const group = textOf(value) ?? textOf(tableOf(value)['model']);
      const path = [...place, alias];
      const targets = group === undefined ? undefined : groups.get(group);
      if (group === undefined || targets === undefined) {
        draft.note('not known', path, 'it leads to no model of model_list');
        continue;
      }
      draft.note('taken', path, `${alias} has the targets of ${group}`);
      groups.set(alias, targets);
      aliases.set(alias, group);
      if (tableOf(value)['hidden'] === true) {
        draft.note('changed', path, 'GET /v1/models lists it');
      }
    }
  }
  return aliases;
}

interface Fallbacks {
  /** Groups by the group that they answer for. */
  readonly byGroup: ReadonlyMap<string, readonly string[]>;
  readonly always: readonly string[];
  /** Groups with `context_window_fallbacks`. */
  readonly onOverflow: ReadonlySet<string>;
}

function readFallbacks(root: Table, draft: Draft): Fallbacks {
  const byGroup = new Map<string, readonly string[]>();
  const always: string[] = [];
  const onOverflow = new Set<string>();
  for (const section of ['litellm_settings', 'router_settings']) {
    const settings = tableOf(root[section]);
    for (const member of ['fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks']) {
      listOf(settings[member]).forEach((item, i) => {
        const path = [section, member, i];
        for (const [group, names] of Object.entries(tableOf(item))) {
          const others = listOf(names).filter((name) => typeof name === 'string');
          if (member === 'content_policy_fallbacks') {
            const text =
              'targets of the route; on_content_filter: next at azure and foundry asks them';
            draft.note('changed', path, text);
          } else draft.note('taken', path, `${group} → ${others.join(', ')}`);
          if (member === 'context_window_fallbacks') onOverflow.add(group);
          if (group === '*') always.push(...others);
          else byGroup.set(group, [...(byGroup.get(group) ?? []), ...others]);
        }
      });
    }
    const usual = listOf(settings['default_fallbacks']).filter((name) => typeof name === 'string');
    if (usual.length > 0) draft.note('taken', [section, 'default_fallbacks'], usual.join(', '));
    always.push(...usual);
  }
  return { byGroup, always, onOverflow };
}

interface GroupInput {
  readonly name: string;
  readonly deployments: readonly Deployment[];
  readonly groups: Groups;
  readonly fallbacks: Fallbacks;
  readonly strategy: string | undefined;
}

/** A fallback among weighted targets: it is the first target of one call in a million, else when the others fail. */
const fallbackWeight = 1e-6;

function routeOf(input: GroupInput, draft: Draft): Fields | string {
  const { name, groups, fallbacks, strategy } = input;
  const own = distinct(input.deployments, (each) => {
    const text = `${name}: ${each.target} again: one target with the weight of both, asked in the lower order of the two`;
    draft.note('changed', each.path, text);
  });
  const names = [...(fallbacks.byGroup.get(name) ?? []), ...fallbacks.always];
  const others = names.flatMap((each) => {
    const found = groups.get(each);
    if (found === undefined && each !== name) {
      draft.note('not known', own[0]?.path ?? [], `${name}: there is no fallback ${each}`);
    }
    return found ?? [];
  });
  const ownTargets = new Set(own.map(({ target }) => target));
  const spare = distinct(others).filter(({ target }) => !ownTargets.has(target));
  const options: Fields = {
    ...(own.some(({ usesResponses }) => usesResponses) ? { api: 'responses' } : {}),
    ...(own.some(({ marksCache }) => marksCache) ? { cache: 'auto' } : {}),
    ...(fallbacks.onOverflow.has(name) ? { retry: { context_overflow: true } } : {}),
    ...timeoutsField(own),
  };
  const isAlone = own.length + spare.length === 1 && Object.keys(options).length === 0;
  if (isAlone) return own[0]?.target ?? '';
  return { ...targetsOf({ name, own, spare, strategy }, draft), ...options };
}

function timeoutsField(own: readonly Deployment[]): Fields {
  const timeouts = timeoutsOf(own);
  return timeouts === undefined ? {} : { timeouts };
}

interface TargetsInput {
  readonly name: string;
  readonly own: readonly Deployment[];
  readonly spare: readonly Deployment[];
  readonly strategy: string | undefined;
}

function targetsOf({ name, own, spare, strategy }: TargetsInput, draft: Draft): Fields {
  const path = own[0]?.path ?? [];
  const spareTargets = spare.map(({ target }) => target);
  if (own.length + spare.length > 3) {
    draft.note('changed', path, `${name}: a call asks three of its targets at most`);
  }
  const ordered = own.some(({ order }) => order !== undefined);
  if (own.length === 1 || ordered) {
    const sorted = own.toSorted((a, b) => (a.order ?? Infinity) - (b.order ?? Infinity) || 0);
    if (ordered) draft.note('changed', path, `${name}: targets are asked in the order of "order"`);
    return { targets: [...sorted.map(({ target }) => target), ...spareTargets] };
  }
  const wanted = orders.get(strategy ?? 'simple-shuffle') ?? 'weighted';
  if (spare.length > 0 && wanted !== 'weighted') {
    const text = `${name}: order: weighted in place of ${wanted}, which would also choose the fallbacks`;
    draft.note('changed', path, text);
  }
  const order = spare.length > 0 ? 'weighted' : wanted;
  const heaviest = Math.max(...own.map(({ weight }) => weight ?? 1));
  const scale = heaviest > 1000 ? 1000 / heaviest : 1;
  const weighted = own.map(({ target, weight = 1 }) => ({
    target,
    weight: Number(Math.max(weight * scale, 0.001).toPrecision(4)),
  }));
  const isEven = weighted.every(({ weight }) => weight === weighted[0]?.weight);
  const plain = isEven && spare.length === 0;
  return {
    targets: [
      ...(plain ? own.map(({ target }) => target) : weighted),
      ...spareTargets.map((target) => ({ target, weight: fallbackWeight })),
    ],
    order,
  };
}

/** Without repeated targets: LiteLLM draws such a target as often as all its deployments together. */
function distinct(
  deployments: readonly Deployment[],
  repeated: (deployment: Deployment) => void = () => undefined,
): readonly Deployment[] {
  const seen = new Map<string, Deployment>();
  for (const each of deployments) {
    const first = seen.get(each.target);
    if (first === undefined) {
      seen.set(each.target, each);
      continue;
    }
    repeated(each);
    const weight = (first.weight ?? 1) + (each.weight ?? 1);
    const order = Math.min(first.order ?? Infinity, each.order ?? Infinity);
    seen.set(each.target, { ...first, weight, order: order === Infinity ? undefined : order });
  }
  return [...seen.values()];
}

/** `request_timeout` and `timeout` of a whole call, `stream_timeout` until a stream begins. */
function readTimeouts(root: Table, draft: Draft): void {
  const places: readonly (readonly [string, string, string])[] = [
    ['litellm_settings', 'request_timeout', 'document'],
    ['router_settings', 'timeout', 'document'],
    ['router_settings', 'stream_timeout', 'first_event'],
  ];
  for (const [section, member, option] of places) {
    const seconds = numberOf(tableOf(root[section])[member]);
    if (seconds === undefined || seconds <= 0) continue;
    const text = durationText(Math.round(seconds * 1000));
    draft.option('timeouts', option, text);
    draft.note('taken', [section, member], `timeouts.${option}: ${text}`);
  }
}

/** Shorter keys could be found from their hash. */
const minKeyLength = 20;

function readMasterKey(root: Table, draft: Draft, env: Environment): void {
  const path = ['general_settings', 'master_key'];
  const given = textOf(tableOf(root['general_settings'])['master_key']);
  if (given === undefined) return;
  const name = referenceName(given);
  const key = name === undefined ? given : (env[name] ?? '');
  if (key.length < minKeyLength) {
    const why =
      key === ''
        ? `${name ?? 'it'} is not set in this shell, so its hash is not known`
        : `it is shorter than ${minKeyLength} characters`;
    const text = `${why}; "model-gateway keys create" makes keys`;
    return draft.note('left out', path, text);
  }
  const digest = `sha256:${createHash('sha256').update(key).digest('hex')}`;
  draft.option('keys', 'litellm-master', { digest, models: ['*'] });
  const text = 'keys.litellm-master by its hash: it calls all models, and administers nothing here';
  draft.note('changed', path, text);
}
