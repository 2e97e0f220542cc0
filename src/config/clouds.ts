/** The keys of a provider that only clouds have, and what a cloud says of them. */
import { dirname, resolve } from 'node:path';
import type {
  CloudInput,
  CloudProblem,
  CloudRules,
  CloudSettings,
  Environment,
} from '../core/cloud.ts';
import { Secret } from '../core/secret.ts';
import type { CheckedFile } from './config-file.ts';
import { pathText } from './errors.ts';
import { givenOptions, optionLines } from './options.ts';
import type { ProviderForm } from './providers.ts';
import { cloudOptions } from './sections.ts';
import type { OriginLine } from './settings.ts';

/** Secrets, as the file spells them and as the settings do. */
const secretKeys = {
  client_secret: 'clientSecret',
  secret_access_key: 'secretAccessKey',
  session_token: 'sessionToken',
} as const;
const secretEntries = Object.entries(secretKeys) as readonly (readonly [
  keyof typeof secretKeys,
  (typeof secretKeys)[keyof typeof secretKeys],
])[];

/** As the file spells them. */
const cloudKeys: ReadonlySet<string> = new Set([
  ...Object.values(cloudOptions).map(({ key }) => key),
  'deployments',
  'request_metadata',
  ...Object.keys(secretKeys),
]);

/** Absent where the file names nothing that only clouds have. */
export function readCloud(
  form: ProviderForm,
  file: CheckedFile,
): { readonly cloud?: CloudSettings } {
  const { deployments, request_metadata: requestMetadata, credentials } = form;
  const secrets = secretEntries.flatMap(([key, name]) => {
    const secret = form[key];
    return secret === undefined ? [] : [[name, new Secret(secret)] as const];
  });
  const cloud: CloudSettings = {
    ...givenOptions(cloudOptions, form),
    ...(deployments === undefined ? {} : { deployments }),
    ...(requestMetadata === undefined ? {} : { requestMetadata }),
    ...Object.fromEntries(secrets),
    ...(typeof credentials === 'string'
      ? { credentialsFile: resolve(dirname(file.location.path), credentials) }
      : {}),
  };
  return Object.keys(cloud).length === 0 ? {} : { cloud };
}

/** The keys of a declaration that mean nothing there. @param rules absent = it is no cloud */
export function foreignKeys(form: ProviderForm, rules: CloudRules | undefined): readonly string[] {
  return Object.keys(form).filter((key) => {
    // Everywhere else the key holds keys by name.
    const isFile = key === 'credentials' && typeof form.credentials === 'string';
    return (isFile || cloudKeys.has(key)) && rules?.keys.includes(key) !== true;
  });
}

interface CloudScope {
  readonly file: CheckedFile;
  readonly env: Environment;
}

export function cloudProblems(
  form: ProviderForm,
  rules: CloudRules,
  scope: CloudScope,
): readonly CloudProblem[] {
  const { auth } = form;
  if (auth !== undefined && !rules.auth.includes(auth)) {
    return [{ key: 'auth', message: `must be one of ${rules.auth.join(', ')} here` }];
  }
  return rules.problems(inputOf(form, scope));
}

/** The dialect of a cloud's model. @param name as a target of a route names it */
export function cloudDialect(
  name: string,
  form: ProviderForm,
  rules: CloudRules,
  scope: CloudScope,
): string {
  const model = form.deployments?.[name] ?? name;
  return rules.place(inputOf(form, scope), name, rules.modelOf?.(model) ?? model).dialect;
}

function inputOf(form: ProviderForm, { file, env }: CloudScope): CloudInput {
  const { base_url: baseUrl, dialect, api_key: key, credentials, headers, region } = form;
  const declared = {
    ...(dialect === undefined ? {} : { dialect }),
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(region === undefined ? {} : { region }),
    hasKey: key !== undefined || typeof credentials === 'object',
    hasHeaders: Object.keys(headers ?? {}).length > 0,
    cloud: readCloud(form, file).cloud ?? {},
  };
  return { declared, env };
}

/** The lines of `check`: what the file sets; a secret reads `[secret]`. */
export function cloudLines(
  cloud: CloudSettings | undefined,
  path: readonly string[],
  file: CheckedFile,
): readonly OriginLine[] {
  if (cloud === undefined) return [];
  const { deployments = {}, requestMetadata = {}, credentialsFile } = cloud;
  const line = (keys: readonly string[], value: string): OriginLine => ({
    path: pathText([...path, ...keys]),
    value,
    origin: file.where([...path, ...keys]),
  });
  return [
    ...optionLines(cloudOptions, cloud, { path, file }).filter(
      ({ origin }) => origin !== 'default',
    ),
    ...Object.entries(deployments).map(([name, model]) => line(['deployments', name], model)),
    ...Object.entries(requestMetadata).map(([name, value]) =>
      line(['request_metadata', name], value),
    ),
    ...secretEntries.flatMap(([key, name]) => {
      const secret = cloud[name];
      return secret === undefined ? [] : [line([key], secret.toString())];
    }),
    ...(credentialsFile === undefined ? [] : [line(['credentials'], credentialsFile)]),
  ];
}
