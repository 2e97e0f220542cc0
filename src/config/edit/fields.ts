/** Which values of a config file are secrets: by their path in the schema, and by their form. */
import type { z } from 'zod';
import { withoutKeys } from '../../core/secret.ts';
import { isObject } from '../../json/value.ts';
import { publishedSchema } from '../schema.ts';
import type { ConfigPath } from '../yaml-text.ts';

type Schema = z.core.JSONSchema.BaseSchema;

let published: Schema | undefined;

/** `secret`: marked `writeOnly` in the schema. `unknown`: the schema has no such value, so it may be a secret. */
function fieldAt(path: ConfigPath): 'secret' | 'plain' | 'unknown' {
  published ??= publishedSchema();
  let found: readonly Schema[] = variants(published);
  for (const step of path) found = found.flatMap((each) => below(each, step)).flatMap(variants);
  if (found.some(({ writeOnly }) => writeOnly === true)) return 'secret';
  const takesValue = ({ type, enum: choices, const: only }: Schema): boolean =>
    choices !== undefined || only !== undefined || scalarTypes.has(String(type));
  return found.some(takesValue) ? 'plain' : 'unknown';
}

const scalarTypes: ReadonlySet<string> = new Set(['string', 'number', 'integer', 'boolean']);

function variants(schema: Schema): readonly Schema[] {
  return [schema, ...(schema.anyOf ?? []).flatMap((each) => variants(each))];
}

function below({ properties, additionalProperties, items }: Schema, step: string | number) {
  if (typeof step === 'number') return isSchema(items) ? [items] : [];
  const own =
    properties !== undefined && Object.hasOwn(properties, step)
      ? properties[step]
      : additionalProperties;
  return isSchema(own) ? [own] : [];
}

function isSchema(value: unknown): value is Schema {
  return isObject(value);
}

/** Keys whose value is the address of another server, for the secrets of the same entry. */
const serverKeys = ['base_url', 'control_endpoint', 'endpoint', 'issuer', 'proxy', 'url'];

/** Keys whose value says where the secrets of the same entry are sent: addresses, and parts that addresses are made of. */
export const boundKeys: ReadonlySet<string> = new Set([
  ...serverKeys,
  'like',
  'location',
  'region',
  'resource',
  'tenant_id',
]);

/** Keys whose value is an address. */
const addressKeys: ReadonlySet<string> = new Set([
  ...serverKeys,
  'counters',
  'database',
  'storage',
]);

/** Parameters that hold no secret, of addresses of servers and of APIs. */
const openParameters = /^(?:ca|cert|host|key|sslcert|sslkey|sslmode|sslrootcert)$/;
const openApiParameters = /^api-version$/;

const reference = /\$\{([^${}]*)\}/g;
const signedInAddress = /:\/\/[^\s/@]+@/;

/** The text without its references: a reference is not a secret, but its value may be one. */
function withoutReferences(text: string): string {
  return text.replaceAll(reference, (whole, inner: string) =>
    /^(?:[A-Za-z_]\w*$|file:)/.test(inner) ? '' : whole,
  );
}

/** Whether a value at this path must not be shown. Null, switches and references are not secrets. */
export function isHidden(path: ConfigPath, value: unknown): boolean {
  if (value === null || typeof value === 'boolean') return false;
  const text = withoutReferences(String(value));
  const field = fieldAt(path);
  if (field === 'secret') return text.replace(/^(?:Bearer|Basic|Token)\b/i, '').trim() !== '';
  if (field === 'unknown') return text.trim() !== '';
  if (looksSecret(text)) return true;
  return path.some((step) => addressKeys.has(String(step))) && holdsCredential(text);
}

/** Whether a text has the form of a key, or of an address with a password. */
export function looksSecret(text: string): boolean {
  return withoutKeys(text) !== text || holdsPassword(text);
}

/** A user name alone is shown. What cannot be read may be a mistyped password. */
function holdsPassword(text: string): boolean {
  return text.split(/\s+/).some((word) => {
    if (!signedInAddress.test(word)) return false;
    const url = URL.parse(word);
    return url === null || url.password !== '' || /^https?:$/.test(url.protocol);
  });
}

function holdsCredential(text: string): boolean {
  return text.split(/\s+/).some((word) => {
    const url = URL.parse(word);
    if (url === null || url.host === '') return word.includes('@');
    const open = /^https?:$/.test(url.protocol) ? openApiParameters : openParameters;
    return [...url.searchParams.keys()].some((name) => !open.test(name)) || url.hash !== '';
  });
}

const secretAssignment =
  /(?:\b|_)(?:api[_-]?key|secret_access_key|secret|password|passwd|passphrase|token|authorization|credentials?|url)["']?\s*[:=]\s*(\S.*)/i;
const longWord = /[A-Za-z\d+/=_]{16,}/g;

/** Whether a comment may hold a secret: an assignment that was commented out, a key, or a long random word. */
export function isHiddenComment(text: string): boolean {
  const assigned = withoutReferences(secretAssignment.exec(text)?.[1] ?? '');
  if (/[A-Za-z\d]/.test(assigned) || looksSecret(text)) return true;
  return [...text.matchAll(longWord)].some(([word]) => /\d/.test(word) && /[A-Za-z]/.test(word));
}
