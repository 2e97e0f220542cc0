/**
 * The options of `gateway.yaml` that stand for themselves, one row each. What lists, names or addresses
 * something has a file of its own: providers, routes, keys, prices, storage, traces, webhooks.
 */
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
    about: 'Largest request body.',
  }),
  streams: option({
    key: 'streams',
    kind: whole(1, 1_000_000),
    default: 3000,
    about: 'Calls at the same time. Calls above it are refused as "overloaded".',
  }),
  memoryBytes: option({
    key: 'memory',
    kind: size(128 * mebibyte, tebibyte, ['512MiB', '2GB']),
    otherwise: 'the memory of the container or the machine',
    about:
      'Memory of the process. Request bodies may take half of it; near the bound calls are refused.',
  }),
  connections: option({
    key: 'connections',
    kind: whole(10, 1_000_000),
    otherwise: '10000, or as many as the system lets the process open',
    about: 'Connections of clients at the same time. Idle connections are closed first.',
  }),
  keySharePercent: option({
    key: 'key_share',
    kind: whole(1, 100),
    default: 50,
    about: 'Percent of `streams` that one key may hold while other keys wait and slots are scarce.',
  }),
  loopDelayMs: option({
    key: 'loop_delay',
    kind: duration(5),
    default: 25,
    about: 'Fewer calls are taken while a typical turn of the event loop takes longer.',
  }),
  bodyRate: option({
    key: 'body_rate',
    kind: size(1, 16 * mebibyte, ['16KiB', '1KiB']),
    default: 16 * kibibyte,
    about:
      'Bytes a second at which a request body must arrive, after 5s of grace; else the answer is 408.',
  }),
  badKeys: option({
    key: 'bad_keys',
    kind: whole(1, 1_000_000),
    default: 20,
    about: 'Refused keys a minute and client address. Above it the answer is 429 instead of 401.',
  }),
} as const;
export type LimitSettings = SettingsOf<typeof limitOptions>;

/** `timeouts:` of the file, of a provider and of a route. */
export const timeoutOptions = {
  connectMs: option({
    key: 'connect',
    kind: duration(),
    default: 2000,
    about: 'Until the connection is open.',
  }),
  firstEventMs: option({
    key: 'first_event',
    kind: duration(),
    default: 60_000,
    about:
      'Until the first event of a stream. Where it is set and `reasoning` is not, it holds for reasoning too.',
  }),
  reasoningMs: option({
    key: 'reasoning',
    kind: duration(),
    default: 300_000,
    about: 'Until the first event of a stream whose model reasons first.',
  }),
  documentMs: option({
    key: 'document',
    kind: duration(),
    default: 600_000,
    about: 'Until the end of an answer that the provider sends as one document.',
  }),
  idleMs: option({
    key: 'idle',
    kind: duration(),
    default: 60_000,
    about: 'Between two events of a stream.',
  }),
  totalMs: option({
    key: 'total',
    kind: duration(),
    default: 1_800_000,
    about: 'The whole call.',
  }),
  minBytesPerS: option({
    key: 'min_rate',
    kind: size(1, mebibyte, ['64B', '1KiB']),
    about: 'Bytes a second that a stream must bring, on average of each `rate_window`.',
  }),
  rateWindowMs: option({
    key: 'rate_window',
    kind: duration(1000),
    default: 30_000,
    about: 'The time that `min_rate` is the average of.',
  }),
} as const;

/** `retry:` of the file and of a route (docs/user/retries.md). */
export const retryOptions = {
  afterSent: option({
    key: 'after_sent',
    kind: onOff,
    otherwise: 'true',
    about:
      'Whether a request that was sent and not answered is sent again. The vendor may bill both.',
  }),
  contextOverflow: option({
    key: 'context_overflow',
    kind: onOff,
    otherwise: 'false',
    about: 'Whether a prompt that is too long for one target is sent to the other targets.',
  }),
} as const;

/** `hedge:` of a route. */
export const hedgeOptions = {
  afterMs: option({
    key: 'after',
    kind: duration(),
    about: 'How long the first target has to bring its first event.',
  }),
} as const;

/** `clients:` besides `keep_alive`. */
export const clientOptions = {
  stalledMs: option({
    key: 'stalled',
    kind: duration(),
    default: 60_000,
    about: 'A client that takes no bytes of its answer for this long is cut off.',
  }),
} as const;

