/**
 * Flags, environment and file made into `Settings`: flag before variable before file before default.
 * Everything that is wrong is reported together, with file and line.
 */
import { dirname, join, resolve } from 'node:path';
import { forbiddenHost, isForbiddenHost } from '../core/addresses.ts';
import type { HedgeRule, RetryRules, Timeouts } from '../core/provider.ts';
import { Secret } from '../core/secret.ts';
import { accessOrigins, readAccess } from './access.ts';
import { type BaseSettings, type Flags, outerChoice, readBaseSettings } from './base.ts';
import {
  type CheckedFile,
  configPath,
  type Environment,
  findConfig,
  misnamedConfig,
  readConfig,
} from './config-file.ts';
import {
  type Address,
  ConfigError,
  type ConfigIssue,
  isLoopback,
  pathText,
  suggestion,
} from './errors.ts';
import { Referred } from './referred.ts';
import { type Options, givenOptions, optionLines, readOptions } from './options.ts';
import { priceOrigins, readPrices } from './prices.ts';
import {
  type KnownProviders,
  givenTimeouts,
  hasApi,
  providerLines,
  proxyWarnings,
  readProviders,
} from './providers.ts';
import type { ConfigFile } from './schema.ts';
import {
  type LedgerSettings,
  type LimitSettings,
  clientOptions,
  contentOptions,
  drainOptions,
  hedgeOptions,
  idempotencyOptions,
  keepAliveOptions,
  ledgerOptions,
  limitOptions,
  localModelOptions,
  localOptions,
  responseOptions,
  retryOptions,
  routeOptions,
  timeoutOptions,
} from './sections.ts';
import type {
  ClientSettings,
  LocalModelEntry,
  LocalSettings,
  OriginLine,
  RouteSettings,
  Settings,
  TargetSettings,
  WebhookSettings,
} from './settings.ts';
import { oidcOrigins, readOidc } from './oidc.ts';
import { keyWarnings, variableWarnings } from './slips.ts';
import { readStorage } from './storage.ts';
import { readAdminCertificate, readTls } from './tls.ts';
import { readTraces, traceOrigins } from './traces.ts';

export interface LoadOptions {
  readonly flags: Flags;
  readonly env: Environment;
  /** Absolute; where relative paths of flags and variables start, and `gateway.yaml` is searched for. */
  readonly cwd: string;
  /** Providers that exist without a declaration. */
  readonly knownProviders: KnownProviders;
  /**
   * The handling of entries with unresolved references. `required`: they are errors. `optional`: they are omitted
   * and named in `unresolved`, for commands of a person whose shell lacks the secrets of the gateway.
   */
  readonly secrets?: 'required' | 'optional';
  /** Replaces the text of the config file. */
  readonly configText?: string;
  /** Receives what the references of the file stand for. */
  readonly referred?: Referred;
  /** Called with the absolute path of each file of TLS before it is read. */
  readonly reading?: (file: string) => void;
}

/** The location of the gateway with these flags, variables and file. */
export interface GatewayLocation {
  /** Absolute. */
  readonly dataDir: string;
  readonly adminListen: Address;
  /** Whether the admin plane speaks TLS. */
  readonly adminTls: boolean;
  /** PEM of its certificate, where this user can read it. */
  readonly adminCertificate?: string;
  /** A person gave it with http:// or https://: no other gateway is meant. */
  readonly byUrl?: true;
}

/** Parts of the file and the environment that say it. */
const locationNames = ['data_dir', 'admin_listen', '--', 'MODEL_GATEWAY_'];

/**
 * Reads only where the gateway is: a command that asks a running one needs no secret and no valid rest of the file.
 * The admin address may begin with http:// or https://, for a gateway of another machine.
 * @throws ConfigError when that cannot be known
 */
