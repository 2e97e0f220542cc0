/**
 * The options of `gateway.yaml` that stand for themselves, one row each. What lists, names or addresses
 * something has a file of its own: providers, routes, keys, prices, storage, traces, webhooks.
 */
import { cloudAuths } from '../core/cloud.ts';
import { orders } from '../core/provider.ts';
import {
  choice,
  duration,
  durationOrNever,
  list,
  onOff,
  option,
  share,
  size,
  span,
  text,
  textLike,
  whole,
  type GivenOf,
  type SettingsOf,
} from './options.ts';

const kibibyte = 1024;
const mebibyte = 1024 ** 2;
const tebibyte = 1024 ** 4;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** `limits:`, bounds of the whole gateway (docs/operator/overload.md). */
export const limitOptions = {
  bodyBytes: option({
    key: 'body',
    kind: size(1, 512 * mebibyte, ['32MiB', '10MB']),
    default: 32 * mebibyte,
    about: 'Maximum size of a request body.',
  }),
  streams: option({
    key: 'streams',
    kind: whole(1, 1_000_000),
    default: 3000,
    about: 'Maximum number of concurrent calls. More are refused as "overloaded".',
  }),
  memoryBytes: option({
    key: 'memory',
    kind: size(128 * mebibyte, tebibyte, ['512MiB', '2GB']),
    otherwise: 'the memory of the container or the machine',
    about:
      'Memory limit of the process. Request bodies may take half of it; near the limit calls are refused.',
  }),
  connections: option({
    key: 'connections',
    kind: whole(10, 1_000_000),
    otherwise: "10000, or the system's limit of open files",
    about: 'Maximum number of client connections. Idle ones are closed first.',
  }),
  keySharePercent: option({
    key: 'key_share',
    kind: whole(1, 100),
    default: 50,
    about: 'Percent of `streams` that one key may hold when slots are scarce and other keys wait.',
  }),
  loopDelayMs: option({
    key: 'loop_delay',
    kind: duration(5),
    default: 25,
    about:
      'Target delay of the event loop. The gateway accepts fewer calls while the median delay is higher.',
  }),
  bodyRate: option({
    key: 'body_rate',
    kind: size(1, 16 * mebibyte, ['16KiB', '1KiB']),
    default: 16 * kibibyte,
    about: 'Minimum bytes per second of a request body, after 5s of grace; slower ones get 408.',
  }),
  badKeys: option({
    key: 'bad_keys',
    kind: whole(1, 1_000_000),
    default: 20,
    about: 'Refused keys per minute and client address. Above it the answer is 429 instead of 401.',
  }),
} as const;
export type LimitSettings = SettingsOf<typeof limitOptions>;

/** `timeouts:` of the file, of a provider and of a route. */
export const timeoutOptions = {
  connectMs: option({
    key: 'connect',
    kind: duration(),
    default: 2000,
    about: 'Time until the connection is open.',
  }),
  firstEventMs: option({
    key: 'first_event',
    kind: duration(),
    default: 60_000,
    about:
      'Time until the first event of a stream. If `reasoning` is not set, it also applies to reasoning models.',
  }),
  reasoningMs: option({
    key: 'reasoning',
    kind: duration(),
    default: 300_000,
    about: 'Time until the first event of a stream whose model reasons first.',
  }),
  documentMs: option({
    key: 'document',
    kind: duration(),
    default: 600_000,
    about: 'Time until the end of an answer that is not streamed.',
  }),
  idleMs: option({
    key: 'idle',
    kind: duration(),
    default: 60_000,
    about: 'Time between two events of a stream.',
  }),
  totalMs: option({
    key: 'total',
    kind: duration(),
    default: 1_800_000,
    about: 'Time for the whole call.',
  }),
  minBytesPerS: option({
    key: 'min_rate',
    kind: size(1, mebibyte, ['64B', '1KiB']),
    about: 'Minimum bytes per second of a stream, averaged over each `rate_window`.',
  }),
  rateWindowMs: option({
    key: 'rate_window',
    kind: duration(1000),
    default: 30_000,
    about: 'Window over which `min_rate` is averaged.',
  }),
} as const;

