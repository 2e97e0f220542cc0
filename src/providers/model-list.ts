/** The models that a provider lists: read on demand, cached for a while, bounded in time and size. */
import { GatewayError } from '../core/errors.ts';
import type { Endpoint, Provider } from '../core/provider.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { withoutKeys } from '../core/secret.ts';
import { errorSentence } from '../dialects/shared/vendor-errors.ts';
import { tryParseObject } from '../json/parse.ts';
import { isObject, type Json, type JsonObject } from '../json/value.ts';
import type { HttpClient } from '../wire/http-client.ts';
import { requestWhole } from '../wire/exchange.ts';

const freshForMs = 5 * 60_000;
const retryAfterMs = 30_000;
const limits = { timeoutMs: 3000, maxBytes: 8 * 1024 * 1024 } as const;

interface ModelListOptions {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly connectMs: number;
}

type Models = ReadonlyMap<string, ModelFacts>;

interface Entry {
  readonly models: Models | undefined;
  readonly until: number;
  readonly pending?: Promise<Models | undefined>;
}

export class ModelLists {
  readonly #options: ModelListOptions;
  readonly #entries = new Map<string, Entry>();
  /** Requested with every call that has a limit. */
  readonly #places = new WeakMap<Provider, string>();

  constructor(options: ModelListOptions) {
    this.#options = options;
  }

  /** The list as last known, without asking; undefined when the provider never answered. */
  known(provider: Provider): Models | undefined {
    const { ownModels } = provider;
    if (ownModels !== undefined) return new Map(ownModels.map((name) => [name, {}]));
    return this.#entries.get(this.#place(provider))?.models;
  }

  /** The list, requested when it is old. Undefined when the provider does not answer. Never throws. */
  async get(provider: Provider): Promise<Models | undefined> {
    if (provider.ownModels !== undefined) return this.known(provider);
    const { clock } = this.#options;
    const entry = this.#entries.get(place(provider));
    if (entry?.pending !== undefined) return entry.pending;
    if (entry !== undefined && clock.now() < entry.until) return entry.models;
    const pending = this.#ask(provider).then((answered) => {
      const until = clock.now() + (answered === undefined ? retryAfterMs : freshForMs);
      const models = answered ?? entry?.models;
      this.#entries.set(place(provider), { models, until });
      return models;
    });
    this.#entries.set(place(provider), { models: entry?.models, until: 0, pending });
    return pending;
  }

  #place(provider: Provider): string {
    let known = this.#places.get(provider);
    if (known === undefined) {
      known = place(provider);
      this.#places.set(provider, known);
    }
    return known;
  }

  async #ask(provider: Provider): Promise<Models | undefined> {
    const { client, log, connectMs } = this.#options;
    try {
      const { status, models } = await askForList(client, provider, connectMs);
      if (models === undefined) {
        log.debug('model_list_not_read', { provider: provider.id, status });
      }
      return models;
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown';
      log.debug('model_list_not_read', { provider: provider.id, reason });
      return undefined;
    }
  }
}

interface AnsweredList {
  readonly status: number;
  /** Of the last page. */
  readonly body: string;
  /** Undefined where it is no list. */
  readonly models: Models | undefined;
}

const maxPages = 20;

type Lists = Pick<Provider, 'models' | 'moreModels' | 'mayHave'>;

/** The whole list. Of several, those after the first may be closed to the account. @throws GatewayError */
async function askForList(
  client: HttpClient,
  { models: first, moreModels = [], mayHave }: Lists,
  connectMs: number,
): Promise<AnsweredList> {
  const answered = await askForPages(client, first, connectMs);
  if (answered.models === undefined) return answered;
  const more = await Promise.all(moreModels.map((each) => askForPages(client, each, connectMs)));
  const all = [answered, ...more].flatMap(({ models }) => [...(models ?? [])]);
  return { ...answered, models: new Map(all.filter(([name]) => mayHave?.(name) !== false)) };
}

