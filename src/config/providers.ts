/** `providers:` of the file, and what the environment says about known vendors. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { dirname, resolve } from 'node:path';
import { forbiddenHost, isForbiddenHost } from '../core/addresses.ts';
import type { CloudRules } from '../core/cloud.ts';
import { dialectOfApi } from '../core/conversation.ts';
import type { Timeouts } from '../core/provider.ts';
import { Secret } from '../core/secret.ts';
import { cloudDialect, cloudLines, cloudProblems, foreignKeys, readCloud } from './clouds.ts';
import { type Address, type ConfigIssue, leadsTo, pathText } from './errors.ts';
import type { CheckedFile, Environment } from './config-file.ts';
import { givenOptions, optionLines } from './options.ts';
import type { ConfigFile } from './schema.ts';
import { providerOptions, timeoutOptions } from './sections.ts';
import {
  HeaderSettings,
  type CredentialSettings,
  type OriginLine,
  type ProviderSettings,
  type TargetSettings,
} from './settings.ts';

/** What the configuration must know of a provider that it does not declare itself. */
export interface KnownProvider {
  /** The wire format that it speaks; absent for what cannot be declared. */
  readonly dialect?: string;
  /** The provider also has an address that speaks messages. */
  readonly messages?: object;
  /** It speaks the Responses API in addition to its own. */
  readonly responses?: object;
  /** Environment variable of the key; absent for engines that need none. */
  readonly keyVariable?: string;
  /** The beginning of the vendor's keys, if no other vendor uses it. */
  readonly keyPrefix?: string;
  /** Environment variable that replaces the vendor's address. */
  readonly baseUrlVariable?: string;
  /** Part of the gateway itself: its name cannot be declared. */
  readonly embedded?: true;
  /** It is found by an operator's own names. */
  readonly cloud?: CloudRules;
}

/** Vendors and engines with presets, and the embedded engine, by id. */
export type KnownProviders = ReadonlyMap<string, KnownProvider>;

interface ProviderScope {
  readonly known: KnownProviders;
  readonly env: Environment;
  /** The gateway's own listeners. */
  readonly own: readonly Address[];
  report(issue: ConfigIssue): void;
}

export type ProviderForm = NonNullable<NonNullable<ConfigFile['providers']>[string]>;
type TimeoutsForm = NonNullable<ConfigFile['timeouts']>;

/** Checks each declaration as far as it can be checked without asking anyone. */
export function readProviders(
  file: CheckedFile | undefined,
  scope: ProviderScope,
): readonly ProviderSettings[] {
  checkEnvironment(file, scope);
  if (file === undefined) return [];
  return Object.entries(file.content.providers ?? {}).map(([id, form]) => {
    const declared = form ?? {};
    const complain = (message: string, ...keys: readonly string[]): void =>
      scope.report(file.issue(['providers', id, ...keys], message));
    checkCompleteness(id, declared, {
      scope,
      file,
      complain,
      lacks: (message) =>
        scope.report({ ...file.issue(['providers', id], message), unresolved: true }),
    });
    const keys = keysProblem(declared);
    if (keys !== undefined) {
      complain(keys, declared.credentials === undefined ? 'api_key' : 'credentials');
    }
    if (declared.base_url !== undefined) {
      const problem = addressProblem(declared.base_url, scope.own);
      if (problem !== undefined) complain(problem, 'base_url');
    }
    checkOptions(id, declared, { scope, complain });
    const { dialect, baseUrl, like, ...options } = givenOptions(providerOptions, declared);
    return {
      id,
      ...(dialect === undefined ? {} : { dialect }),
      ...(baseUrl === undefined ? {} : { baseUrl }),
      ...(like === undefined ? {} : { like }),
      options,
      ...readCloud(declared, file),
      ...readKeys(declared),
      headers: readHeaders(declared, complain),
      ...readNetwork(declared, file, complain),
      ...givenTimeouts(declared.timeouts),
      where: file.where(['providers', id]),
    };
  });
}

/**
 * `timeouts` of a provider or a route; absent ones stay absent. A first_event that is set without reasoning
 * holds for models that reason, too.
 */
