/** What is in the fields of a key, and the body that it makes. */
import type { Body, Key } from './api.ts';
import {
  emptyPolicy,
  limitMembers,
  policyChange,
  policyFieldsOf,
  type PolicyFields,
} from './policy.ts';

export interface KeyFields extends PolicyFields {
  readonly name: string;
  readonly models: readonly string[];
  /** Empty = all. */
  readonly endpoints: readonly string[];
  readonly team: string;
  readonly owner: string;
  readonly tags: readonly string[];
  readonly cidrs: string;
  /** `30d`, a date, `never`; empty: as it is, which is never for a new key. */
  readonly expires: string;
  readonly strict: boolean;
  readonly cache: boolean;
  readonly shrink: boolean;
  readonly logContent: boolean;
}

export const endpoints = ['chat', 'messages', 'responses', 'count_tokens', 'models'] as const;

export const emptyKey: KeyFields = {
  ...emptyPolicy,
  name: '',
  models: ['*'],
  endpoints: [],
  team: '',
  owner: '',
  tags: [],
  cidrs: '',
  expires: '',
  strict: false,
  cache: false,
  shrink: true,
  logContent: false,
};

/** A start for a new key: what is usual for its use. Everything can be changed before and after. */
export interface Preset {
  readonly value: string;
  readonly label: string;
  /** What it sets, in words. */
  readonly about: string;
  readonly fields: Partial<KeyFields>;
}

const dollars = (usd: string, per: 'day' | 'month') => [{ usd, per, zone: '' }] as const;

export const presets: readonly Preset[] = [
  { value: 'blank', label: 'Blank', about: 'All models, no limits, no end.', fields: {} },
  {
    value: 'person',
    label: 'Developer',
    about: '60 requests a minute, $10 a day, 90 days.',
    fields: { rpm: '60', budgets: dollars('10', 'day'), expires: '90d' },
  },
  {
    value: 'agent',
    label: 'Coding agent',
    about: '120 requests a minute, 16 concurrent calls, $50 a day, cache marks, 30 days.',
    fields: {
      rpm: '120',
      concurrent: '16',
      budgets: dollars('50', 'day'),
      cache: true,
      expires: '30d',
    },
  },
  {
    value: 'app',
    label: 'Application',
    about: '600 requests a minute, 100 concurrent calls, $500 a month, no end.',
    fields: { rpm: '600', concurrent: '100', budgets: dollars('500', 'month') },
  },
  {
    value: 'ci',
    label: 'CI job',
    about: '30 requests a minute, 4 concurrent calls, $5 a day, the tag ci, a year.',
    fields: {
      rpm: '30',
      concurrent: '4',
      budgets: dollars('5', 'day'),
      tags: ['ci'],
      expires: '365d',
    },
  },
];

/** The fields with a preset; what names the key and whose it is stays. */
export function withPreset(fields: KeyFields, preset: Preset): KeyFields {
  const { name, models, team, owner } = fields;
  return { ...emptyKey, name, models, team, owner, ...preset.fields };
}

export function keyFieldsOf(key: Key): KeyFields {
  return {
    ...policyFieldsOf(key),
    name: key.name,
    models: key.models,
    endpoints: key.endpoints,
    team: key.team ?? '',
    owner: key.owner ?? '',
    tags: key.tags,
    cidrs: key.cidrs.join(', '),
    expires: '',
    strict: key.strict,
    cache: key.cache === 'auto',
    shrink: key.shrink,
    logContent: key.log_content,
  };
}

/** For PUT, which replaces: what is empty is omitted. */
export function policyBody(fields: PolicyFields): Body {
  return withoutNulls(policyChange(fields));
}

/** For POST. */
export function newKeyBody(fields: KeyFields): Body {
  return withoutNulls(keyChange(fields));
}

/** For PATCH: what is empty is taken away. */
export function keyChange(fields: KeyFields): Body {
  const { endpoints: chosen } = fields;
  return {
    name: fields.name.trim(),
    models: fields.models,
    endpoints: chosen.length === 0 ? null : chosen,
    team: textOf(fields.team),
    owner: textOf(fields.owner),
    tags: nullable(fields.tags),
    cidrs: nullable(listOf(fields.cidrs)),
    strict: fields.strict,
    cache: fields.cache ? 'auto' : null,
    shrink: fields.shrink,
    ...expiryOf(fields.expires.trim()),
    log_content: fields.logContent,
    ...policyChange(fields),
  };
}

/** Untouched members are omitted, so that concurrent changes stay. */
export function changedOnly(wanted: Body, before: Body): Body {
  const isChanged = (name: string): boolean =>
    JSON.stringify(wanted[name]) !== JSON.stringify(before[name]);
  const hasLimits = limitMembers.some(isChanged);
  const names = Object.keys(wanted).filter(
    (name) => isChanged(name) || (hasLimits && limitMembers.some((each) => each === name)),
  );
  return Object.fromEntries(names.map((name) => [name, wanted[name]]));
}

function expiryOf(text: string): Body {
  if (text === '') return {};
  if (text.toLowerCase() === 'never') return { expires_at: null };
  return /^\d{4}-/.test(text) ? { expires_at: text } : { expires_in: text };
}

function withoutNulls(body: Body): Body {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

function textOf(text: string): string | null {
  const trimmed = text.trim();
  return trimmed === '' ? null : trimmed;
}

function listOf(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

function nullable(list: readonly string[]): readonly string[] | null {
  return list.length === 0 ? null : list;
}