export async function loadLocation({
  flags,
  env,
  cwd,
}: Omit<LoadOptions, 'knownProviders'>): Promise<GatewayLocation> {
  const issues: ConfigIssue[] = [];
  const report = (issue: ConfigIssue): void => void issues.push(issue);
  const { file } = await openConfig({ flags, env, cwd }, report);
  const remote = readAdminUrl(outerChoice('admin-listen', { flags, env })?.text);
  const given =
    remote === undefined
      ? { flags, env }
      : { flags: { ...flags, 'admin-listen': remote.address, 'admin-public': 'yes' }, env };
  const { dataDir, adminListen } = readBaseSettings({ ...given, cwd, file, report, calls: true });
  // A directory that a flag or a variable names is known without the file, however broken that is.
  const needsFile = outerChoice('data-dir', { flags, env }) === undefined;
  const wrong = issues.filter(
    ({ path, file: inFile }) =>
      (needsFile && path === '') ||
      ((needsFile || inFile === undefined) && locationNames.some((name) => path.startsWith(name))),
  );
  if (wrong.length > 0) throw new ConfigError(wrong);
  if (remote !== undefined) return { dataDir, adminListen, adminTls: remote.tls, byUrl: true };
  const adminCertificate = readAdminCertificate(file);
  return {
    dataDir,
    adminListen,
    adminTls: (file?.content.admin_tls ?? undefined) !== undefined,
    ...(adminCertificate === undefined ? {} : { adminCertificate }),
  };
}

