/** What the gateway runs with: flags, environment and `gateway.yaml` made into one typed value. */
import { inspect } from 'node:util';
import type { ListenerTls, ServerAddress } from '../core/addresses.ts';
import type { CloudSettings } from '../core/cloud.ts';
import type { PriceSettings } from '../core/money.ts';
import type { Policy, SharedPolicy } from '../core/policy.ts';
import type {
  HedgeRule,
  ProviderOptions,
  RetryRules,
  RouteOrder,
  Timeouts,
} from '../core/provider.ts';
import { Secret } from '../core/secret.ts';
import { parseOwn } from '../json/parse.ts';
import type { Address, ConfigIssue } from './errors.ts';
import type { OidcSettings } from './oidc.ts';
import type {
  ContentSettings,
  DrainSettings,
  IdempotencySettings,
  LedgerSettings,
  LimitSettings,
  LocalModelOptions,
  LocalOptions,
  ResponseSettings,
  RouteOptions,
} from './sections.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

export interface Settings {
  readonly listen: Address;
  readonly adminListen: Address;
  /** Of the data plane; undefined = plain HTTP. */
  readonly tls: ListenerTls | undefined;
  readonly adminTls: ListenerTls | undefined;
  /** Absolute. */
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly workers: number;
  /** The file that was read (absolute); undefined when there is none. */
  readonly configFile: string | undefined;
  /** The file whose change is a change of the config: `configFile`, or where it is looked for (absolute). */
  readonly watchedConfig: string;
  /** There is a config file without content: no text, or only comments. */
  readonly configIsEmpty: boolean;
  /** `providers:` of the file. */
  readonly providers: readonly ProviderSettings[];
  /** `models:` of the file. */
  readonly routes: readonly RouteSettings[];
  /** `local:` of the file. */
  readonly local: LocalSettings;
  /** `prices:` of the file. */
  readonly prices: PriceSettings;
  /** `keys:` of the file. */
  readonly keys: readonly KeySettings[];
  /** `teams:` and `tags:` of the file. */
  readonly policies: readonly SharedPolicy[];
  /** Ranges of addresses whose x-forwarded-for is believed. */
  readonly trustedProxies: readonly string[];
  /** `limits:` of the file. */
  readonly limits: LimitSettings;
  readonly storage: StorageSettings;
  /** `ledger:` of the file. */
  readonly ledger: LedgerSettings;
  /** `idempotency:` of the file. */
  readonly idempotency: IdempotencySettings;
  /** `content:` of the file. */
  readonly content: ContentSettings;
  /** `responses:` of the file. */
  readonly responses: ResponseSettings;
  readonly timeouts: Timeouts;
  /** `retry:` of the file. */
  readonly retry: RetryRules;
  readonly clients: ClientSettings;
  /** `drain:` of the file: how a stop goes (G14). */
  readonly drain: DrainSettings;
  /** Receivers of budget events. */
  readonly webhooks: readonly WebhookSettings[];
  /** Where spans go; undefined = no traces. */
  readonly traces: TraceSettings | undefined;
  /** Where people sign in; undefined = by the admin token alone. */
  readonly oidc: OidcSettings | undefined;
  /** Entries that were omitted, since their references lead nowhere; only where secrets are optional. */
  readonly unresolved: readonly ConfigIssue[];
  /** Each effective value and where it comes from; secrets read `[secret]`. */
  readonly origins: readonly OriginLine[];
  /** What is allowed but probably not meant; one sentence each. */
  readonly warnings: readonly string[];
}

/** A key that the file declares; default-deny holds for it as for any other (S7). */
export interface KeySettings {
  readonly id: string;
  readonly name: string;
  /** SHA-256, lower-case hex; the first is the current one. */
  readonly digests: readonly string[];
  readonly models: readonly string[];
  readonly endpoints?: readonly string[];
  readonly team?: string;
  readonly owner?: string;
  readonly tags?: readonly string[];
  readonly cidrs?: readonly string[];
  readonly strict?: boolean;
  readonly cache?: 'auto';
  readonly shrink?: boolean;
  readonly logContent?: boolean;
  /** Ms since the epoch. */
  readonly expiresAt?: number;
  readonly policy: Policy;
  readonly where: string;
}