/** One list, page by page where it has several. @throws GatewayError where a page does not come */
async function askForPages(
  client: HttpClient,
  endpoint: Endpoint,
  connectMs: number,
): Promise<AnsweredList> {
  const models = new Map<string, ModelFacts>();
  let path = endpoint.path;
  for (let page = 1; ; page += 1) {
    const at = path === endpoint.path ? endpoint : { ...endpoint, path };
    const request = { endpoint: at, method: 'GET', headers: [], connectMs } as const;
    const { status, body } = await requestWhole(client, request, limits);
    const list = status === 200 ? readModels(body) : undefined;
    if (list === undefined) return { status, body, models: undefined };
    for (const [name, facts] of list.models) models.set(name, facts);
    if (list.next === undefined || page >= maxPages) return { status, body, models };
    const mark = endpoint.path.includes('?') ? '&' : '?';
    path = `${endpoint.path}${mark}${list.next}`;
  }
}

/** What came of asking a provider for its models with the credential that calls have. */
export interface ProviderCheck {
  readonly id: string;
  readonly works: boolean;
  /** In words for the operator. */
  readonly message: string;
}

/** Asks one provider, for `check --ask`. Never throws. */
export async function askProvider(
  client: HttpClient,
  provider: Provider,
  connectMs: number,
): Promise<ProviderCheck> {
  const { id, dialect } = provider;
  try {
    const { status, body, models } = await askForList(client, provider, connectMs);
    if (models !== undefined) return { id, works: true, message: `lists ${models.size} models` };
    if (status === 200) return { id, works: false, message: 'answered with no list of models' };
    const { code, message } = dialect.readError(status, body);
    const said = errorSentence(tryParseObject(body)).slice(0, maxSentenceLength);
    const words = `(${status}): ${withoutKeys(said === '' ? message : said)}`;
    if (status === 403 && mayNotList.test(said)) {
      return { id, works: true, message: `lets the credential in, but not list models ${words}` };
    }
    if (code === 'upstream_auth') {
      return { id, works: false, message: `refused the credential ${words}` };
    }
    const at = status === 404 ? ` at ${place(provider).replace(/\?.*$/s, '')}` : '';
    return { id, works: false, message: `has no list of models${at} ${words}` };
  } catch (error) {
    const why = error instanceof GatewayError ? (error.detail ?? error.message) : String(error);
    return { id, works: false, message: why };
  }
}

const maxSentenceLength = 300;

/** Said to those who are known and lack this one permission, as roles that may only call models do. */
const mayNotList = /not authorized to perform: \S*:List|permission '\S*\.list' denied/i;

/** Lists belong to addresses: a reload may give a provider another one. */
function place({ models }: Provider): string {
  return `${models.socketPath ?? models.origin}${models.path}`;
}

interface ListPage {
  readonly models: Models;
  /** The parameter of the next page, where there is one. */
  readonly next?: string;
}