export function givenTimeouts(form: TimeoutsForm | null | undefined): {
  readonly timeouts?: Partial<Timeouts>;
} {
  const {
    firstEventMs,
    reasoningMs = firstEventMs,
    ...others
  } = givenOptions(timeoutOptions, form);
  const timeouts = {
    ...others,
    ...(firstEventMs === undefined ? {} : { firstEventMs }),
    ...(reasoningMs === undefined ? {} : { reasoningMs }),
  };
  return Object.keys(timeouts).length === 0 ? {} : { timeouts };
}

/** Reports options that mean nothing for the dialect of the address. */
function checkOptions(id: string, form: ProviderForm, { scope, complain }: Check): void {
  const cloud = vendorOf(id, form, scope)?.cloud;
  for (const key of foreignKeys(form, cloud)) complain('does not apply to this provider', key);
  if (cloud !== undefined) return;
  const dialect = form.dialect ?? scope.known.get(id)?.dialect;
  if (form.like !== undefined) checkLikeness(form.like, dialect, { scope, complain });
  if (form.betas !== undefined && (dialect === 'openai-chat' || dialect === 'openai-responses')) {
    complain(`does not apply to ${dialect}: these servers get no anthropic-beta`, 'betas');
  }
  if (form.region !== undefined && dialect === 'anthropic-messages') {
    complain(
      'does not apply to anthropic-messages: these servers receive inference_geo themselves',
      'region',
    );
  }
}

function checkLikeness(like: string, dialect: string | undefined, check: Check): void {
  const known = check.scope.known.get(like);
  if (known === undefined || known.embedded === true) {
    check.complain(`"${like}" is not a known vendor`, 'like');
  } else if (dialect !== undefined && !speaks(known, dialect)) {
    check.complain(`"${like}" speaks ${known.dialect}, this address ${dialect}`, 'like');
  }
}

function speaks(known: KnownProvider, dialect: string): boolean {
  if (dialect === 'anthropic-messages' && known.messages !== undefined) return true;
  if (dialect === 'openai-responses' && known.responses !== undefined) return true;
  return known.dialect === dialect;
}

/** The known vendor that a provider is, by its word or its name. */
function vendorOf(
  id: string,
  { like }: ProviderForm,
  scope: ProviderScope,
): KnownProvider | undefined {
  return scope.known.get(like ?? id);
}

type Complain = (message: string, ...keys: readonly string[]) => void;

interface Check {
  readonly scope: ProviderScope;
  readonly complain: Complain;
}

interface CompletenessCheck extends Check {
  readonly file: CheckedFile;
  /** Reports what another environment may have. */
  lacks(message: string): void;
}

function checkCompleteness(id: string, form: ProviderForm, check: CompletenessCheck): void {
  const { scope, file, complain } = check;
  const known = scope.known.get(id);
  const cloud = vendorOf(id, form, scope)?.cloud;
  if (cloud !== undefined) {
    for (const each of cloudProblems(form, cloud, { file, env: scope.env })) {
      const { key, message, unresolved } = each;
      if (unresolved === true) check.lacks(message);
      else complain(message, ...(key === undefined ? [] : [key]));
    }
    return;
  }
  if (known?.embedded === true) complain(`"${id}" is the embedded engine; choose another name`);
  if (known !== undefined) return checkKey(known, form, check);
  const missing = [
    ...(form.dialect === undefined ? ['dialect'] : []),
    ...(form.base_url === undefined ? ['base_url'] : []),
  ];
  if (missing.length > 0) {
    complain(`"${id}" is not a known vendor: ${missing.join(' and ')} must be set`);
  }
}

/** Without a key every call to the vendor would fail; an address of one's own may need none. */
function checkKey(
  known: KnownProvider,
  form: ProviderForm,
  { scope, lacks }: CompletenessCheck,
): void {
  const { keyVariable, baseUrlVariable } = known;
  if (keyVariable === undefined || isSet(scope.env, keyVariable)) return;
  if (form.api_key !== undefined || form.credentials !== undefined) return;
  if (Object.keys(form.headers ?? {}).length > 0) return;
  if (form.base_url !== undefined || isSet(scope.env, baseUrlVariable)) return;
  lacks(`has no key: set ${keyVariable} or api_key`);
}

