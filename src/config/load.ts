/**
 * Flags, environment and file made into `Settings`: flag before variable before file before default.
 * Everything that is wrong is reported together, with file and line (N3).
 */
import type { Timeouts } from '../core/provider.ts';
import { accessOrigins, readAccess } from './access-section.ts';
import { isLoopback } from './address.ts';
import { outerChoice, readBaseSettings, type BaseSettings } from './base-settings.ts';
import { findConfig, misnamedConfig, readConfig, type CheckedFile } from './config-file.ts';
import { ConfigError, type ConfigIssue } from './config-error.ts';
import type { Flags } from './flags.ts';
import type { KnownProviders } from './known-provider.ts';
import { contentOrigins, readContent } from './content-section.ts';
import { idempotencyOrigins, readIdempotency } from './idempotency-section.ts';
import { ledgerOrigins, readLedger } from './ledger-section.ts';
import { readLimits } from './limits-section.ts';
import { localOrigins, readLocal } from './local-section.ts';
import { readRoutes } from './models-section.ts';
import { proxyWarnings } from './network-section.ts';
import { readStorage } from './storage-section.ts';
import { fileOrigins } from './origins.ts';
import { priceOrigins, readPrices } from './prices-section.ts';
import { optionalTimeouts, readProviders } from './providers-section.ts';
import type { Environment } from './references.ts';
import { readTraces, traceOrigins } from './traces-section.ts';
import { readWebhooks, webhookOrigins } from './webhooks-section.ts';
import type { ConfigFile } from './schema.ts';
import { defaults, type ClientSettings, type OriginLine, type Settings } from './settings.ts';

export interface LoadOptions {
  readonly flags: Flags;
  readonly env: Environment;
  /** Absolute; where relative paths of flags and variables start, and `gateway.yaml` is looked for. */
  readonly cwd: string;
  /** Providers that exist without a declaration. */
  readonly knownProviders: KnownProviders;
}

/** @throws ConfigError with every issue. */
export async function loadSettings(options: LoadOptions): Promise<Settings> {
  const { flags, env, cwd, knownProviders: known } = options;
  const issues: ConfigIssue[] = [];
  const report = (issue: ConfigIssue): void => {
    issues.push(issue);
  };
  checkProcess(env, report);
  const { file, origin } = await openConfig(options, report);
  const base = readBaseSettings({ flags, env, cwd, file, report });
  const own = [base.listen, base.adminListen];
  const providers = readProviders(file, { known, env, own, report });
  const routes = file === undefined ? [] : readRoutes(file, { known, env, report });
  const local = readLocal(file, { dataDir: base.dataDir, report });
  const stored = readStorage({ flags, env, cwd, file, report });
  const ledger = readLedger(file, { report });
  const idempotency = readIdempotency(file, stored.storage.book);
  const content = readContent(file, stored.storage.book);
  const prices = readPrices(file, { known, report });
  const access = await readAccess(file, { report });
  const webhooks = readWebhooks(file, { report });
  const traces = readTraces(file, { env, report });
  const limits = readLimits(file, { workers: base.workers, report });
  if (issues.length > 0) throw new ConfigError(inOrder(issues));
  const ofFile = { ...bounds(file), limits, providers, routes };
  return {
    ...base,
    ...ofFile,
    ...access,
    local,
    prices,
    storage: stored.storage,
    ledger,
    idempotency,
    content,
    webhooks,
    traces: traces.settings,
    configFile: file?.place.path,
    origins: [
      ...base.origins,
      origin,
      ...stored.origins,
      ...ledgerOrigins(ledger, file),
      ...idempotencyOrigins(idempotency, file),
      ...contentOrigins(content, file),
      ...localOrigins(local, file),
      ...fileOrigins(ofFile, file),
      ...priceOrigins(prices, file),
      ...accessOrigins(access, file),
      ...webhookOrigins(webhooks, file),
      ...traceOrigins(traces, file),
    ],
    warnings: [
      ...(file === undefined ? misnamedConfig(cwd) : file.warnings),
      ...exposure(base),
      ...stored.warnings,
      ...traces.warnings,
      ...proxyWarnings(env),
    ],
  };
}

/** S19: certificates are always verified; a private authority is added by NODE_EXTRA_CA_CERTS. */
function checkProcess(env: Environment, report: (issue: ConfigIssue) => void): void {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] !== '0') return;
  report({
    path: 'NODE_TLS_REJECT_UNAUTHORIZED',
    message:
      'turns the verification of all certificates off; unset it and name your authority in NODE_EXTRA_CA_CERTS',
  });
}

async function openConfig(
  { flags, env, cwd }: LoadOptions,
  report: (issue: ConfigIssue) => void,
): Promise<{ readonly file: CheckedFile | undefined; readonly origin: OriginLine }> {
  const asked = outerChoice('config', { flags, env });
  const place = findConfig(asked?.text, cwd);
  const origin = asked?.origin ?? 'default';
  if (place === undefined)
    return { file: undefined, origin: { path: 'config', value: 'none', origin } };
  const file = await readConfig(place, env);
  for (const issue of file.issues) report(issue);
  return { file, origin: { path: 'config', value: place.path, origin } };
}

function bounds(file: CheckedFile | undefined): Pick<Settings, 'timeouts' | 'clients' | 'drain'> {
  const { timeouts, clients, drain } = file?.content ?? {};
  const merged: Timeouts = { ...defaults.timeouts, ...optionalTimeouts(timeouts).timeouts };
  return {
    timeouts: merged,
    clients: clientSettings(clients),
    drain: { waitMs: drain?.wait, limitMs: drain?.limit ?? defaults.drain.limitMs },
  };
}

function clientSettings(form: ConfigFile['clients']): ClientSettings {
  const { keepAliveMs: otherwise, stalledMs } = defaults.clients;
  const given = form?.keep_alive;
  const { chat = otherwise, messages = otherwise } =
    typeof given === 'object' ? given : { chat: given, messages: given };
  return { keepAliveMs: { chat, messages }, stalledMs: form?.stalled ?? stalledMs };
}

/** S9: it was said that the admin plane may be reached; that nothing encrypts it is said once more. */
function exposure({ adminListen }: BaseSettings): readonly string[] {
  return isLoopback(adminListen.host)
    ? []
    : [
        `admin_listen ${adminListen.host}: other machines can reach the admin plane, and nothing encrypts it; put a TLS proxy before it`,
      ];
}

/** What is outside the file first, then line by line. */
function inOrder(issues: readonly ConfigIssue[]): readonly ConfigIssue[] {
  const line = (issue: ConfigIssue): number => (issue.file === undefined ? -1 : (issue.line ?? 0));
  return [...issues].sort((a, b) => line(a) - line(b));
}
