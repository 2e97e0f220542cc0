/** A provider made of a row (or of config alone): addresses, credential header, traits. */
import type { UpstreamDialect } from '../core/dialect.ts';
import type { Endpoint, ForwardedHeader, NetworkWay, Provider } from '../core/provider.ts';
import type { Secret } from '../core/secret.ts';
import { chatTraits, messagesTraits, type UpstreamTraits } from '../core/traits.ts';
import { fastModeBeta } from '../dialects/anthropic-messages/betas.ts';
import { anthropicMessagesUpstream } from '../dialects/anthropic-messages/upstream.ts';
import { openaiChatUpstream } from '../dialects/openai-chat/upstream.ts';
import type { ProviderRow } from './compatible.ts';
import { counterOf, plainCounter } from './counters.ts';
import { anthropicModelTraits, namedTraits } from './model-traits.ts';
import { tokenizerOf } from './tokenizers.ts';

const betaHeader = 'anthropic-beta';

export type HttpDialect = ProviderRow['dialect'];

export interface HttpProviderOptions {
  readonly id: string;
  readonly dialect: HttpDialect;
  /** With or without a trailing slash; messages addresses with or without `/v1`. */
  readonly baseUrl: string;
  readonly apiKey?: Secret;
  /** Extra request headers, by name. */
  readonly headers?: ReadonlyMap<string, string>;
  readonly row?: ProviderRow;
  /** Absent = directly. */
  readonly way?: NetworkWay;
  /** The only values of `anthropic-beta` that go there; absent = all. */
  readonly betas?: readonly string[];
  /** Where its models run, as `inference_geo` spells it. */
  readonly region?: string;
  /** Clients of the other dialect may use what the provider runs itself. */
  readonly serverTools?: boolean;
  /** Streams whose client left are read to their end. */
  readonly onAbort?: 'drain';
  /** It is told the trace that a call belongs to. */
  readonly traceContext?: boolean;
}

interface DialectConventions {
  readonly upstream: UpstreamDialect;
  readonly traits: UpstreamTraits;
  /** What a model's name says of it at any server of the dialect. */
  readonly modelTraits?: (model: string) => Partial<UpstreamTraits>;
  /** Path of the generating endpoint behind the base address. */
  readonly generate: string;
  readonly models: string;
  readonly forwarded: readonly ForwardedHeader[];
  auth(key: string): readonly [string, string];
}

const conventions: { readonly [D in HttpDialect]: DialectConventions } = {
  'openai-chat': {
    upstream: openaiChatUpstream,
    traits: chatTraits,
    generate: '/chat/completions',
    models: '/models',
    forwarded: [],
    auth: (key) => ['authorization', `Bearer ${key}`],
  },
  'anthropic-messages': {
    upstream: anthropicMessagesUpstream,
    traits: messagesTraits,
    // Other servers of this dialect offer Claude's models, or their own behind Claude Code.
    modelTraits: (model) =>
      model.includes('claude') ? anthropicModelTraits(model) : { dropsBillingHeader: true },
    generate: '/v1/messages',
    models: '/v1/models?limit=1000',
    forwarded: [{ name: 'anthropic-version', otherwise: '2023-06-01' }, { name: betaHeader }],
    auth: (key) => ['x-api-key', key],
  },
};

/** @throws TypeError when `baseUrl` is not an http(s) address. */
export function createHttpProvider(options: HttpProviderOptions): Provider {
  const form = conventions[options.dialect];
  const base = readBase(options);
  const headers = [
    'content-type',
    'application/json',
    'accept-encoding',
    'identity',
    ...(options.apiKey === undefined ? [] : form.auth(options.apiKey.reveal())),
    ...[...(options.headers ?? [])].flat(),
  ];
  const endpoint = (path: string): Endpoint => ({
    origin: base.origin,
    path: `${base.path}${path}`,
    headers,
    ...(options.way === undefined ? {} : { way: options.way }),
  });
  const { row } = options;
  return {
    id: options.id,
    dialect: form.upstream,
    generate: endpoint(form.generate),
    models: endpoint(form.models),
    ...counterMember(options, endpoint),
    ...(options.apiKey === undefined ? {} : { credential: options.apiKey }),
    ...(options.onAbort === undefined ? {} : { onAbort: options.onAbort }),
    ...(options.traceContext === true ? { traceContext: true } : {}),
    telemetryName: row?.telemetry ?? row?.id ?? options.id,
    forwardedHeaders: forwardedOf(form.forwarded, options.betas),
    tokenizer: tokenizerOf,
    traits: remembered((model) => ({
      ...form.traits,
      ...namedTraits(model),
      ...form.modelTraits?.(model),
      ...row?.traits,
      ...row?.pathTraits?.(base.path),
      ...row?.modelTraits?.(model),
      ...(options.region === undefined ? {} : { region: options.region }),
      ...(options.serverTools === undefined ? {} : { serverTools: options.serverTools }),
      // The models are known, the account is not: the fast mode must be said to be open.
      ...(opensFastMode(options.betas) ? {} : { fastMode: false }),
    })),
  };
}

function forwardedOf(
  headers: readonly ForwardedHeader[],
  betas: readonly string[] | undefined,
): readonly ForwardedHeader[] {
  if (betas === undefined) return headers;
  const allowed = new Set(betas);
  return headers.map((header) => (header.name === betaHeader ? { ...header, allowed } : header));
}

function opensFastMode(betas: readonly string[] | undefined): boolean {
  return betas?.includes(fastModeBeta) === true;
}

/** Servers of the messages dialect count at a place of their own; of the others, those that say so. */
function counterMember(
  { dialect, row }: HttpProviderOptions,
  endpoint: (path: string) => Endpoint,
): Pick<Provider, 'counter'> {
  if (dialect === 'anthropic-messages') {
    return { counter: plainCounter(endpoint('/v1/messages/count_tokens'), 'input_tokens') };
  }
  if (row?.counter === undefined) return {};
  const besideApi = (path: string): Endpoint => {
    const place = endpoint('');
    return { ...place, path: place.path.replace(/\/v1$/, '') + path };
  };
  return { counter: counterOf(row.counter, { endpoint: besideApi }) };
}

/** The same provider, of whose models something else is held true. */
export function withTraits(provider: Provider, traits: Partial<UpstreamTraits>): Provider {
  return {
    ...provider,
    traits: remembered((model) => ({ ...provider.traits(model), ...traits })),
  };
}

const maxRemembered = 1000;

/** Traits are asked for several times a call; model names come from clients, so they are bounded. */
function remembered(read: (model: string) => UpstreamTraits): (model: string) => UpstreamTraits {
  const known = new Map<string, UpstreamTraits>();
  return (model) => {
    let traits = known.get(model);
    if (traits === undefined) {
      traits = read(model);
      if (known.size >= maxRemembered) known.clear();
      known.set(model, traits);
    }
    return traits;
  };
}

function readBase(options: HttpProviderOptions): { origin: string; path: string } {
  const url = new URL(options.baseUrl);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new TypeError(`${options.baseUrl} is not an http(s) address`);
  }
  let path = url.pathname.replace(/\/+$/, '');
  // Messages SDKs append /v1 themselves, so both spellings of the address are in use.
  if (options.dialect === 'anthropic-messages') path = path.replace(/\/v1$/, '');
  return { origin: url.origin, path };
}