/** Whether a target can be called by this one of OpenAI's APIs. Servers of one of them are taken to have both. */
export function hasApi(
  { provider, model }: Pick<TargetSettings, 'provider' | 'model'>,
  api: keyof typeof dialectOfApi,
  scope: { readonly file: CheckedFile; readonly known: KnownProviders; readonly env: Environment },
): boolean {
  const form = declaration(scope.file, provider) ?? {};
  const known = scope.known.get(provider);
  const cloud = scope.known.get(form.like ?? provider)?.cloud;
  if (cloud === undefined) {
    return known?.embedded === true
      ? api === 'chat'
      : (form.dialect ?? known?.dialect) !== 'anthropic-messages';
  }
  const wanted = dialectOfApi[api];
  const isSpoken = (asked: ProviderForm): boolean =>
    cloudDialect(model, asked, cloud, scope) === wanted;
  return isSpoken(form) || (cloud.responses === true && isSpoken({ ...form, dialect: wanted }));
}

/** A vendor's address variable that was meant for clients of this gateway would call it in a circle. */
function checkEnvironment(file: CheckedFile | undefined, scope: ProviderScope): void {
  for (const [id, { keyVariable, baseUrlVariable = '' }] of scope.known) {
    const address = scope.env[baseUrlVariable];
    if (address === undefined || address === '') continue;
    const declared = declaration(file, id);
    if (declared?.base_url !== undefined) continue;
    if (declared === undefined && !isSet(scope.env, keyVariable)) continue;
    const problem = addressProblem(address, scope.own);
    if (problem !== undefined) scope.report({ path: baseUrlVariable, message: problem });
  }
}

function declaration(file: CheckedFile | undefined, id: string): Partial<ProviderForm> | undefined {
  return file?.declared.has(id) === true ? (file.content.providers?.[id] ?? {}) : undefined;
}

function isSet(env: Environment, name: string | undefined): boolean {
  return name !== undefined && env[name] !== undefined && env[name] !== '';
}

/** What is wrong with a base address. The address itself is not quoted: it may hold a secret. */
function addressProblem(text: string, own: readonly Address[]): string | undefined {
  if (/[{}]/.test(text)) return 'contains an unresolved placeholder in braces';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    return 'is not an http:// or https:// address';
  }
  if (url.username !== '' || url.password !== '') {
    return 'holds a user or password; use api_key or headers';
  }
  if (url.search !== '' || url.hash !== '') return 'must end with its path, without ? or #';
  const endpoint = /\/(chat\/completions|(?<=\/v\d+\/)(?:completions|messages|responses))\/*$/.exec(
    url.pathname,
  );
  if (endpoint !== null) {
    return `ends with an endpoint: leave /${endpoint[1] ?? ''} out, the gateway adds the path of each call`;
  }
  return hostProblem(url, own);
}

function hostProblem(url: URL, own: readonly Address[]): string | undefined {
  if (isForbiddenHost(url.hostname)) return forbiddenHost;
  if (own.some((address) => leadsTo(url, address, ownNames()))) {
    return 'points to this gateway itself';
  }
  return undefined;
}

function ownNames(): ReadonlySet<string> {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return new Set([hostname().toLowerCase(), ...addresses.map(({ address }) => address)]);
}

/** Headers that the HTTP client writes itself: a second one would contradict it. */
const ownHeaders = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

function readHeaders(form: ProviderForm, complain: Complain): HeaderSettings {
  const headers = new HeaderSettings();
  for (const [name, value] of Object.entries(form.headers ?? {})) {
    const lower = name.toLowerCase();
    if (ownHeaders.has(lower)) complain('is set by the gateway', 'headers', name);
    if (headers.has(lower)) complain('occurs twice, in two spellings', 'headers', name);
    headers.set(lower, value);
  }
  return headers;
}

/** One key has no name; several have: their own, or `key-1`, `key-2` of a list. */
function readKeys({ api_key: apiKey, credentials }: ProviderForm): {
  readonly apiKey?: Secret;
  readonly credentials?: readonly CredentialSettings[];
} {
  const several = typeof credentials === 'string' ? {} : (credentials ?? {});
  const named = Object.entries(several).map(([name, key]) => ({
    name,
    key: new Secret(key),
  }));
  if (named.length > 0) return { credentials: named };
  if (typeof apiKey === 'string') return { apiKey: new Secret(apiKey) };
  const [only, ...others] = apiKey ?? [];
  if (only === undefined) return {};
  if (others.length === 0) return { apiKey: new Secret(only) };
  const listed = [only, ...others].map((key, i) => ({
    name: `key-${i + 1}`,
    key: new Secret(key),
  }));
  return { credentials: listed };
}

