/** A provider of a row, or of the config alone: addresses, credential header, traits. */
import type { RequestCredential } from '../core/credential.ts';
import type { UpstreamDialect } from '../core/dialect.ts';
import type {
  Endpoint,
  ForwardedHeader,
  ImageRule,
  ModelTokenizer,
  NetworkWay,
  Provider,
  ProviderOptions,
  TokenCounter,
} from '../core/provider.ts';
import type { Secret } from '../core/secret.ts';
import {
  type UpstreamTraits,
  chatTraits,
  converseTraits,
  geminiTraits,
  messagesTraits,
  responsesTraits,
} from '../core/traits.ts';
import {
  anthropicMessagesUpstream,
  fastModeBeta,
} from '../dialects/anthropic-messages/upstream.ts';
import { bedrockConverseUpstream } from '../dialects/bedrock-converse/upstream.ts';
import { geminiUpstream } from '../dialects/gemini/upstream.ts';
import { openaiChatUpstream } from '../dialects/openai-chat/upstream.ts';
import { openaiResponsesUpstream } from '../dialects/openai-responses/upstream.ts';
import type { JsonObject } from '../json/value.ts';
import type { LocalModelFile } from '../local-models/model-file.ts';
import type { ProviderRow } from './compatible.ts';
import { anthropicModelTraits, namedTraits, nativeGeminiTraits } from './model-traits.ts';

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
  readonly options?: ProviderOptions;
  /** The query string after each path, with its question mark. */
  readonly query?: string;
  /** After the base address, instead of those of the dialect. */
  readonly paths?: PlacePaths;
  /** Instead of those of the dialect. */
  readonly forwarded?: readonly ForwardedHeader[];
  readonly body?: Provider['body'];
  /** How the address frames its streams and reports its errors, if it differs from the dialect. */
  readonly answers?: Pick<Provider, 'splitter' | 'readError'>;
  /** The header of the key, `authorization` with the word Bearer; absent = that of the dialect. */
  readonly keyHeader?: string;
  /** The name of the model in requests that count tokens; absent = they name none. */
  readonly counted?: string;
  /** The credential of requests, instead of a key. */
  readonly credential?: RequestCredential;
  /** The model of a provider's name, which decides traits and tokenizer; absent = the name itself. */
  readonly modelOf?: (name: string) => string;
}

/** Paths of a server that are not those of its dialect. Absent `stream` = `generate`. */
export interface PlacePaths {
  readonly generate: string;
  readonly stream?: string;
  readonly count?: string;
  /** A token counter other than the dialect's. */
  readonly counter?: (endpoint: (path: string) => Endpoint) => TokenCounter;
  /** The path of the list of models, or an address if it is at another host. */
  readonly models?: string;
  /** The same of further lists. */
  readonly moreModels?: readonly string[];
}

interface DialectCounter {
  readonly path: string;
  /** The member of the answer that holds the number. */
  readonly answers: string;
  /** The members of a request that are counted; absent = all of it. */
  readonly members?: readonly string[];
  /** The member that holds them together with the name of the model, and those that may only be in it. */
  readonly named?: { readonly inside: string; readonly members: readonly string[] };
}

interface DialectConventions {
  readonly upstream: UpstreamDialect;
  readonly traits: UpstreamTraits;
  /** Traits that follow from a model's name on any server of the dialect. */
  readonly modelTraits?: (model: string) => Partial<UpstreamTraits>;
  /** Path of the generating endpoint after the base address. */
  readonly generate: string;
  /** The same for streamed answers, if it differs. */
  readonly stream?: string;
  readonly models: string;
  /** The same of the endpoint that compacts conversations. */
  readonly compact?: string;
  /** The token counter of each server of the dialect. */
  readonly counter?: DialectCounter;
  /** The end of a base address that clients of the dialect append themselves. */
  readonly appended?: string;
  readonly forwarded: readonly ForwardedHeader[];
  auth(key: string): readonly [string, string];
}

/** What Vertex AI counts. */
const countedMembers = ['contents', 'systemInstruction', 'tools', 'generationConfig'] as const;