/** `clients.keep_alive:`, by the endpoint. */
export const keepAliveOptions = {
  chat: option({
    key: 'chat',
    kind: durationOrNever(Number.POSITIVE_INFINITY),
    default: 15_000,
    about: 'Comments (: ping) in chat streams. never is for clients that cannot read them.',
  }),
  messages: option({
    key: 'messages',
    kind: durationOrNever(Number.POSITIVE_INFINITY),
    default: 15_000,
    about: 'ping events and comments in messages streams.',
  }),
} as const;

/** `drain:`, how a gateway stops (G14). */
export const drainOptions = {
  waitMs: option({
    key: 'wait',
    kind: duration(0),
    otherwise: '5s where /readyz was asked for in the last minute, else 0s',
    about:
      'How long calls are still taken on SIGTERM while /readyz answers 503, so that balancers turn away; 0s = not at all.',
  }),
  limitMs: option({
    key: 'limit',
    kind: duration(),
    default: 120_000,
    about: 'How long running calls may go on after that, before they are cut.',
  }),
} as const;
export type DrainSettings = SettingsOf<typeof drainOptions>;

/** `ledger:`. */
export const ledgerOptions = {
  keepMs: option({
    key: 'keep',
    kind: span(dayMs),
    default: 90 * dayMs,
    about: 'How long each call is kept, with its attempts.',
  }),
  keepHoursMs: option({
    key: 'keep_hours',
    kind: span(dayMs),
    default: 400 * dayMs,
    about:
      'How long sums by hour are kept, at least as long as `keep`. Sums by day are never removed.',
  }),
  durability: option({
    key: 'durability',
    kind: choice(['normal', 'full']),
    default: 'normal',
    about:
      'SQLite only. normal may lose the last second of calls in a power failure, and nothing when only the process dies; full waits for the disk at each commit and loses nothing.',
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
    about: 'Longest answer that is kept.',
  }),
  keyBytes: option({
    key: 'key',
    kind: size(mebibyte, tebibyte, ['16MiB', '1GiB']),
    default: 16 * mebibyte,
    about: 'What the answers of one API key may take. The oldest are removed first.',
  }),
  totalBytes: option({
    key: 'total',
    kind: size(mebibyte, tebibyte, ['256MiB', '10GiB']),
    default: 256 * mebibyte,
    defaultInMemory: 64 * mebibyte,
    about:
      'What all answers in the store may take. The key with the most gives up its oldest first.',
  }),
} as const;
export type IdempotencySettings = SettingsOf<typeof idempotencyOptions>;

/** `content:`; bytes are of all gateways on one store together. */
export const contentOptions = {
  keepMs: option({
    key: 'keep',
    kind: span(hourMs),
    default: 7 * dayMs,
    about: 'How long contents are kept, at least 1h, whatever `ledger.keep` says.',
  }),
  bodyBytes: option({
    key: 'body',
    kind: size(kibibyte, 2 * mebibyte, ['256KiB', '1MiB']),
    default: 256 * kibibyte,
    about: 'Of each request and each answer. Of longer ones the beginning and the end are kept.',
  }),
  totalBytes: option({
    key: 'total',
    kind: size(mebibyte, tebibyte, ['1GiB', '20GiB']),
    default: 1024 * mebibyte,
    defaultInMemory: 64 * mebibyte,
    about: 'What all contents may take in the store. The oldest are removed first.',
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
    about: 'What the responses of one API key may take. The oldest are removed first.',
  }),
  totalBytes: option({
    key: 'total',
    kind: size(mebibyte, tebibyte, ['1GiB', '20GiB']),
    default: 1024 * mebibyte,
    defaultInMemory: 64 * mebibyte,
    about: 'What all responses may take in the store. The oldest are removed first.',
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
    about: 'The wire format that the address speaks. Preset for known vendors.',
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
      'Whether clients of the other format may use web search that the provider runs and charges for. If not, such tools are refused, or left out where the call can do without.',
  }),
  like: option({
    key: 'like',
    kind: text,
    about:
      'The known vendor or engine that answers at this address, e.g. vllm; its rules apply. Preset for known vendors.',
  }),
  region: option({
    key: 'region',
    kind: text,
    about:
      'Where this openai-chat provider runs its models, as a request may ask for it by inference_geo.',
  }),
  connections: option({
    key: 'connections',
    kind: choice(['shared', 'per-team', 'per-key', 'per-call']),
    otherwise: 'shared',
    about:
      'Whose calls may share a connection, for upstreams that are not trusted to keep answers apart. shared = all calls; per-call = one call a connection.',
  }),
  betas: option({
    key: 'betas',
    kind: list(/^[A-Za-z0-9._-]+$/, 'is no name of a beta'),
    otherwise: 'all',
    about:
      'Values of anthropic-beta that this address takes; others are not sent on. A fast-mode-… among them opens the fast tier to chat clients.',
  }),
  onAbort: option({
    key: 'on_abort',
    kind: choice(['abort', 'drain']),
    otherwise: 'abort',
    about:
      'What happens to a stream whose client leaves. abort closes it; drain reads it to its end for the usage it reports, where the provider charges for all of it.',
  }),
  traceContext: option({
    key: 'trace_context',
    kind: onOff,
    otherwise: 'false',
    about:
      'Whether the provider gets traceparent and tracestate, so that its spans join the trace (docs/operator/traces.md).',
  }),
} as const;