/** Where keys, ledger and counters are stored. */
export type StorageSettings = LocalStorage | SharedStorage;

/** One process on its data directory, nothing else needed. */
interface LocalStorage {
  readonly database: 'sqlite' | 'memory';
}

/** Several gateways on one database. */
export interface SharedStorage {
  readonly database: 'postgres';
  readonly postgres: ServerAddress;
  /** Absent = the counters are row locks in PostgreSQL. */
  readonly redis?: ServerAddress;
  /** Keeps the counters of several installations in one Redis apart. */
  readonly tenant: string;
  /**
   * What happens to calls with a budget while budgets cannot be counted: refused, or admitted up to a small
   * cap.
   */
  readonly onStoreLoss: 'closed' | 'open';
}

/** `clients:` of the file. Ms; Infinity = never. */
export interface ClientSettings {
  /** Silence after which a stream gets a sign of life, by the endpoint's name. */
  readonly keepAliveMs: {
    readonly chat: number;
    readonly messages: number;
    readonly responses: number;
  };
  /** How long a client may take no bytes of its answer. */
  readonly stalledMs: number;
}

export interface WebhookSettings {
  readonly url: string;
  readonly format: 'json' | 'slack' | 'teams' | 'discord' | 'pagerduty';
  /** Signs or routes what is sent there; absent where the address alone is the secret. */
  readonly secret?: Secret;
  /** Groups of events; absent = all. */
  readonly events?: readonly string[];
}

/** PEM texts; `ca` is trusted besides the usual authorities. */
export interface ClientTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: Secret;
}

/** `traces:` of the file and OTEL_… of the environment. */
export interface TraceSettings {
  /** With its path. */
  readonly url: string;
  /** They may hold a credential. */
  readonly headers: HeaderSettings;
  readonly timeoutMs: number;
  readonly compression: 'gzip' | 'none';
  /** Of an https:// collector; absent = what Node trusts, and no certificate of one's own. */
  readonly tls?: ClientTls;
  /** How long a span may wait for others. */
  readonly sendEveryMs: number;
  /** Share of the traces that begin here, 0 to 1. */
  readonly sample: number;
  /** Whether a client's trace continues, and its sampled flag decides. */
  readonly follow: boolean;
  /** Whether prompts and answers are exported. */
  readonly content: boolean;
  /** What all spans have in common; `service.name` is among it. */
  readonly resource: { readonly [name: string]: string };
}

export interface OriginLine {
  /** As in the file: `limits.body`, `models.fast.targets[0]`. */
  readonly path: string;
  readonly value: string;
  /** `default`, `flag --listen`, `env MODEL_GATEWAY_LISTEN` or `gateway.yaml:3`. */
  readonly origin: string;
}

export interface ProviderSettings {
  readonly id: string;
  readonly dialect?: ConfigDialect;
  readonly baseUrl?: string;
  readonly apiKey?: Secret;
  /** Instead of it, where there are several. */
  readonly credentials?: readonly CredentialSettings[];
  /** Extra request headers, names in lower case. */
  readonly headers: HeaderSettings;
  /** Id of the known vendor whose rules apply at this address. */
  readonly like?: string;
  readonly options: ProviderOptions;
  /** Absent where the file names nothing that only clouds have. */
  readonly cloud?: CloudSettings;
  /** `none`, or the address of a proxy, credentials included. */
  readonly proxy?: Secret;
  /** PEM of authorities that are trusted besides the usual ones. */
  readonly ca?: string;
  readonly timeouts?: Partial<Timeouts>;
  /** `gateway.yaml:7` */
  readonly where: string;
}

/** The models that the embedded engine runs. */
export interface LocalSettings extends LocalOptions {
  /** Absolute. */
  readonly modelsDir: string;
  readonly models: readonly LocalModelEntry[];
}

export interface LocalModelEntry extends LocalModelOptions {
  /** Without `local/`. */
  readonly name: string;
}