/** `https://gateway.internal` or `http://10.0.0.5:8687/`; undefined for what has no such beginning. */
function readAdminUrl(
  text: string | undefined,
): { readonly address: string; readonly tls: boolean } | undefined {
  const [, scheme, host] = /^(https?):\/\/([^/?#@]+)\/?$/i.exec(text ?? '') ?? [];
  if (scheme === undefined || host === undefined) return undefined;
  const tls = scheme.toLowerCase() === 'https';
  return { tls, address: /:\d+$/.test(host) ? host : `${host}:${tls ? '443' : '80'}` };
}

/** The file whose change is a change of the config, whether it is there or not (absolute). */
export function watchedConfig({
  flags,
  env,
  cwd,
}: Pick<LoadOptions, 'flags' | 'env' | 'cwd'>): string {
  return configPath(outerChoice('config', { flags, env })?.text, cwd);
}

/** @throws ConfigError with every issue. */
export async function loadSettings(options: LoadOptions): Promise<Settings> {
  const { flags, env, cwd, knownProviders: known } = options;
  const { secrets = 'required', referred = new Referred(), reading } = options;
  const issues: ConfigIssue[] = [];
  const unresolved: ConfigIssue[] = [];
  const report = (issue: ConfigIssue): void => {
    const isOptional = secrets === 'optional' && issue.unresolved === true;
    (isOptional && !isNeeded(issue) ? unresolved : issues).push(issue);
  };
  checkProcess(env, report);
  const { file, origin } = await openConfig({ ...options, referred }, report);
  const base = readBaseSettings({ flags, env, cwd, file, report });
  const tls = readTls(file, { report, now: Date.now(), ...(reading && { reading }) });
  const own = [base.listen, base.adminListen];
  const providers = readProviders(file, { known, env, own, report });
  const routes = file === undefined ? [] : readRoutes(file, { known, env, report });
  const local = readLocal(file, { dataDir: base.dataDir, report });
  const stored = readStorage({ flags, env, cwd, file, report });
  const inMemory = stored.storage.database === 'memory';
  const prices = readPrices(file, { known, report });
  const access = await readAccess(file, { report });
  const webhooks = readWebhooks(file, { report });
  const traces = readTraces(file, { env, report });
  const oidc = readOidc(file, { report });
  const sections = readSections(file, { workers: base.workers, inMemory, report });
  if (issues.length > 0) {
    throw new ConfigError(inOrder(issues).map((each) => referred.issue(each)));
  }
  return {
    ...base,
    ...sections,
    ...access,
    tls: tls.tls,
    adminTls: tls.adminTls,
    providers,
    routes,
    local,
    prices,
    storage: stored.storage,
    webhooks,
    traces: traces.settings,
    oidc,
    unresolved,
    configFile: file?.location.path,
    watchedConfig: watchedConfig(options),
    configIsEmpty: file?.isEmpty === true,
    origins: [
      ...base.origins,
      ...tls.origins,
      origin,
      ...stored.origins,
      ...sectionLines(sections, file),
      ...localLines(local, file),
      ...(file === undefined ? [] : providers.flatMap((each) => providerLines(each, file))),
      ...(file === undefined ? [] : routes.flatMap((each) => routeLines(each, file))),
      ...priceOrigins(prices, file),
      ...accessOrigins(access, file),
      ...webhookOrigins(webhooks, file),
      ...traceOrigins(traces, file),
      ...oidcOrigins(oidc, file),
    ],
    warnings: [
      ...(file === undefined ? misnamedConfig(cwd) : file.warnings),
      ...exposure(base, tls.adminTls !== undefined),
      ...tls.warnings,
      ...stored.warnings,
      ...traces.warnings,
      ...proxyWarnings(env),
      ...keyWarnings(file, { known, env }),
      ...variableWarnings(env),
    ],
  };
}

type Sections = Pick<
  Settings,
  | 'limits'
  | 'timeouts'
  | 'retry'
  | 'clients'
  | 'drain'
  | 'ledger'
  | 'idempotency'
  | 'content'
  | 'responses'
>;

/** The sections whose options have defaults. @param inMemory the store is in memory, which lowers some defaults */
function readSections(
  file: CheckedFile | undefined,
  {
    workers,
    inMemory,
    report,
  }: {
    readonly workers: number;
    readonly inMemory: boolean;
    report(this: void, issue: ConfigIssue): void;
  },
): Sections {
  return {
    limits: readLimits(file, { workers, report }),
    timeouts: readTimeouts(file),
    retry: givenOptions(retryOptions, file?.content.retry),
    clients: readClients(file),
    drain: readOptions(drainOptions, file?.content.drain),
    ledger: readLedger(file, report),
    idempotency: readOptions(idempotencyOptions, file?.content.idempotency, inMemory),
    content: readOptions(contentOptions, file?.content.content, inMemory),
    responses: readOptions(responseOptions, file?.content.responses, inMemory),
  };
}

/** The lines of `check` for the options that have a default. */
function sectionLines(
  { clients, ...sections }: Sections,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  const lines = (name: keyof typeof sections, options: Options): readonly OriginLine[] =>
    optionLines(options, sections[name], { path: [name], file });
  const isOne = typeof file?.content.clients?.keep_alive === 'number';
  const keepAlive = optionLines(keepAliveOptions, clients.keepAliveMs, {
    path: ['clients', 'keep_alive'],
    file,
  });
  return [
    ...lines('ledger', ledgerOptions),
    ...lines('idempotency', idempotencyOptions),
    ...lines('content', contentOptions),
    ...lines('responses', responseOptions),
    ...lines('limits', limitOptions),
    ...lines('timeouts', timeoutOptions),
    ...lines('retry', retryOptions),
    // One value for all endpoints is at keep_alive itself.
    ...keepAlive.map((line) =>
      isOne && file !== undefined
        ? { ...line, origin: file.where(['clients', 'keep_alive']) }
        : line,
    ),
    ...optionLines(clientOptions, clients, { path: ['clients'], file }),
    ...lines('drain', drainOptions),
  ];
}

/** Without them a command would read another store. */
function isNeeded({ path }: ConfigIssue): boolean {
  return /^(data_dir|storage)\b/.test(path);
}

/** S19: certificates are always verified; a private authority is added by NODE_EXTRA_CA_CERTS. */
function checkProcess(env: Environment, report: (issue: ConfigIssue) => void): void {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] !== '0') return;
  report({
    path: 'NODE_TLS_REJECT_UNAUTHORIZED',
    message:
      'disables all certificate verification; unset it and name your authority in NODE_EXTRA_CA_CERTS',
  });
}