/** `retry:` of the file and of a route (docs/user/retries.md). */
export const retryOptions = {
  afterSent: option({
    key: 'after_sent',
    kind: onOff,
    otherwise: 'true',
    about: 'Whether a request that was sent but not answered is retried. The vendor may bill both.',
  }),
  contextOverflow: option({
    key: 'context_overflow',
    kind: onOff,
    otherwise: 'false',
    about: 'Whether a prompt that is too long for one target is tried at the others.',
  }),
} as const;

/** `hedge:` of a route. */
export const hedgeOptions = {
  afterMs: option({
    key: 'after',
    kind: duration(),
    about: 'How long to wait for the first event before the second request is sent.',
  }),
} as const;

/** `clients:` besides `keep_alive`. */
export const clientOptions = {
  stalledMs: option({
    key: 'stalled',
    kind: duration(),
    default: 60_000,
    about: 'A client that reads no bytes of its answer for this long is disconnected.',
  }),
} as const;

/** `clients.keep_alive:`, by the endpoint. */
export const keepAliveOptions = {
  chat: option({
    key: 'chat',
    kind: durationOrNever(Number.POSITIVE_INFINITY),
    default: 15_000,
    about: 'Comments (: ping) in chat streams. Use never for clients that cannot parse them.',
  }),
  messages: option({
    key: 'messages',
    kind: durationOrNever(Number.POSITIVE_INFINITY),
    default: 15_000,
    about: 'ping events and comments in messages streams.',
  }),
  responses: option({
    key: 'responses',
    kind: durationOrNever(Number.POSITIVE_INFINITY),
    default: 15_000,
    about: 'Events that repeat the state of the answer, in responses streams.',
  }),
} as const;

/** `drain:`, how a gateway stops (G14). */
export const drainOptions = {
  waitMs: option({
    key: 'wait',
    kind: duration(0),
    otherwise: '5s if /readyz was polled in the last minute, else 0s',
    about:
      'How long calls are still accepted after SIGTERM while /readyz answers 503, so that load balancers switch away; 0s = not at all.',
  }),
  limitMs: option({
    key: 'limit',
    kind: duration(),
    default: 120_000,
    about: 'How long running calls may continue after that before they are cut.',
  }),
} as const;
export type DrainSettings = SettingsOf<typeof drainOptions>;

/** `tls:` of the data plane and `admin_tls:` of the admin plane. Paths are relative to the file. */
export const tlsOptions = {
  cert: option({
    key: 'cert',
    kind: text,
    about: 'PEM file of the certificate, with intermediate certificates after it.',
  }),
  key: option({
    key: 'key',
    kind: text,
    about: 'PEM file of its private key, without a passphrase.',
  }),
  clientCa: option({
    key: 'client_ca',
    kind: text,
    otherwise: 'clients need no certificate',
    about: 'PEM file of authorities. Each client must show a certificate of one of them.',
  }),
} as const;

/** `ledger:`. */
export const ledgerOptions = {
  keepMs: option({
    key: 'keep',
    kind: span(dayMs),
    default: 90 * dayMs,
    about: 'How long calls and their attempts are kept.',
  }),
  keepHoursMs: option({
    key: 'keep_hours',
    kind: span(dayMs),
    default: 400 * dayMs,
    about:
      'How long hourly sums are kept, at least as long as `keep`. Daily sums are never removed.',
  }),
  durability: option({
    key: 'durability',
    kind: choice(['normal', 'full']),
    default: 'normal',
    about:
      'SQLite only. normal may lose the last second of calls in a power failure, and nothing in a process crash; full syncs each commit to the disk and loses nothing.',
  }),
} as const;
export type LedgerSettings = SettingsOf<typeof ledgerOptions>;