const conventions: { readonly [D in HttpDialect]: DialectConventions } = {
  'openai-chat': {
    upstream: openaiChatUpstream,
    traits: chatTraits,
    generate: '/chat/completions',
    models: '/models',
    forwarded: [],
    auth: (key) => ['authorization', `Bearer ${key}`],
  },
  'openai-responses': {
    upstream: openaiResponsesUpstream,
    traits: responsesTraits,
    generate: '/responses',
    compact: '/responses/compact',
    models: '/models',
    forwarded: [],
    auth: (key) => ['authorization', `Bearer ${key}`],
  },
  'anthropic-messages': {
    upstream: anthropicMessagesUpstream,
    traits: messagesTraits,
    // Other servers of this dialect offer Claude's models, or their own models for Claude Code.
    modelTraits: (model) =>
      model.includes('claude')
        ? anthropicModelTraits(model)
        : // Templates of other models take instructions in front only.
          { dropsBillingHeader: true, systemAnywhere: false },
    generate: '/v1/messages',
    models: '/v1/models?limit=1000',
    counter: { path: '/v1/messages/count_tokens', answers: 'input_tokens' },
    appended: '/v1',
    forwarded: [{ name: 'anthropic-version', otherwise: '2023-06-01' }, { name: betaHeader }],
    auth: (key) => ['x-api-key', key],
  },
  // The base address ends with the model.
  gemini: {
    upstream: geminiUpstream,
    traits: geminiTraits,
    modelTraits: nativeGeminiTraits,
    generate: ':generateContent',
    stream: ':streamGenerateContent?alt=sse',
    models: '/models?pageSize=1000',
    counter: {
      path: ':countTokens',
      answers: 'totalTokens',
      members: countedMembers,
      named: { inside: 'generateContentRequest', members: [...countedMembers, 'toolConfig'] },
    },
    forwarded: [],
    auth: (key) => ['x-goog-api-key', key],
  },
  // Each model has its own address (clouds/bedrock.ts).
  'bedrock-converse': {
    upstream: bedrockConverseUpstream,
    traits: converseTraits,
    generate: '/converse',
    stream: '/converse-stream',
    models: '/foundation-models',
    forwarded: [],
    auth: (key) => ['authorization', `Bearer ${key}`],
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
    ...keyHeaderOf(options),
    ...[...(options.headers ?? [])].flat(),
  ];
  const { row, options: ways = {}, query = '', credential, modelOf = (name) => name } = options;
  const { betas, region, serverTools, connections = 'shared' } = ways;
  const endpoint = (path: string): Endpoint => ({
    origin: base.origin,
    path: `${base.path}${path}${query}`,
    headers,
    ...(credential === undefined ? {} : { credential }),
    ...(options.way === undefined ? {} : { way: options.way }),
    ...(connections === 'shared' ? {} : { connections }),
  });
  return {
    id: options.id,
    dialect: form.upstream,
    ...addressesOf(options, endpoint),
    ...options.answers,
    ...counterMember(options, endpoint),
    ...(options.body === undefined ? {} : { body: options.body }),
    ...(options.apiKey === undefined ? {} : { credential: options.apiKey }),
    options: ways,
    telemetryName: row?.telemetry ?? row?.id ?? options.id,
    forwardedHeaders: forwardedOf(options.forwarded ?? form.forwarded, betas),
    tokenizer: (name) => tokenizerOf(modelOf(name)),
    traits: remembered((name) => ({
      ...form.traits,
      ...(row === undefined ? {} : { known: true }),
      ...namedTraits(modelOf(name)),
      ...form.modelTraits?.(modelOf(name)),
      ...row?.traits,
      ...row?.pathTraits?.(base.path),
      ...row?.modelTraits?.(modelOf(name)),
      ...(region === undefined ? {} : { region }),
      ...(serverTools === undefined ? {} : { serverTools }),
      // The account may lack fast mode, so the config must enable it.
      ...(betas?.includes(fastModeBeta) === true ? {} : { fastMode: false }),
    })),
  };
}

function addressesOf(
  { dialect, paths }: HttpProviderOptions,
  endpoint: (path: string) => Endpoint,
): Pick<Provider, 'generate' | 'stream' | 'models' | 'moreModels' | 'compact'> {
  const { generate, stream: streamed, models, compact } = conventions[dialect];
  const stream = paths?.stream ?? (paths === undefined ? streamed : undefined);
  return {
    generate: endpoint(paths?.generate ?? generate),
    ...(stream === undefined ? {} : { stream: endpoint(stream) }),
    models: modelsAt(paths?.models ?? models, endpoint),
    ...(paths?.moreModels === undefined
      ? {}
      : { moreModels: paths.moreModels.map((place) => modelsAt(place, endpoint)) }),
    ...(compact === undefined ? {} : { compact: endpoint(compact) }),
  };
}