async function openConfig(
  {
    flags,
    env,
    cwd,
    configText: text,
    referred = new Referred(),
  }: Omit<LoadOptions, 'knownProviders'>,
  report: (issue: ConfigIssue) => void,
): Promise<{ readonly file: CheckedFile | undefined; readonly origin: OriginLine }> {
  const asked = outerChoice('config', { flags, env });
  const location = findConfig(asked?.text, cwd);
  const origin = asked?.origin ?? 'default';
  if (location === undefined)
    return { file: undefined, origin: { path: 'config', value: 'none', origin } };
  const file = await readConfig(location, { env, referred, text });
  for (const issue of file.issues) report(issue);
  return { file, origin: { path: 'config', value: location.path, origin } };
}

/** Each worker gets its part of what is bounded for all of them: a part is 1 at least. */
function readLimits(
  file: CheckedFile | undefined,
  { workers, report }: { readonly workers: number; report(issue: ConfigIssue): void },
): LimitSettings {
  for (const name of ['streams', 'connections'] as const) {
    if (file === undefined || (file.content.limits?.[name] ?? workers) >= workers) continue;
    const message = `must be at least ${workers}, one for each of the workers`;
    report(file.issue(['limits', name], message));
  }
  return readOptions(limitOptions, file?.content.limits);
}

function readTimeouts(file: CheckedFile | undefined): Timeouts {
  const { minBytesPerS: _, ...usual } = readOptions(timeoutOptions, undefined);
  return { ...usual, ...givenTimeouts(file?.content.timeouts).timeouts };
}

function readClients(file: CheckedFile | undefined): ClientSettings {
  const form = file?.content.clients ?? {};
  const given = form.keep_alive;
  const forms =
    typeof given === 'number' ? { chat: given, messages: given, responses: given } : given;
  return {
    ...readOptions(clientOptions, form),
    keepAliveMs: readOptions(keepAliveOptions, forms),
  };
}

/** Sums by hour are what is left of older calls: they are kept at least as long as the calls. */
function readLedger(
  file: CheckedFile | undefined,
  report: (issue: ConfigIssue) => void,
): LedgerSettings {
  const ledger = readOptions(ledgerOptions, file?.content.ledger);
  if (ledger.keepHoursMs >= ledger.keepMs) return ledger;
  if (file?.isSet(['ledger', 'keep_hours']) === true) {
    const message = 'must be at least as long as keep, since only the sums remain of older calls';
    report(file.issue(['ledger', 'keep_hours'], message));
  }
  return { ...ledger, keepHoursMs: ledger.keepMs };
}

/** S9: it was said that the admin plane may be reached; that nothing encrypts it is said once more. */
function exposure({ adminListen }: BaseSettings, isEncrypted: boolean): readonly string[] {
  return isEncrypted || isLoopback(adminListen.host)
    ? []
    : [
        `admin_listen ${adminListen.host}: other machines can reach the unencrypted admin plane; set admin_tls or put a TLS proxy in front of it`,
      ];
}

/** Issues outside the file first, then line by line. */
function inOrder(issues: readonly ConfigIssue[]): readonly ConfigIssue[] {
  const line = (issue: ConfigIssue): number => (issue.file === undefined ? -1 : (issue.line ?? 0));
  return [...issues].sort((a, b) => line(a) - line(b));
}

/** The hooks; addresses that cannot be one are reported, and never quoted: they may hold a secret. */
function readWebhooks(
  file: CheckedFile | undefined,
  scope: { report(issue: ConfigIssue): void },
): readonly WebhookSettings[] {
  const forms = file?.content.webhooks ?? [];
  return forms.map(({ url, format = 'json', secret, events }, i) => {
    const wrong = [
      ['url', addressProblem(url)],
      ['secret', hookSecretProblem(format, secret)],
    ] as const;
    for (const [member, problem] of wrong) {
      if (problem !== undefined && file !== undefined) {
        scope.report(file.issue(['webhooks', i, member], problem));
      }
    }
    return {
      url,
      format,
      ...(secret === undefined ? {} : { secret: new Secret(secret) }),
      ...(events === undefined ? {} : { events }),
    };
  });
}