/** `idempotency:`; bytes are of all gateways on one store together. */
export const idempotencyOptions = {
  keepMs: option({
    key: 'keep',
    kind: duration(60_000),
    default: dayMs,
    about: 'How long an answer is kept, 1m to 24h.',
  }),
  answerBytes: option({
    key: 'answer',
    kind: size(kibibyte, 16 * mebibyte, ['1MiB', '256KiB']),
    default: mebibyte,
    about: 'Maximum size of an answer that is kept.',
  }),
  keyBytes: option({
    key: 'key',
    kind: size(mebibyte, tebibyte, ['16MiB', '1GiB']),
    default: 16 * mebibyte,
    about: 'Total size of the answers of one API key. The oldest are removed first.',
  }),
  totalBytes: option({
    key: 'total',
    kind: size(mebibyte, tebibyte, ['256MiB', '10GiB']),
    default: 256 * mebibyte,
    defaultInMemory: 64 * mebibyte,
    about: 'Total size of all answers in the store. The largest key loses its oldest first.',
  }),
} as const;
export type IdempotencySettings = SettingsOf<typeof idempotencyOptions>;

/** `content:`; bytes are of all gateways on one store together. */
export const contentOptions = {
  keepMs: option({
    key: 'keep',
    kind: span(hourMs),
    default: 7 * dayMs,
    about: 'How long contents are kept, at least 1h, independent of `ledger.keep`.',
  }),
  bodyBytes: option({
    key: 'body',
    kind: size(kibibyte, 2 * mebibyte, ['256KiB', '1MiB']),
    default: 256 * kibibyte,
    about:
      'Maximum size of each request and answer. Of longer ones the beginning and the end are kept.',
  }),
  totalBytes: option({
    key: 'total',
    kind: size(mebibyte, tebibyte, ['1GiB', '20GiB']),
    default: 1024 * mebibyte,
    defaultInMemory: 64 * mebibyte,
    about:
      'Total size of all contents in the store. The oldest of the key that has the most are removed first.',
  }),
} as const;
export type ContentSettings = SettingsOf<typeof contentOptions>;

/** `responses:`; bytes are of all gateways on one store together. */
export const responseOptions = {
  store: option({
    key: 'store',
    kind: choice(['on', 'off']),
    default: 'on',
    about:
      'Whether responses are kept so that previous_response_id and item_reference find them. off: responses say store: false, and nothing is found.',
  }),
  keepMs: option({
    key: 'keep',
    kind: span(hourMs),
    default: dayMs,
    about: 'How long a response is kept, at least 1h.',
  }),
  keyBytes: option({
    key: 'key',
    kind: size(mebibyte, tebibyte, ['256MiB', '1GiB']),
    default: 256 * mebibyte,
    defaultInMemory: 16 * mebibyte,
    about: 'Total size of the responses of one API key. The oldest are removed first.',
  }),
  totalBytes: option({
    key: 'total',
    kind: size(mebibyte, tebibyte, ['1GiB', '20GiB']),
    default: 1024 * mebibyte,
    defaultInMemory: 64 * mebibyte,
    about: 'Total size of all responses in the store. The largest key loses its oldest first.',
  }),
} as const;
export type ResponseSettings = SettingsOf<typeof responseOptions>;

