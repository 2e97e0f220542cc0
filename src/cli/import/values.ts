/** Values of other gateways' configs: references, secrets and numbers. No secret leaves the file that it is in. */
import { isObject } from '../../json/value.ts';
import type { ConfigPath } from '../../config/yaml-text.ts';
import type { Draft, Fields } from './draft.ts';

/** Plain data of a parsed file. */
export type Table = { readonly [name: string]: unknown };

/** Empty for anything that is no mapping. */
export function tableOf(value: unknown): Table {
  return isObject(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A number, or a text of one. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

const referenceForms: readonly RegExp[] = [
  /^os\.environ\/([A-Za-z_]\w*)$/,
  /^\$([A-Za-z_]\w*)$/,
  /^\$\{([A-Za-z_]\w*)\}$/,
  /^process\.env\.([A-Za-z_]\w*)$/,
];

/** The name of the environment that a text refers to. */
export function referenceName(text: string): string | undefined {
  return referenceForms.map((form) => form.exec(text)?.[1]).find((name) => name !== undefined);
}

/** A text that is no secret, with a reference in the form of this gateway. */
export function plainText(text: string, draft: Draft): string {
  const name = referenceName(text);
  return name === undefined ? text.replaceAll('${', '$${') : draft.variable(name);
}

/** A reference for a secret. One that is in the file is left there, and a variable is named for it. */
export function secretReference(
  text: string,
  {
    draft,
    path,
    variable,
  }: { readonly draft: Draft; readonly path: ConfigPath; readonly variable: string },
): string {
  const name = referenceName(text);
  if (name !== undefined) return draft.variable(name);
  const chosen = draft.variableFor(text, variable);
  draft.note('changed', path, `it stands in plain text there; here it is read from ${chosen}`);
  return draft.variable(chosen);
}

/** Headers whose values are no secrets. */
const plainHeaders = new Set([
  'anthropic-beta',
  'anthropic-version',
  'http-referer',
  'openai-organization',
  'openai-project',
  'user-agent',
  'x-title',
]);

/** Headers of a provider; every value that may be a secret becomes a reference. */
export function headersOf(
  table: Table,
  {
    draft,
    path,
    prefix,
  }: { readonly draft: Draft; readonly path: ConfigPath; readonly prefix: string },
): { readonly [name: string]: string } {
  const headers = Object.entries(table).flatMap(([name, value]) => {
    const text = textOf(value);
    if (text === undefined) return [];
    if (plainHeaders.has(name.toLowerCase())) return [[name, plainText(text, draft)] as const];
    const variable = variableName(`${prefix}_${name}`);
    return [[name, secretReference(text, { draft, path: [...path, name], variable })] as const];
  });
  return Object.fromEntries(headers);
}

/** `team-vllm api key` → `TEAM_VLLM_API_KEY` */
export function variableName(text: string): string {
  const name = text.toUpperCase().replace(/[^A-Z0-9]+/g, '_');
  return /^[0-9]/.test(name) ? `_${name}` : name;
}

/** What is wrong with an address, without quoting it; undefined when it can be taken. */
export function addressProblem(text: string): string | undefined {
  if (text.includes('${')) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    return 'is no http:// or https:// address';
  if (url.username !== '' || url.password !== '') return 'holds a user or a password';
  if (url.search !== '' || url.hash !== '') return 'has a ? or #';
  return undefined;
}

/** An address without the slashes at its end. */
export function withoutSlash(address: string): string {
  let end = address.length;
  while (address[end - 1] === '/') end -= 1;
  return address.slice(0, end);
}

/** Without the members that are undefined. */
export function defined(fields: { readonly [name: string]: Fields[string] | undefined }): Fields {
  const entries = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}
