/**
 * Virtual keys of LiteLLM, as `GET /key/list?return_full_object=true` of its proxy gives them. A token there is the
 * SHA-256 of a key, so clients keep their keys.
 */
import type { ConfigPath } from '../../config/yaml-text.ts';
import type { Draft } from './draft.ts';
import { listOf, numberOf, tableOf, textOf, type Table } from './values.ts';

/** Durations of budgets there → calendar periods here. */
const periods: ReadonlyMap<string, string> = new Map([
  ['24h', 'day'],
  ['1d', 'day'],
  ['7d', 'week'],
  ['1w', 'week'],
  ['30d', 'month'],
  ['1mo', 'month'],
]);

/** @param root the answer, or the list in it */
export function readLitellmKeys(root: unknown, draft: Draft): void {
  const list = Array.isArray(root) ? root : listOf(tableOf(root)['keys']);
  const names = new Set<string>();
  list.forEach((item, i) => {
    const key = tableOf(item);
    const path = ['keys', i];
    const token = textOf(key['token']) ?? textOf(item);
    if (token === undefined || !/^[0-9a-f]{64}$/.test(token)) {
      return draft.note('not known', path, 'it has no token of 64 hexadecimal digits');
    }
    if (key['blocked'] === true) return draft.note('left out', path, 'it is blocked');
    const name = freeName(textOf(key['key_alias']) ?? `key-${i + 1}`, names);
    draft.option('keys', name, keyFields(token, key, { draft, path }));
    draft.note('taken', path, `keys.${name}`);
  });
}

interface Position {
  readonly draft: Draft;
  readonly path: ConfigPath;
}

function keyFields(token: string, key: Table, position: Position): object {
  const { draft, path } = position;
  const models = listOf(key['models']).filter((name) => typeof name === 'string');
  const isAll =
    models.length === 0 || models.some((name) => /^all-(team|proxy)-models$/.test(name));
  const expires = textOf(key['expires'])?.slice(0, 19);
  const limits = [
    ['rpm', 'rpm_limit'],
    ['tpm', 'tpm_limit'],
    ['concurrent', 'max_parallel_requests'],
  ].flatMap(([here = '', there = '']) => {
    const value = numberOf(key[there]);
    return value === undefined || value < 1 ? [] : [[here, Math.floor(value)] as const];
  });
  const team = textOf(key['team_alias']) ?? textOf(key['team_id']);
  const owner = textOf(key['user_id']);
  for (const member of ['model_max_budget', 'model_rpm_limit', 'model_tpm_limit', 'permissions']) {
    if (Object.keys(tableOf(key[member])).length === 0) continue;
    draft.note('left out', [...path, member], 'limits: with model: GLOB take its place');
  }
  if ((numberOf(key['spend']) ?? 0) > 0) {
    draft.note('changed', [...path, 'spend'], 'budgets begin at zero here');
  }
  return {
    digest: `sha256:${token}`,
    models: isAll ? ['*'] : models,
    ...(team === undefined ? {} : { team }),
    ...(owner === undefined ? {} : { owner }),
    ...(expires === undefined ? {} : { expires: `${expires}Z` }),
    ...Object.fromEntries(limits),
    ...budgetFields(key, position),
  };
}

function budgetFields(key: Table, { draft, path }: Position): object {
  const budget = numberOf(key['max_budget']);
  if (budget === undefined) return {};
  const duration = textOf(key['budget_duration']);
  const per = duration === undefined ? 'ever' : periods.get(duration);
  if (per === undefined) {
    draft.note(
      'left out',
      [...path, 'budget_duration'],
      'budgets are by day, week, month or ever: add one',
    );
    return {};
  }
  if (duration !== undefined) {
    draft.note('changed', [...path, 'budget_duration'], `per: ${per}, by the calendar`);
  }
  return { budget, per };
}

function freeName(alias: string, names: Set<string>): string {
  const plain = alias.replace(/[^A-Za-z0-9_-]/g, '-').slice(0, 60);
  for (let n = 1; ; n++) {
    const name = n === 1 ? plain : `${plain}-${n}`;
    if (names.has(name)) continue;
    names.add(name);
    return name;
  }
}
