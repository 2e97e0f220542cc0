/**
 * Warnings about slips that are valid, and would fail only later with another program's words: pasted keys, keys of
 * another vendor, and names of variables with a typing error. None quotes a value: values are secrets.
 */
import { nearest } from '../core/nearest.ts';
import type { CheckedFile, Environment } from './config-file.ts';
import { baseOptions } from './base.ts';
import type { KnownProvider, KnownProviders } from './providers.ts';

interface SlipScope {
  readonly known: KnownProviders;
  readonly env: Environment;
}

/** A key that is used, and the vendor that gets it; undefined where the address may be another's. */
interface UsedKey {
  readonly where: string;
  readonly key: string;
  readonly vendor: string | undefined;
}

/** What is certainly wrong with keys of providers, before an upstream refuses them. */
export function keyWarnings(file: CheckedFile | undefined, scope: SlipScope): readonly string[] {
  const used = [...keysOfFile(file, scope), ...keysOfEnvironment(file, scope)];
  const found = used.flatMap((each) => {
    const slip = pastingSlip(each.key) ?? vendorSlip(each, scope.known);
    return slip === undefined ? [] : [`${each.where} ${slip}`];
  });
  // Two providers may share a variable.
  return [...new Set(found)];
}

function keysOfFile(file: CheckedFile | undefined, scope: SlipScope): readonly UsedKey[] {
  return Object.entries(file?.content.providers ?? {}).flatMap(([id, form]) => {
    const { api_key: apiKey = [], credentials = {}, base_url: address, like } = form ?? {};
    const isOwn = address === undefined && like === undefined && isPreset(scope, id);
    const used = (path: string, key: string): UsedKey => ({
      where: `providers.${id}.${path}`,
      key,
      vendor: isOwn ? id : undefined,
    });
    const listed = typeof apiKey === 'string' ? [used('api_key', apiKey)] : [];
    const several = typeof apiKey === 'string' ? [] : apiKey;
    const named = typeof credentials === 'string' ? {} : credentials;
    return [
      ...listed,
      ...several.map((key, i) => used(`api_key[${i}]`, key)),
      ...Object.entries(named).map(([name, key]) => used(`credentials.${name}`, key)),
    ];
  });
}

function keysOfEnvironment(file: CheckedFile | undefined, scope: SlipScope): readonly UsedKey[] {
  return [...scope.known].flatMap(([id, { keyVariable = '' }]) => {
    const key = scope.env[keyVariable] ?? '';
    const declared = file?.content.providers?.[id];
    const isReplaced = declared?.api_key !== undefined || declared?.credentials !== undefined;
    if (key === '' || isReplaced) return [];
    const isOwn = declared?.base_url === undefined && isPreset(scope, id);
    return [{ where: keyVariable, key, vendor: isOwn ? id : undefined }];
  });
}

/** Whether the vendor is asked at its usual address. */
function isPreset({ known, env }: SlipScope, id: string): boolean {
  const { baseUrlVariable = '' } = known.get(id) ?? {};
  return known.has(id) && (env[baseUrlVariable] ?? '') === '';
}

const pastingSlips: readonly (readonly [RegExp, string])[] = [
  [/^\s|\s$/, 'begins or ends with a space or a line break: remove it'],
  [
    /^(["'`]).*\1$/,
    'is in quotation marks, which are sent with it: remove them (docker --env-file keeps them)',
  ],
  [/^bearer\s/i, 'begins with "Bearer": give the key alone, the gateway adds that word'],
  [/^\$\{?\w+\}?$/, 'is the name of a variable that was not filled in'],
  [/^[A-Z][A-Z0-9]*_[A-Z0-9_]*$/, 'is the name of a variable: write ${NAME} to take its value'],
  [/\s/, 'has a space in it: it was pasted with other text, or in two parts'],
];

function pastingSlip(key: string): string | undefined {
  return pastingSlips.find(([form]) => form.test(key))?.[1];
}

function vendorSlip({ key, vendor }: UsedKey, known: KnownProviders): string | undefined {
  const row = vendor === undefined ? undefined : known.get(vendor);
  // Clouds take keys of several kinds.
  if (row === undefined || (row.cloud !== undefined && row.keyPrefix === undefined))
    return undefined;
  const own = row.keyPrefix;
  const begins = ({ keyPrefix }: KnownProvider): boolean =>
    keyPrefix !== undefined && key.startsWith(keyPrefix);
  const other = [...known].find(([, each]) => each.keyPrefix !== own && begins(each));
  if (other === undefined) return undefined;
  const [name, { keyPrefix }] = other;
  return `begins as keys of ${name} do (${keyPrefix ?? ''}); it is sent to ${vendor ?? ''}`;
}

const prefix = 'MODEL_GATEWAY_';

/** The gateway's own variables, without their common beginning. */
const ownVariables: readonly string[] = [
  ...Object.values(baseOptions).map(({ key }) => key.toUpperCase()),
  'CONFIG',
  'STORAGE',
  'IMAGE',
  'API_KEY',
  'CLIENT_KEY',
  'CLIENT_CERT',
  ...['KEY', 'ADMIN_TOKEN', 'METRICS_TOKEN', 'PEPPER', 'CONTENT_KEY'].flatMap((name) => [
    name,
    `${name}_FILE`,
  ]),
];

/** Kubernetes sets these for a service of the name `model-gateway`. */
const ofServices = /^(SERVICE_|PORT$|PORT_)/;

/** Variables that are nearly one of the gateway's own: nothing reads them. */
export function variableWarnings(env: Environment): readonly string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(prefix))
    .filter((name) => !isOwn(name) && !ofServices.test(name.slice(prefix.length)))
    .flatMap((name) => {
      const meant = nearest(name.slice(prefix.length), ownVariables);
      return meant === undefined
        ? []
        : [`the variable ${name} is not read; did you mean ${prefix}${meant}?`];
    });
}

function isOwn(name: string): boolean {
  return ownVariables.some((own) => `${prefix}${own}` === name);
}
