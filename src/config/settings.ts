/** What the gateway runs with: flags, environment and `gateway.yaml` made into one typed value. */
import { inspect } from 'node:util';
import type { Policy, SharedPolicy } from '../core/policy.ts';
import type { PriceSettings } from '../core/price.ts';
import type { HedgeRule, RetryRules, RouteOrder, Timeouts } from '../core/provider.ts';
import type { Secret } from '../core/secret.ts';
import type { ServerAddress } from '../core/server-address.ts';
import type { Address } from './address.ts';
import type { CredentialSettings } from './routing-section.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

export interface Settings {
  readonly listen: Address;
  readonly adminListen: Address;
  /** Absolute. */
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly workers: number;
  /** The file that was read (absolute); undefined when there is none. */
  readonly configFile: string | undefined;
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
  readonly timeouts: Timeouts;
  readonly clients: ClientSettings;
  /** `drain:` of the file: how a stop goes (G14). */
  readonly drain: DrainSettings;
  /** Who is told when a budget passes a threshold. */
  readonly webhooks: readonly WebhookSettings[];
  /** Where spans go; undefined = no traces. */
  readonly traces: TraceSettings | undefined;
  /** Each effective value and where it comes from; secrets read `[secret]` (N1). */
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
  readonly shrink?: boolean;
  readonly logContent?: boolean;
  /** Ms since the epoch. */
  readonly expiresAt?: number;
  readonly policy: Policy;
  readonly where: string;
}

/** Bounds of the whole gateway (docs/overload.md). */
export interface LimitSettings {
  readonly bodyBytes: number;
  /** Calls at the same time. */
  readonly streams: number;
  /** What the process may use; undefined = what the system lets it. */
  readonly memoryBytes: number | undefined;
  /** Of clients, at the same time; undefined = as many as are usual and can be opened. */
  readonly connections: number | undefined;
  /** Part of the calls that one key may hold while they are scarce, 0 to 1. */
  readonly keyShare: number;
  readonly loopDelayMs: number;
  /** Bytes a second. */
  readonly bodyRate: number;
  /** Refused keys a minute and address. */
  readonly badKeys: number;
}

/** Where keys, ledger and counters are kept. */
export type StorageSettings = LocalStorage | SharedStorage;

/** One process on its data directory, nothing else needed. */
export interface LocalStorage {
  readonly book: 'sqlite' | 'memory';
}

/** Several gateways on one book. */
export interface SharedStorage {
  readonly book: 'postgres';
  readonly postgres: ServerAddress;
  /** Absent = the counters are row locks in PostgreSQL. */
  readonly redis?: ServerAddress;
  /** Keeps the counters of several installations in one Redis apart. */
  readonly tenant: string;
  /** What calls with a budget get while nobody can count: refused, or admitted up to a small cap. */
  readonly onStoreLoss: 'closed' | 'open';
}

/** `clients:` of the file. Ms; Infinity = never. */
export interface ClientSettings {
  /** Silence after which a stream gets a sign of life, by the endpoint's name. */
  readonly keepAliveMs: { readonly chat: number; readonly messages: number };
  /** How long a client may take no bytes of its answer. */
  readonly stalledMs: number;
}

export interface DrainSettings {
  /** How long calls are still taken on SIGTERM; absent = as long as is customary, where /readyz is asked for. */
  readonly waitMs: number | undefined;
  /** How long running calls may go on after that. */
  readonly limitMs: number;
}

/** What is kept by `Idempotency-Key`. Bytes; of all gateways on one store together. */
export interface IdempotencySettings {
  readonly keepMs: number;
  readonly answerBytes: number;
  readonly keyBytes: number;
  readonly totalBytes: number;
}

/** What is kept of calls of keys with `log_content`. Bytes; of all gateways on one store together. */
export interface ContentSettings {
  readonly keepMs: number;
  /** Of each body. */
  readonly bodyBytes: number;
  readonly totalBytes: number;
}

export interface LedgerSettings {
  /** How long calls are kept; Infinity = for ever. */
  readonly keepMs: number;
  /** How long sums by hour are kept; at least as long. */
  readonly keepHoursMs: number;
  readonly durability: 'normal' | 'full';
}

export interface WebhookSettings {
  readonly url: string;
  /** Signs what is sent there. */
  readonly secret: Secret;
  /** Groups of events; absent = all. */
  readonly events?: readonly string[];
}