/** The models of a list in any dialect's shape; undefined when it is none. */
function readModels(text: string): ListPage | undefined {
  const list = tryParseObject(text) ?? {};
  const entries = entriesOf(list);
  if (!Array.isArray(entries)) return undefined;
  const models = new Map<string, ModelFacts>();
  for (const entry of entries) {
    if (!isObject(entry) || !generates(entry)) continue;
    const id = listedId(entry) ?? (entries === list['models'] ? entry['name'] : undefined);
    // Gemini lists `models/NAME`, and takes NAME.
    if (typeof id === 'string') models.set(id.replace(/^models\//, ''), readModelFacts(entry));
  }
  const next = nextPage(list, 'nextPageToken', 'pageToken') ?? nextPage(list, 'nextToken');
  return { models, ...(next === undefined ? {} : { next }) };
}

/** Vertex AI lists models of all kinds under the names of their resources, Bedrock what they are called by. */
function entriesOf(list: JsonObject): Json | undefined {
  const { data, models, publisherModels, inferenceProfileSummaries, modelSummaries } = list;
  return data ?? publisherModels ?? models ?? inferenceProfileSummaries ?? modelSummaries;
}

function nextPage(list: JsonObject, member: string, parameter = member): string | undefined {
  const token = text(list[member], Infinity);
  return token === undefined ? undefined : `${parameter}=${encodeURIComponent(token)}`;
}

/** Under the words of different lists. */
function listedId(entry: JsonObject): Json | undefined {
  const { id, inferenceProfileId: profile, modelId, name } = entry;
  return id ?? profile ?? modelId ?? resourceModel(name);
}

/** False for a model that says what it is for, and that is not to answer; or that it is not open to new calls. */
function generates(entry: JsonObject): boolean {
  const { supportedGenerationMethods: methods, modelLifecycle, status } = entry;
  if (Array.isArray(methods)) return methods.includes('generateContent');
  const state = isObject(modelLifecycle) ? modelLifecycle['status'] : status;
  return typeof state !== 'string' || !closed.has(state);
}

/** Of Bedrock. */
const closed: ReadonlySet<string> = new Set(['LEGACY', 'INACTIVE']);

/** `gemini-2.5-pro` of `publishers/google/models/gemini-2.5-pro`; undefined for what does not answer prompts. */
function resourceModel(name: Json | undefined): string | undefined {
  const model =
    typeof name === 'string' ? /^publishers\/google\/models\/(.+)$/.exec(name)?.[1] : '';
  return model?.startsWith('gemini') === true ? model : undefined;
}

// What a provider's list says about a model, in whichever words.

/** Absent = not said. */
export interface ModelFacts {
  readonly displayName?: string;
  /** Ms since the epoch. */
  readonly createdAt?: number;
  readonly maxInputTokens?: number;
  readonly maxOutputTokens?: number;
  /** As the messages API spells them. */
  readonly capabilities?: JsonObject;
  readonly lifecycle?: 'deprecated' | 'retired';
  readonly line?: string;
  readonly deprecatedAt?: string;
  readonly retiresAt?: string;
}

/** @param entry one model of a list in either dialect's form, or with what vendors add to it. */
function readModelFacts(entry: JsonObject): ModelFacts {
  const { capabilities, lifecycle, top_provider: top } = entry;
  return {
    ...present(
      'displayName',
      text(entry['display_name']) ?? text(entry['displayName']) ?? text(entry['name']),
    ),
    ...present('createdAt', createdAt(entry)),
    ...present('maxInputTokens', firstCount(entry, inputMembers)),
    ...present(
      'maxOutputTokens',
      firstCount(entry, outputMembers) ?? firstCount(isObject(top) ? top : {}, outputMembers),
    ),
    ...(isObject(capabilities) && entry['type'] === 'model' ? { capabilities } : {}),
    ...(lifecycle === 'deprecated' || lifecycle === 'retired' ? { lifecycle } : {}),
    ...present('line', text(entry['line'])),
    ...present('deprecatedAt', text(entry['deprecated_at'])),
    ...present('retiresAt', text(entry['retires_at'])),
  };
}

// Anthropic; vLLM; OpenRouter and Together; Groq; Mistral; Gemini.
const inputMembers = [
  'max_input_tokens',
  'max_model_len',
  'context_length',
  'context_window',
  'max_context_length',
  'inputTokenLimit',
] as const;
const outputMembers = ['max_tokens', 'max_completion_tokens', 'outputTokenLimit'] as const;

function firstCount(entry: JsonObject, names: readonly string[]): number | undefined {
  for (const name of names) {
    const value = entry[name];
    if (typeof value === 'number' && Number.isInteger(value) && value > 0) return value;
  }
  return undefined;
}

/** `created_at` as text, or `created` in seconds; 0 stands for unknown. */
function createdAt({ created_at: at, created }: JsonObject): number | undefined {
  const ms = typeof at === 'string' ? Date.parse(at) : Number(created ?? 0) * 1000;
  return Number.isFinite(ms) && ms > 0 && ms < 8e15 ? Math.floor(ms) : undefined;
}

function text(value: Json | undefined, most = 256): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, most) : undefined;
}

/** A member only when there is a value. */
function present<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  const member: { [P in K]?: V } = {};
  if (value !== undefined) member[key] = value;
  return member;
}