function hookSecretProblem(
  format: WebhookSettings['format'],
  secret: string | undefined,
): string | undefined {
  if (format === 'json') {
    return secret === undefined ? 'is missing: it signs each event' : undefined;
  }
  if (format === 'pagerduty') {
    return secret === undefined ? 'is missing: the integration key of the service' : undefined;
  }
  return secret === undefined
    ? undefined
    : `is not used by ${format}, whose address is the secret: remove it`;
}

function addressProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    return 'is not an http:// or https:// address';
  }
  if (url.username !== '' || url.password !== '') return 'holds a user or password';
  if (isForbiddenHost(url.hostname)) return forbiddenHost;
  return undefined;
}

/** The form in `check`: the host only, since paths of hooks are usually secrets. */
function webhookOrigins(
  webhooks: readonly WebhookSettings[],
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  if (file === undefined) return [];
  return webhooks.map(({ url, format }, i) => {
    const path = ['webhooks', i];
    const shown = URL.canParse(url) ? new URL(url).origin : '[secret]';
    const value = format === 'json' ? shown : `${shown} (${format})`;
    return { path: pathText(path), value, origin: file.where(path) };
  });
}

// `local:` of the file: where model files lie, and how single models are run.

interface LocalScope {
  /** Absolute. */
  readonly dataDir: string;
  report(issue: ConfigIssue): void;
}

type ModelForm = NonNullable<NonNullable<NonNullable<ConfigFile['local']>['models']>[string]>;

/** The model that ships; its file cannot be another. */
const demonstration = 'tiny';

function readLocal(file: CheckedFile | undefined, scope: LocalScope): LocalSettings {
  const local = file?.content.local ?? {};
  const directory = file === undefined ? '' : dirname(file.location.path);
  const { modelsDir: folder, ...options } = givenOptions(localOptions, local);
  const models = Object.entries(local.models ?? {}).map(([name, form]) => {
    const isDemonstration = name.toLowerCase() === demonstration;
    if (isDemonstration && file !== undefined && form?.path !== undefined) {
      const message = 'tiny is the built-in model; its file cannot be changed';
      scope.report(file.issue(['local', 'models', name, 'path'], message));
    }
    return readModel(name, form ?? {}, directory);
  });
  return {
    ...options,
    modelsDir: folder === undefined ? join(scope.dataDir, 'models') : resolve(directory, folder),
    models,
  };
}

function readModel(name: string, form: ModelForm, directory: string): LocalModelEntry {
  const { path, sha256, ...options } = givenOptions(localModelOptions, form);
  return {
    name,
    ...options,
    ...(path === undefined ? {} : { path: resolve(directory, path) }),
    ...(sha256 === undefined ? {} : { sha256: sha256.toLowerCase() }),
  };
}

/** The lines of `check`: the options of all models, and what the file sets for single ones. */
function localLines(settings: LocalSettings, file: CheckedFile | undefined): readonly OriginLine[] {
  const models = settings.models.flatMap((model) =>
    optionLines(localModelOptions, model, { path: ['local', 'models', model.name], file }),
  );
  return [
    ...optionLines(localOptions, settings, { path: ['local'], file }),
    ...models.filter(({ origin }) => origin !== 'default'),
  ];
}

// `models:` of the file: names, and who answers them.

interface ModelScope {
  readonly known: KnownProviders;
  readonly env: Environment;
  report(issue: ConfigIssue): void;
}

type RouteForm = NonNullable<ConfigFile['models']>[string];