/** `traces:` of the file and OTEL_… of the environment. */
/** PEM texts; `ca` is trusted besides the usual authorities. */
export interface ClientTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: Secret;
}

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
  /** Whether a client's trace goes on, and its sampled flag decides. */
  readonly follow: boolean;
  /** Whether prompts and answers are told. */
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
  /** Clients of the other format may use what the provider runs itself. */
  readonly serverTools?: boolean;
  /** Extra request headers, names in lower case. */
  readonly headers: HeaderSettings;
  /** Id of the known vendor whose ways hold at this address. */
  readonly like?: string;
  /** The only values of `anthropic-beta` that go there; absent = all. */
  readonly betas?: readonly string[];
  /** Where its models run, as `inference_geo` spells it. */
  readonly region?: string;
  /** `none`, or the address of a proxy, credentials included. */
  readonly proxy?: Secret;
  /** PEM of authorities that are trusted besides the usual ones. */
  readonly ca?: string;
  /** Streams whose client left are read to their end. */
  readonly onAbort?: 'drain';
  /** It is told the trace that a call belongs to. */
  readonly traceContext?: boolean;
  readonly timeouts?: Partial<Timeouts>;
  /** `gateway.yaml:7` */
  readonly where: string;
}

/** The models that the embedded engine runs. */
export interface LocalSettings {
  /** Absolute. */
  readonly modelsDir: string;
  /** 0 = never; absent = the engine's default, as for the others. */
  readonly idleUnloadMs?: number;
  /** How long an engine may say nothing before it is ended. */
  readonly hangMs?: number;
  readonly maxLoaded?: number;
  readonly memoryBytes?: number;
  readonly models: readonly LocalModelEntry[];
}

export interface LocalModelEntry {
  /** Without `local/`. */
  readonly name: string;
  /** Absolute; absent = in the folder. */
  readonly path?: string;
  readonly sha256?: string;
  /** Tokens of prompt and answer together. */
  readonly context?: number;
  readonly threads?: number;
  readonly parallel?: number;
  /** 0 = never. */
  readonly idleUnloadMs?: number;
}

/** Dialects that a provider of the config may speak today. */
export type ConfigDialect = 'openai-chat' | 'anthropic-messages';

export interface RouteSettings {
  readonly name: string;
  readonly targets: readonly TargetSettings[];
  readonly order: RouteOrder;
  readonly affinity?: boolean;
  readonly retry?: RetryRules;
  readonly hedge?: HedgeRule;
  /** What a translation would drop or change is refused. */
  readonly strict?: true;
  /** Before the provider's. */
  readonly serverTools?: boolean;
  readonly timeouts?: Partial<Timeouts>;
  readonly where: string;
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

/** Each is a process with memory of its own. */
export const mostWorkers = 64;

/** What holds where nothing is set (interface.md; timeouts: reliability.md R7). */
export const defaults = {
  listen: '127.0.0.1:8686',
  adminListen: '127.0.0.1:8687',
  dataDir: '.model-gateway',
  modelsDir: 'models',
  configFile: 'gateway.yaml',
  logLevel: 'info',
  workers: 1,
  limits: {
    bodyBytes: 32 * 1024 * 1024,
    streams: 3000,
    keyShare: 0.5,
    loopDelayMs: 25,
    bodyRate: 16 * 1024,
    badKeys: 20,
  },
  storage: 'sqlite',
  tenant: 'default',
  ledger: { keepMs: 90 * 86_400_000, keepHoursMs: 400 * 86_400_000, durability: 'normal' },
  idempotency: {
    keepMs: 86_400_000,
    answerBytes: 1024 * 1024,
    keyBytes: 16 * 1024 * 1024,
    totalBytes: 256 * 1024 * 1024,
    memoryTotalBytes: 64 * 1024 * 1024,
  },
  content: {
    keepMs: 7 * 86_400_000,
    bodyBytes: 256 * 1024,
    totalBytes: 1024 ** 3,
    memoryTotalBytes: 64 * 1024 * 1024,
  },
  drain: { limitMs: 120_000 },
  clients: { keepAliveMs: 15_000, stalledMs: 60_000 },
  timeouts: {
    connectMs: 2000,
    firstEventMs: 60_000,
    reasoningMs: 300_000,
    documentMs: 600_000,
    idleMs: 60_000,
    totalMs: 1_800_000,
    rateWindowMs: 30_000,
  },
} as const;