function modelsAt(place: string, endpoint: (path: string) => Endpoint): Endpoint {
  if (place.startsWith('/')) return endpoint(place);
  const { origin, pathname, search } = new URL(place);
  return { ...endpoint(''), origin, path: `${pathname}${search}` };
}

function keyHeaderOf({ apiKey, keyHeader, dialect }: HttpProviderOptions): readonly string[] {
  if (apiKey === undefined) return [];
  const key = apiKey.reveal();
  if (keyHeader === undefined) return conventions[dialect].auth(key);
  return [keyHeader, keyHeader === 'authorization' ? `Bearer ${key}` : key];
}

function forwardedOf(
  headers: readonly ForwardedHeader[],
  betas: readonly string[] | undefined,
): readonly ForwardedHeader[] {
  if (betas === undefined) return headers;
  const allowed = new Set(betas);
  return headers.map((header) => (header.name === betaHeader ? { ...header, allowed } : header));
}

/** By the dialect's convention; without one, by the vendor's row. */
function counterMember(
  { dialect, row, paths, counted }: HttpProviderOptions,
  endpoint: (path: string) => Endpoint,
): Pick<Provider, 'counter'> {
  if (paths?.counter !== undefined) return { counter: paths.counter(endpoint) };
  const { counter } = conventions[dialect];
  if (counter !== undefined) {
    return { counter: dialectCounter(counter, endpoint(paths?.count ?? counter.path), counted) };
  }
  if (row?.counter === undefined) return {};
  const siblingOfApi = (path: string): Endpoint => {
    const place = endpoint('');
    return { ...place, path: place.path.replace(/\/v1$/, '') + path };
  };
  return { counter: counterOf(row.counter, { endpoint: siblingOfApi }) };
}

/** The same provider with other traits of its models. */
export function withTraits(provider: Provider, traits: Partial<UpstreamTraits>): Provider {
  return {
    ...provider,
    traits: remembered((model) => ({ ...provider.traits(model), ...traits })),
  };
}

const maxRemembered = 1000;

/** Traits are read several times a call; model names come from clients, so they are bounded. */
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
  // Both spellings of the address are usual, since some SDKs append it themselves.
  const { appended } = conventions[options.dialect];
  if (appended !== undefined && path.endsWith(appended)) path = path.slice(0, -appended.length);
  return { origin: url.origin, path };
}

// The token counters of servers, as data.

/** The counters that a row or a config may name. */
export type CounterKind = 'vllm' | 'llama-cpp';

interface CounterPlace {
  /** An address outside the API's `/v1`. */
  endpoint(path: string): Endpoint;
}

/** @param model the name that requests give the model; absent = they name none */
function dialectCounter(
  { answers, members, named }: DialectCounter,
  endpoint: Endpoint,
  model: string | undefined,
): TokenCounter {
  const plain = plainCounter(endpoint, answers);
  if (members === undefined) return plain;
  const step =
    named === undefined || model === undefined
      ? { endpoint, members }
      : { endpoint, ...named, more: (): JsonObject => ({ model }) };
  return { ...plain, steps: [step] };
}

/** A counter that takes an unchanged request and answers with one number. */
function plainCounter(endpoint: Endpoint, answerField: string): TokenCounter {
  return { steps: [{ endpoint }], countsMedia: true, read: (answer) => answer[answerField] };
}

function counterOf(kind: CounterKind, place: CounterPlace): TokenCounter {
  // The template renders the prompt, the tokenizer counts it.
  return kind === 'vllm'
    ? vllm(place)
    : {
        steps: [
          { endpoint: place.endpoint('/apply-template'), members: promptMembers },
          {
            endpoint: place.endpoint('/tokenize'),
            members: ['model'],
            more: (before) => {
              const prompt = before?.['prompt'];
              if (typeof prompt !== 'string') return undefined;
              return { content: prompt, add_special: true, parse_special: true };
            },
          },
        ],
        countsMedia: false,
        read: ({ tokens }) => (Array.isArray(tokens) ? tokens.length : undefined),
      };
}