/** A route, besides its targets and its rules of retries and time limits (routes.ts). */
export const routeOptions = {
  order: option({
    key: 'order',
    kind: choice(orders),
    default: 'listed',
    about:
      'listed: the first target that can; weighted: by share; least-busy: the one with the fewest running calls, by weight; fastest: the one that begins to answer soonest; cheapest: by price.',
  }),
  affinity: option({
    key: 'affinity',
    kind: onOff,
    otherwise: 'true',
    about:
      'Whether calls of one conversation go to the same target and credential while they are healthy, so that caches stay warm.',
  }),
  cache: option({
    key: 'cache',
    kind: choice(['auto']),
    about:
      'auto: cache marks on tools, instructions and the last two turns of the user, where the client sets none and the provider takes them.',
  }),
  strict: option({
    key: 'strict',
    kind: onOff,
    otherwise: 'false; x-gateway-notes names the loss',
    about: 'Refuses a request that a translation would change or drop something from.',
  }),
  serverTools: providerOptions.serverTools,
  api: option({
    key: 'api',
    kind: choice(['chat', 'responses']),
    otherwise: "the provider's dialect",
    about:
      "Which of OpenAI's two APIs its targets are asked by, where they have both. Models of OpenAI that refuse tools beside reasoning in chat take both by responses.",
  }),
} as const;

/** `traces:` besides its address, headers, certificates and attributes (traces.ts). */
export const traceOptions = {
  sample: option({
    key: 'sample',
    kind: share,
    otherwise: '1',
    about: 'Share of the traces that begin here.',
  }),
  follow: option({
    key: 'follow',
    kind: onOff,
    otherwise: 'true',
    about:
      "Whether a client's traceparent goes on here and its sampled flag decides. Set it to false where clients are strangers.",
  }),
  content: option({
    key: 'content',
    kind: onOff,
    otherwise: 'false',
    about: 'Whether prompts and answers go into the spans, cut and with credentials masked.',
  }),
  compression: option({
    key: 'compression',
    kind: choice(['gzip', 'none']),
    otherwise: 'none',
    about: 'Compression of what is sent.',
  }),
  timeoutMs: option({
    key: 'timeout',
    kind: duration(),
    otherwise: '10s',
    about: 'Until the collector has answered.',
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
    about: 'The folder of the model files, where pull puts them.',
  }),
  idleUnloadMs: option({
    ...idle,
    otherwise: '10m',
    about: 'A model without calls for this long leaves memory; never = it stays.',
  }),
  hangMs: option({
    key: 'hang',
    kind: duration(),
    otherwise: '2m',
    about:
      'An engine that gives no sign of life, or no token while a call waits for one, for this long is ended.',
  }),
  maxLoaded: option({
    key: 'max_loaded',
    kind: whole(1, 100),
    otherwise: '3',
    about: 'Models in memory at the same time.',
  }),
  memoryBytes: option({
    key: 'memory',
    kind: size(1, tebibyte, ['8GiB', '500MB']),
    otherwise: '60 % of the memory',
    about: 'What the files of loaded models may take together.',
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
    otherwise: 'the hash that pull has noted',
    about: 'The engine refuses a file with another hash.',
  }),
  context: option({
    key: 'context',
    kind: whole(128, 16_777_216),
    otherwise: 'what the model was trained on, at most 8192',
    about: 'Tokens of prompt and answer together, of each call.',
  }),
  threads: option({
    key: 'threads',
    kind: whole(1, 1024),
    otherwise: 'all cores but one; 1 for models below 64 MiB',
    about: 'Threads of the engine.',
  }),
  parallel: option({
    key: 'parallel',
    kind: whole(1, 64),
    otherwise: '4',
    about: 'Calls that generate at the same time.',
  }),
  idleUnloadMs: option({
    ...idle,
    otherwise: 'as local.idle_unload',
    about: 'This model without calls for this long leaves memory; never = it stays.',
  }),
} as const;
export type LocalModelOptions = GivenOf<typeof localModelOptions>;