/** A provider, besides its keys, headers, network and time limits (providers.ts). */
export const providerOptions = {
  dialect: option({
    key: 'dialect',
    kind: choice(
      ['openai-chat', 'anthropic-messages', 'openai-responses'],
      ['gemini', 'bedrock-converse'],
    ),
    about: 'Wire format of the provider. Preset for known vendors.',
  }),
  baseUrl: option({
    key: 'base_url',
    kind: text,
    about: 'Address of the API, e.g. http://vllm.internal:8000/v1. Preset for known vendors.',
  }),
  serverTools: option({
    key: 'server_tools',
    kind: onOff,
    otherwise: 'false',
    about:
      'Whether clients of the other format may use web search that the provider runs and charges for. If not, such tools are refused, or dropped where they are optional.',
  }),
  like: option({
    key: 'like',
    kind: text,
    about:
      'The known vendor or engine at this address, e.g. vllm; its rules apply. Preset for known vendors.',
  }),
  region: option({
    key: 'region',
    kind: text,
    about:
      'bedrock, bedrock-mantle: region of its address and signature (default AWS_REGION, AWS_DEFAULT_REGION, that of the profile). Other openai-chat providers: where they run their models; matched against inference_geo of a request.',
  }),
  connections: option({
    key: 'connections',
    kind: choice(['shared', 'per-team', 'per-key', 'per-call']),
    otherwise: 'shared',
    about:
      'Which calls may share a connection, for upstreams that are not trusted to keep answers apart. shared = all calls; per-call = one call per connection.',
  }),
  betas: option({
    key: 'betas',
    kind: list(/^[A-Za-z0-9._-]+$/, 'is not a beta name'),
    otherwise: 'all',
    about:
      'Values of anthropic-beta that this provider accepts; others are not forwarded. A fast-mode-… value enables the fast tier for chat clients.',
  }),
  onAbort: option({
    key: 'on_abort',
    kind: choice(['abort', 'drain']),
    otherwise: 'abort',
    about:
      'What happens to a stream whose client disconnects. abort closes it; drain reads it to the end for its usage report, for providers that charge for the whole answer.',
  }),
  traceContext: option({
    key: 'trace_context',
    kind: onOff,
    otherwise: 'false',
    about:
      'Whether traceparent and tracestate are sent to the provider, so that its spans join the trace (docs/operator/traces.md).',
  }),
  onContentFilter: option({
    key: 'on_content_filter',
    kind: choice(['stop', 'next']),
    otherwise: 'stop',
    about:
      "What happens to a call whose prompt the provider's content filter blocks. stop answers with its error; next asks the other targets of the model.",
  }),
} as const;