/** The members of a chat request that shape the prompt. */
const promptMembers = ['model', 'messages', 'tools', 'chat_template_kwargs'] as const;

function vllm({ endpoint }: CounterPlace): TokenCounter {
  const more = (): JsonObject => ({ add_generation_prompt: true });
  return {
    steps: [{ endpoint: endpoint('/tokenize'), members: promptMembers, more }],
    countsMedia: false,
    read: (answer) => answer['count'],
  };
}

// Tokenizers and image rules of models that publish them, by model name; the first row that fits.

const tiles = (base: number, tile: number): ImageRule => ({ kind: 'tiles', base, tile });
const patches = (factor: number): ImageRule => ({ kind: 'patches', factor });
const o200k = (image: ImageRule): ModelTokenizer => ({
  encoding: 'o200k_base',
  image,
  functionTokens: 7,
});
const cl100k: ModelTokenizer = {
  encoding: 'cl100k_base',
  image: tiles(85, 170),
  functionTokens: 10,
};

// Image rules: platform.openai.com/docs/guides/images-vision, "Calculating costs".
const rows: readonly (readonly [name: RegExp, tokenizer: ModelTokenizer])[] = [
  [/^gpt-(4\.1|5)(\.\d+)?-mini/, o200k(patches(1.62))],
  [/^gpt-(4\.1|5)(\.\d+)?-nano/, o200k(patches(2.46))],
  [/^o4-mini/, o200k(patches(1.72))],
  [/^gpt-4o-mini/, o200k(tiles(2833, 5667))],
  [/^gpt-5/, o200k(tiles(70, 140))],
  [/^o[13]/, o200k(tiles(75, 150))],
  [/^(chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-oss|codex|o\d)/, o200k(tiles(85, 170))],
  [/^gpt-(3\.5|4)/, cl100k],
];

/** The tokenizer of a model at any provider; undefined where none is public. */
export function tokenizerOf(model: string): ModelTokenizer | undefined {
  // Resellers name models `openai/gpt-oss-120b`; fine-tunes are `ft:gpt-4o:…`.
  const name = model.slice(model.lastIndexOf('/') + 1).replace(/^ft:/, '');
  return rows.find(([pattern]) => pattern.test(name))?.[1];
}

// The embedded engine as a provider: how its models are called, whichever process runs them.

interface LocalProviderDeps {
  readonly dialect: UpstreamDialect;
  /** The address of its engine at the time of the request. */
  readonly socketPath: () => string;
  /** Undefined for a model that is not there. */
  readonly traits: (model: string) => UpstreamTraits | undefined;
  /** Resolves when it can be called. @throws GatewayError */
  readonly wake: () => Promise<void>;
}

export function localProvider({ dialect, socketPath, traits, wake }: LocalProviderDeps): Provider {
  const endpoint = (path: string): Endpoint => ({
    origin: 'http://engine',
    path,
    // The engine is chosen when the call is sent, since it may be restarted before.
    get socketPath() {
      return socketPath();
    },
    headers: ['content-type', 'application/json'],
  });
  return {
    id: 'local',
    dialect,
    generate: endpoint('/v1/chat/completions'),
    models: endpoint('/v1/models'),
    counter: plainCounter(endpoint('/v1/count_tokens'), 'prompt_tokens'),
    forwardedHeaders: [],
    traits: (model) => traits(model) ?? localTraits,
    wake,
  };
}

const localTraits: UpstreamTraits = {
  ...chatTraits,
  topK: true,
  stopMax: undefined,
  imageInput: 'none',
  fileInput: false,
  responseFormat: 'schema',
  reasoningControl: 'none',
  efforts: [],
  endUserField: undefined,
  prefill: true,
};

/** The engine refuses members that a template does not know, so they are omitted and noted here. */
export function localTraitsOf({ reasoning, reasoningLevels }: LocalModelFile): UpstreamTraits {
  if (reasoning === undefined) return localTraits;
  const efforts = reasoningLevels === true ? levels : [];
  const replayed = { ...localTraits, reasoningReplay: true, efforts };
  if (reasoning === 'switchable') return { ...replayed, reasoningControl: 'template' };
  return {
    ...replayed,
    thinkingOff: 'never',
    reasoningControl: reasoningLevels === true ? 'effort' : 'none',
  };
}

const levels: UpstreamTraits['efforts'] = ['low', 'medium', 'high'];