/** The routes; a target whose provider is neither declared nor known is reported with its line. */
function readRoutes(file: CheckedFile, scope: ModelScope): readonly RouteSettings[] {
  return Object.entries(file.content.models ?? {}).map(([name, form]) => {
    const route = typeof form === 'string' ? { targets: [form] } : form;
    const targets = route.targets.map((each) =>
      typeof each === 'string' ? readTarget(each, 1) : readTarget(each.target, each.weight ?? 1),
    );
    const own: Partial<Exclude<RouteForm, string>> = typeof form === 'string' ? {} : form;
    targets.forEach((target, index) => {
      const problem = providerProblem(target.provider, file, scope);
      if (problem !== undefined) {
        scope.report({
          ...file.issue(['models', name, ...targetPath(form, index)], problem.text),
          ...(problem.unresolved === undefined ? {} : { unresolved: problem.unresolved }),
        });
      } else if (own.api !== undefined && !hasApi(target, own.api, { ...scope, file })) {
        const called = `${target.provider}/${target.model}`;
        const message = `"${called}" has no ${own.api} API: remove api, or name another target`;
        scope.report(file.issue(['models', name, 'api'], message));
      }
    });
    const rules = readRules(own, file);
    if (rules.hedge !== undefined && rules.retry?.afterSent === false) {
      scope.report(file.issue(['models', name, 'hedge'], hedgeProblem));
    }
    const { order = 'listed', ...options } = givenOptions(routeOptions, own);
    return {
      name,
      targets,
      order,
      ...options,
      ...rules,
      ...givenTimeouts(own.timeouts),
      where: file.where(['models', name]),
    };
  });
}

const hedgeProblem =
  'sends a request twice, which retry.after_sent: false forbids: remove one of them';

/** The route's rules of retries before those of the file; the hedge is the route's alone. */
function readRules(
  { retry, hedge }: Partial<Exclude<RouteForm, string>>,
  { content }: CheckedFile,
): { readonly retry?: RetryRules; readonly hedge?: HedgeRule } {
  const rules = {
    ...givenOptions(retryOptions, content.retry),
    ...givenOptions(retryOptions, retry),
  };
  const afterMs = hedge?.after;
  return {
    ...(Object.keys(rules).length === 0 ? {} : { retry: rules }),
    ...(afterMs === undefined ? {} : { hedge: { afterMs } }),
  };
}

/** Where the target of an index is below its name. */
function targetPath(form: RouteForm, index: number): readonly (string | number)[] {
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
): { readonly text: string; readonly unresolved?: true } | undefined {
  if (file.declared.has(provider)) return undefined;
  const preset = known.get(provider);
  if (preset === undefined) {
    const names = [...file.declared, ...known.keys()];
    return { text: `there is no provider "${provider}"${suggestion(provider, names)}` };
  }
  const { keyVariable } = preset;
  if (keyVariable === undefined || (env[keyVariable] ?? '') !== '') return undefined;
  const text = `provider "${provider}" has no key: set ${keyVariable} or declare it under providers`;
  // The variable may be set where the gateway runs.
  return { text, unresolved: true };
}

/** The lines of `check` for a route: its targets, and what the file sets. */
function routeLines(
  { name, targets, order, retry, hedge, timeouts, ...options }: RouteSettings,
  file: CheckedFile,
): readonly OriginLine[] {
  const path = ['models', name];
  const form = file.content.models?.[name];
  const targetLines = targets.map(({ provider, model, weight }, index) => {
    const keys = [...path, ...(form === undefined ? [] : targetPath(form, index))];
    const share = order === 'weighted' ? ` (weight ${weight})` : '';
    return {
      path: pathText(keys),
      value: `${provider}/${model}${share}`,
      origin: file.where(keys),
    };
  });
  return [
    ...targetLines,
    ...optionLines(routeOptions, { order, ...options }, { path, file }),
    ...optionLines(retryOptions, retry ?? {}, { path: [...path, 'retry'], file }),
    ...optionLines(hedgeOptions, hedge ?? {}, { path: [...path, 'hedge'], file }),
    ...optionLines(timeoutOptions, timeouts ?? {}, { path: [...path, 'timeouts'], file }),
  ].filter(({ origin }) => origin !== 'default');
}