/** A provider of a cloud, besides its deployments and secrets (docs/operator/clouds.md). */
export const cloudOptions = {
  resource: option({
    key: 'resource',
    kind: textLike(/^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/, 'is not the name of a resource'),
    about: 'azure, foundry: name of the resource, the first part of its address.',
  }),
  apiVersion: option({
    key: 'api_version',
    kind: textLike(
      /^(preview|20\d\d-\d\d-\d\d(-preview)?)$/,
      'is neither preview nor a date such as 2024-10-21',
    ),
    otherwise: 'the v1 API',
    about:
      'azure: a date selects the addresses /openai/deployments/NAME of that API version; preview selects v1 with its preview features.',
  }),
  auth: option({
    key: 'auth',
    kind: choice(cloudAuths),
    otherwise: 'api_key; vertex: file; bedrock, bedrock-mantle: the first found',
    about:
      'What authorizes calls (docs/operator/clouds.md). azure, foundry: api_key, entra, managed_identity. vertex: file, metadata, api_key. bedrock, bedrock-mantle: bearer, keys, profile, web_identity, container, instance.',
  }),
  tenantId: option({
    key: 'tenant_id',
    kind: textLike(/^[A-Za-z0-9.-]+$/, 'is neither an id nor a domain'),
    otherwise: 'AZURE_TENANT_ID',
    about: 'azure, foundry: tenant of the app, for auth: entra.',
  }),
  clientId: option({
    key: 'client_id',
    kind: textLike(/^[A-Za-z0-9.-]+$/, 'is not the id of an app'),
    otherwise: 'AZURE_CLIENT_ID',
    about:
      'azure, foundry: id of the app, for auth: entra; of a user-assigned identity, for auth: managed_identity.',
  }),
  scope: option({
    key: 'scope',
    kind: textLike(/^[\x21-\x7e]+$/, 'is not a scope'),
    otherwise:
      'https://cognitiveservices.azure.com/.default; foundry: https://ai.azure.com/.default',
    about: 'azure, foundry: scope of the tokens.',
  }),
  project: option({
    key: 'project',
    kind: textLike(/^[a-z0-9][a-z0-9.:-]{0,99}$/, 'is not the id of a project'),
    otherwise: 'GOOGLE_CLOUD_PROJECT',
    about: 'vertex: id of the project.',
  }),
  location: option({
    key: 'location',
    kind: textLike(/^[a-z][a-z0-9-]{0,62}$/, 'is not the name of a location'),
    otherwise: 'GOOGLE_CLOUD_LOCATION, then global',
    about: 'vertex: region, such as europe-west4; several regions: us, eu, global.',
  }),
  profile: option({
    key: 'profile',
    kind: textLike(/^[^\s\]]{1,128}$/, 'is not the name of a profile'),
    otherwise: 'AWS_PROFILE, default',
    about:
      'bedrock, bedrock-mantle: section of ~/.aws/config and ~/.aws/credentials, for auth: profile.',
  }),
  accessKeyId: option({
    key: 'access_key_id',
    kind: textLike(/^\w{16,128}$/, 'is not the id of an access key'),
    otherwise: 'AWS_ACCESS_KEY_ID',
    about: 'bedrock, bedrock-mantle: id of the access key, for auth: keys.',
  }),
  endpoint: option({
    key: 'endpoint',
    kind: textLike(/^https?:\/\/[^\s?#]+$/, 'is not an http:// or https:// address'),
    otherwise:
      'AWS_ENDPOINT_URL_BEDROCK_RUNTIME, https://bedrock-runtime.REGION.amazonaws.com; bedrock-mantle: https://bedrock-mantle.REGION.api.aws',
    about: 'bedrock, bedrock-mantle: address of calls, such as a VPC endpoint.',
  }),
  controlEndpoint: option({
    key: 'control_endpoint',
    kind: textLike(/^https?:\/\/[^\s?#]+$/, 'is not an http:// or https:// address'),
    otherwise: 'https://bedrock.REGION.amazonaws.com; none where endpoint is set',
    about: 'bedrock: address of the lists of models.',
  }),
  door: option({
    key: 'door',
    kind: choice(['invoke', 'converse']),
    otherwise: 'invoke',
    about: 'bedrock: the API by which Claude is asked. All other models are asked by Converse.',
  }),
  guardrail: option({
    key: 'guardrail',
    kind: textLike(/^\S+:(DRAFT|\d{1,8})$/, 'is not of the form ID:VERSION'),
    otherwise: 'none',
    about: 'bedrock: the guardrail of all calls, its id or ARN with the version behind a colon.',
  }),
  latency: option({
    key: 'latency',
    kind: choice(['standard', 'optimized']),
    otherwise: 'standard',
    about: 'bedrock: optimized is served faster where the model offers it, and refused elsewhere.',
  }),
} as const;

/** A route, besides its targets and its rules of retries and time limits (schema.ts). */
export const routeOptions = {
  order: option({
    key: 'order',
    kind: choice(orders),
    default: 'listed',
    about:
      'listed: the first available target; weighted: by share; least-busy: fewest running calls, by weight; fastest: shortest time to first event; cheapest: lowest price.',
  }),
  affinity: option({
    key: 'affinity',
    kind: onOff,
    otherwise: 'true',
    about:
      'Whether calls of one conversation stay on one target and credential while these are healthy, so that prompt caches stay warm.',
  }),
  cache: option({
    key: 'cache',
    kind: choice(['auto']),
    about:
      'auto: cache marks on tools, instructions and the last two user turns, if the client sets none and the provider accepts them.',
  }),
  strict: option({
    key: 'strict',
    kind: onOff,
    otherwise: 'false; x-gateway-notes names what was lost',
    about: 'Refuses a request if translation would drop or change anything.',
  }),
  serverTools: providerOptions.serverTools,
  reasoning: option({
    key: 'reasoning',
    kind: choice(['asked', 'shown']),
    otherwise: 'asked',
    about:
      'asked: clients of /v1/responses see reasoning if they ask for a summary. shown: they always do, for models whose thoughts users want to read.',
  }),
  api: option({
    key: 'api',
    kind: choice(['chat', 'responses']),
    otherwise: "the provider's dialect; with OpenAI, responses where the call needs it",
    about: "The API that its targets are asked by, where a provider has both of OpenAI's.",
  }),
} as const;

/** `traces:` besides its address, headers, certificates and attributes (traces.ts). */
export const traceOptions = {
  sample: option({
    key: 'sample',
    kind: share,
    otherwise: '1',
    about: 'Share of new traces that are sampled.',
  }),
  follow: option({
    key: 'follow',
    kind: onOff,
    otherwise: 'true',
    about:
      "Whether the gateway continues a client's trace (traceparent) and obeys its sampled flag. Set it to false for untrusted clients.",
  }),
  content: option({
    key: 'content',
    kind: onOff,
    otherwise: 'false',
    about: 'Whether spans contain prompts and answers, truncated and with credentials masked.',
  }),
  compression: option({
    key: 'compression',
    kind: choice(['gzip', 'none']),
    otherwise: 'none',
    about: 'Compression of exported spans.',
  }),
  timeoutMs: option({
    key: 'timeout',
    kind: duration(),
    otherwise: '10s',
    about: 'Timeout of one export.',
  }),
} as const;

export type RouteOptions = GivenOf<typeof routeOptions>;

const idle = {
  key: 'idle_unload',
  kind: durationOrNever(0),
} as const;

/** `local:` besides its models. */
export const localOptions = {
  modelsDir: option({
    key: 'models_dir',
    kind: text,
    otherwise: 'models in data_dir',
    about: 'Folder of the model files; pull downloads into it.',
  }),
  idleUnloadMs: option({
    ...idle,
    otherwise: '10m',
    about: 'A model without calls for this long is unloaded; never = it stays.',
  }),
  hangMs: option({
    key: 'hang',
    kind: duration(),
    otherwise: '2m',
    about:
      'An engine without a heartbeat, or without a token while a call waits, for this long is terminated.',
  }),
  maxLoaded: option({
    key: 'max_loaded',
    kind: whole(1, 100),
    otherwise: '3',
    about: 'Maximum number of models in memory.',
  }),
  memoryBytes: option({
    key: 'memory',
    kind: size(1, tebibyte, ['8GiB', '500MB']),
    otherwise: '60 % of the memory',
    about: 'Total size of the files of loaded models.',
  }),
} as const;

export type LocalOptions = GivenOf<typeof localOptions>;

/** One entry of `local.models:`. */
export const localModelOptions = {
  path: option({
    key: 'path',
    kind: text,
    otherwise: 'NAME.gguf in models_dir',
    about: 'A GGUF file elsewhere; relative to this file.',
  }),
  sha256: option({
    key: 'sha256',
    kind: textLike(/^[0-9a-fA-F]{64}$/, 'must be 64 hexadecimal digits'),
    otherwise: 'the hash that pull recorded',
    about: 'Expected hash of the file; the engine refuses any other.',
  }),
  context: option({
    key: 'context',
    kind: whole(128, 16_777_216),
    otherwise: 'the training context, at most 8192',
    about: 'Context size of each call: tokens of prompt and answer together.',
  }),
  threads: option({
    key: 'threads',
    kind: whole(1, 1024),
    otherwise: 'all cores but one; 1 for models below 64 MiB',
    about: 'Number of engine threads.',
  }),
  parallel: option({
    key: 'parallel',
    kind: whole(1, 64),
    otherwise: '4',
    about: 'Calls that generate concurrently.',
  }),
  idleUnloadMs: option({
    ...idle,
    otherwise: 'as local.idle_unload',
    about: 'The model is unloaded after this long without calls; never = it stays.',
  }),
} as const;
export type LocalModelOptions = GivenOf<typeof localModelOptions>;