/** What is wrong with the keys of a provider together; undefined when nothing is. */
function keysProblem({ api_key: apiKey, credentials }: ProviderForm): string | undefined {
  if (typeof credentials === 'string') return undefined;
  const names = Object.keys(credentials ?? {});
  if (credentials !== undefined && names.length === 0) return 'needs at least one key';
  if (apiKey !== undefined && names.length > 0)
    return 'cannot be combined with api_key: use one of them';
  const keys = [...Object.values(credentials ?? {}), ...(Array.isArray(apiKey) ? apiKey : [])];
  return new Set(keys).size < keys.length ? 'holds the same key twice' : undefined;
}

/** `proxy` and `ca`: how a provider is reached where the network lets nothing out directly (S19). */
function readNetwork(
  { proxy, ca }: ProviderForm,
  file: CheckedFile,
  complain: Complain,
): Pick<ProviderSettings, 'proxy' | 'ca'> {
  // The text itself is not quoted: it may hold a password.
  if (proxy !== undefined && !isProxy(proxy)) {
    complain('is neither none nor an http:// or https:// address', 'proxy');
  }
  const pem = ca === undefined ? undefined : readAuthorities(ca, file, complain);
  return {
    ...(proxy === undefined ? {} : { proxy: new Secret(proxy) }),
    ...(pem === undefined ? {} : { ca: pem }),
  };
}

/** Proxies of the environment that the gateway cannot use: it would go past them without a word. */
export function proxyWarnings(env: Environment): readonly string[] {
  return ['https_proxy', 'http_proxy', 'all_proxy']
    .flatMap((name) => [name, name.toUpperCase()])
    .filter((name) => {
      const text = env[name] ?? '';
      return text !== '' && !isProxy(text.includes('://') ? text : `http://${text}`);
    })
    .map(
      (name) =>
        `${name} is not an http:// or https:// address: it is ignored and providers are connected directly`,
    );
}

function isProxy(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return text === 'none' || url?.protocol === 'http:' || url?.protocol === 'https:';
}

function readAuthorities(path: string, file: CheckedFile, complain: Complain): string | undefined {
  try {
    const pem = readFileSync(resolve(dirname(file.location.path), path), 'utf8');
    // Node takes what it cannot read for no authority at all, and says nothing.
    void new X509Certificate(pem);
    return pem;
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    complain(`"${path}" cannot be read as a PEM file of certificates (${why})`, 'ca');
    return undefined;
  }
}

/** The lines of `check` for a provider: what the file sets; secrets read `[secret]`. */
export function providerLines(
  { id, dialect, baseUrl, like, options, timeouts, ...others }: ProviderSettings,
  file: CheckedFile,
): readonly OriginLine[] {
  const path = ['providers', id];
  const form = file.content.providers?.[id];
  const line = (keys: readonly string[], value: string): OriginLine => ({
    path: pathText([...path, ...keys]),
    value,
    origin: file.where([...path, ...keys]),
  });
  const lines = [
    ...optionLines(providerOptions, { dialect, baseUrl, like, ...options }, { path, file }),
    ...optionLines(timeoutOptions, timeouts ?? {}, { path: [...path, 'timeouts'], file }),
  ].filter(({ origin }) => origin !== 'default');
  const { apiKey, credentials = [], proxy } = others;
  const secrets = [
    ...(apiKey === undefined ? [] : [line(['api_key'], apiKey.toString())]),
    ...credentials.map(({ name, key }) => line(['credentials', name], key.toString())),
    // A header may be a credential under any name.
    ...Object.keys(form?.headers ?? {}).map((name) => line(['headers', name], '[secret]')),
    ...(proxy === undefined ? [] : [line(['proxy'], proxy.toString())]),
    ...(form?.ca === undefined ? [] : [line(['ca'], form.ca)]),
  ];
  const all = [...lines, ...cloudLines(others.cloud, path, file), ...secrets];
  return all.length === 0 ? [line([], 'preset')] : all;
}