/** Dialects that a provider of the config may speak today. */
type ConfigDialect = 'openai-chat' | 'anthropic-messages' | 'openai-responses';

export interface RouteSettings extends RouteOptions {
  readonly name: string;
  readonly targets: readonly TargetSettings[];
  readonly order: RouteOrder;
  readonly retry?: RetryRules;
  readonly hedge?: HedgeRule;
  readonly timeouts?: Partial<Timeouts>;
  readonly where: string;
}

/** One of several keys of a provider. */
export interface CredentialSettings {
  readonly name: string;
  readonly key: Secret;
}

export interface TargetSettings {
  readonly provider: string;
  readonly model: string;
  readonly weight: number;
}

/** Header values often are credentials: the map works as any map and prints its names only. */
export class HeaderSettings extends Map<string, string> {
  toJSON(): readonly string[] {
    return [...this.keys()];
  }

  [inspect.custom](): readonly string[] {
    return this.toJSON();
  }
}

// Settings as one text, for another process of the same gateway: with their secrets, so it is for no log. What
// the other process reads is what this one has read, whatever became of the file since.

/** No setting has a member of this name. */
const kind = '\u0000kind';

export function packSettings(settings: Settings): string {
  // `toJSON` of what hides itself was called already: the holder has the value.
  return JSON.stringify(settings, function packed(this: object, name: string, value: unknown) {
    const raw: unknown = Reflect.get(this, name);
    if (raw instanceof Secret) return { [kind]: 'secret', text: raw.reveal() };
    if (raw instanceof HeaderSettings) return { [kind]: 'headers', entries: [...raw.entries()] };
    if (raw instanceof Map) return { [kind]: 'map', pairs: [...raw] };
    if (raw === Number.POSITIVE_INFINITY) return { [kind]: 'infinity' };
    return value;
  });
}

export function unpackSettings(text: string): Settings {
  return parseOwn<Settings>(text, unpacked);
}

function unpacked(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !(kind in value)) return value;
  if ('text' in value) return new Secret(String(value.text));
  if ('pairs' in value) return new Map(Array.isArray(value.pairs) ? value.pairs : []);
  if (!('entries' in value)) return Number.POSITIVE_INFINITY;
  const { entries } = value;
  return new HeaderSettings(Array.isArray(entries) ? entries : []);
}

/**
 * @param number 1, 2, …
 * @param memoryBytes what all may use where the settings do not say it
 */
export function workerShare(settings: Settings, number: number, memoryBytes: number): Settings {
  const { workers, limits } = settings;
  const share: LimitSettings = {
    ...limits,
    streams: partOf(limits.streams, { number, workers }),
    memoryBytes: Math.floor((limits.memoryBytes ?? memoryBytes) / workers),
    connections:
      limits.connections === undefined
        ? undefined
        : partOf(limits.connections, { number, workers }),
  };
  // The admin plane is the parent's.
  return { ...settings, oidc: undefined, limits: share };
}

/** The parts of all workers make the whole; none is nothing, since the config refuses less than one for each. */
function partOf(
  whole: number,
  { number, workers }: { readonly number: number; readonly workers: number },
): number {
  return Math.floor(whole / workers) + (number <= whole % workers ? 1 : 0);
}

function fixed(settings: Settings): object {
  const { listen, adminListen, dataDir, storage, ledger, workers, traces, oidc } = settings;
  return {
    listen,
    tls: tlsKind(settings.tls),
    admin_listen: adminListen,
    admin_tls: tlsKind(settings.adminTls),
    data_dir: dataDir,
    storage,
    ledger,
    workers,
    traces: traces ?? null,
    oidc: oidc ?? null,
  };
}

/** The certificates themselves are renewed while the gateway runs. */
function tlsKind(tls: ListenerTls | undefined): string {
  if (tls === undefined) return 'off';
  return tls.clientCa === undefined ? 'on' : 'with client certificates';
}

/** Names of settings that differ and are read at start only. */
export function needRestart(running: Settings, wanted: Settings): readonly string[] {
  const before = new Map(Object.entries(fixed(running)));
  return Object.entries(fixed(wanted))
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before.get(name)))
    .map(([name]) => name);
}
