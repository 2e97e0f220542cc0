/**
 * Describes chat and messages bodies. One class reads the members of both formats: servers of either take members of
 * the other, and a member that costs money must count under any endpoint.
 */
import { isObject, type Json, type JsonObject } from '../../../json/value.ts';
import type {
  CostTerms,
  DescribedSource,
  NamedModels,
  Prompt,
  RequestDescription,
  RequestParameters,
  SearchRequest,
} from '../../../core/description.ts';
import type { RaisedCost } from '../../../core/policy.ts';
import { modelsNamedIn, searchesIn, isSearch } from './requested-services.ts';
import { promptOf } from './prompt.ts';

// Members of a request that can make it cost more than its prompt, its cap and its price say. A budget reserves
// what they may add; what has no bound refuses the call of a key with a budget. Requested only where a budget counts.

type Raising = { -readonly [K in keyof RaisedCost]: RaisedCost[K] };

/**
 * Members without a cost of their own, or whose cost is reserved elsewhere (searches and other models, see
 * `requested-services.ts`). All other members are examined.
 */
const harmless: ReadonlySet<string> = new Set(
  `
  model messages system stream stream_options max_tokens max_completion_tokens stop stop_sequences
  temperature top_p top_k seed presence_penalty frequency_penalty logit_bias logprobs top_logprobs
  tool_choice parallel_tool_calls functions function_call response_format output_format output_config
  reasoning_effort verbosity audio metadata user safety_identifier store
  prompt_cache_key prompt_cache_retention cache_control service_tier speed
  web_search_options search_parameters enable_search models fallbacks preset
  `
    .trim()
    .split(/\s+/),
);

function isOff(value: Json | undefined): boolean {
  return (
    value === undefined ||
    value === null ||
    value === false ||
    (Array.isArray(value) && value.length === 0)
  );
}

type Reader = (value: Json, raising: Raising, terms: CostTerms) => void;

const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  // Rejected tokens of a prediction are billed as output, in addition to the answer.
  [
    'prediction',
    (value, raising, { tokensOf }) => {
      raising.extraOutput += tokensOf(JSON.stringify(value));
    },
  ],
  ['modalities', (value, raising) => modalities(value, raising, 'modalities')],
  ['tools', (value, raising) => listOf(value).forEach((tool) => serverTool(tool, raising))],
  [
    'plugins',
    (value, raising) => {
      if (listOf(value).some(isExpensivePlugin)) raising.unbounded ??= 'plugins';
    },
  ],
  [
    'thinking',
    (value, raising, { reasoningBudget: within }) => {
      if (within === undefined) new CapScanner(raising, 'thinking').at('thinking', value, 0);
      else raising.outputAtLeast = Math.max(raising.outputAtLeast, Math.min(within, tokenCap));
    },
  ],
  ['mcp_servers', (_, raising) => void (raising.unbounded ??= 'mcp_servers')],
  // A template is kept by the vendor: what it adds to the prompt is not known here.
  [
    'prompt',
    (value, raising) => {
      if (isObject(value)) raising.unbounded ??= 'prompt';
    },
  ],
  // Which of the hosts of a model answers decides its price.
  [
    'provider',
    (value, raising) => {
      if (isObject(value) && choosing.some((name) => !isOff(value[name]))) {
        raising.unbounded ??= 'provider';
      }
    },
  ],
  [
    'inference_geo',
    (value, raising) => {
      if (value !== 'global') raising.unbounded ??= 'inference_geo';
    },
  ],
  // A compaction is a request of its own.
  [
    'context_management',
    (value, raising) => {
      const edits = listOf(isObject(value) ? value['edits'] : value);
      if (edits.some((edit) => typeOf(edit).startsWith('compact'))) raising.requests = 2;
    },
  ],
]);

/** Members that are read by their name; in all others every name is examined in any style of writing. */
export const expensiveMembers: readonly string[] = [...readers.keys()];

const choosing = ['order', 'only', 'ignore', 'sort', 'quantizations'] as const;
/** OpenRouter's: `web` is a search, the other costs nothing. */
const cheapPlugins: ReadonlySet<string> = new Set(['web', 'response-healing']);

function isExpensivePlugin(plugin: Json): boolean {
  if (!isObject(plugin)) return true;
  const { id, enabled } = plugin;
  return enabled !== false && !(typeof id === 'string' && cheapPlugins.has(id));
}

/** Tools that the client runs, and those that only look at what the request holds. */
const cheapTools =
  /^(function$|custom$|bash_|text_editor_|computer|memory_|local_shell|apply_patch|tool_search)/;

function serverTool(tool: Json, raising: Raising): void {
  const type = typeOf(tool);
  if (type === 'namespace' && isObject(tool)) {
    listOf(tool['tools']).forEach((each) => serverTool(each, raising));
    return;
  }
  // Searches are reserved by `requested-services.ts`.
  if (type === '' || cheapTools.test(type) || isSearch(type)) return;
  const { max_uses: uses, max_content_tokens: tokens } = isObject(tool) ? tool : {};
  if (type.startsWith('web_fetch_') && isCount(uses) && isCount(tokens)) {
    raising.prompt += Math.min(uses * tokens, tokenCap);
  } else {
    raising.unbounded ??= 'tools';
  }
}

function modalities(value: Json, raising: Raising, member: string): void {
  for (const each of typeof value === 'string' ? [value] : listOf(value)) {
    const name = typeof each === 'string' ? each.toLowerCase() : '';
    if (name === 'audio') raising.sound = member;
    else if (name === 'image') raising.pictures = member;
    else if (name !== 'text') raising.unbounded ??= member;
  }
}

/** More than any model writes or reads; sums of it stay exact. */
const tokenCap = 1e9;
const maxAnswers = 1000;
/** An object of options is not larger. */
const maxLooks = 1000;
const maxDepth = 8;

/** Names in any style of writing, of a number of tokens that may be written. */
const capName = /token|predict|length|budget/;
const noCapName =
  /prompt|input|context|ctx|logprob|truncat|penalty|target|prefix|stop|special|suppress|ids?$/;
/** What is below describes the form of an answer, or is not read by a model. */
const otherName = /schema|json|grammar|regex|format|structured|metadata|label/;
const reasoningName = /reason|think/;
/** Names of a number of answers that are generated for one. */
const answersName =
  /^(n|bestof|num(return)?(sequences|generations|completions|outputs|samples|choices|candidates|beams)|(candidate|sample)count|ncandidates|nsamples|beam(width|size))$/;

/** Searches for numbers whose names say that they raise the cost, in members that the gateway does not know. */
class CapScanner {
  readonly #raising: Raising;
  readonly #member: string;
  #left = maxLooks;

  constructor(raising: Raising, member: string) {
    this.#raising = raising;
    this.#member = member;
  }

  /** @param path names from the member on */
  at(path: string, value: Json, depth: number): void {
    this.#left -= 1;
    if (this.#left < 0 || depth > maxDepth) {
      this.#raising.unbounded ??= this.#member;
    } else if (Array.isArray(value)) {
      this.#named(path, value);
      for (const each of value) if (this.#left >= 0) this.at(path, each, depth + 1);
    } else if (isObject(value)) {
      for (const [name, each] of Object.entries(value)) {
        if (each === undefined) continue;
        if (this.#left >= 0 && !otherName.test(plain(name)))
          this.at(`${path}.${name}`, each, depth + 1);
      }
    } else {
      this.#named(path, value);
    }
  }

  #named(path: string, value: Json): void {
    const own = path.slice(path.lastIndexOf('.') + 1);
    const name = plain(own);
    if (name.endsWith('modalities')) return modalities(value, this.#raising, this.#member);
    const number = numberOf(value);
    if (number === undefined) return;
    const raising = this.#raising;
    if (answersName.test(name)) {
      raising.answers = Math.max(raising.answers, Math.min(Math.ceil(number), maxAnswers));
    } else if (capName.test(name) && !noCapName.test(name)) {
      this.#cap(Math.min(Math.ceil(number), tokenCap), reasoningName.test(path.toLowerCase()));
    }
  }

  /** A negative cap is none; a negative budget of reasoning leaves it to the model. */
  #cap(tokens: number, reasoning: boolean): void {
    const raising = this.#raising;
    if (reasoning) raising.extraOutput += Math.max(tokens, 0);
    else if (tokens < 0) raising.unbounded ??= this.#member;
    else raising.outputAtLeast = Math.max(raising.outputAtLeast, tokens);
  }
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]/g, '');
}

/** Some servers read numbers in quotes. */
function numberOf(value: Json | undefined): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && !Number.isNaN(number) ? number : undefined;
}

function isCount(value: Json | undefined): value is number {
  return typeof value === 'number' && value >= 0;
}

function typeOf(value: Json): string {
  const type = isObject(value) ? value['type'] : undefined;
  return typeof type === 'string' ? type : '';
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** Tiers and speeds at the usual price or below; the price of `auto` is looked up. */
const cheapTiers: ReadonlySet<string> = new Set(
  'auto default standard standard_only flex batch on_demand'.split(' '),
);
const cheapSpeeds: ReadonlySet<string> = new Set(['standard']);

export class BodyDescription implements RequestDescription {
  readonly #source: DescribedSource;

  constructor(source: DescribedSource) {
    this.#source = source;
  }

  prompt(): Prompt {
    return promptOf(this.#source.value);
  }

  protected get body(): JsonObject {
    return this.#source.value;
  }

  protected get options(): JsonObject {
    return this.#source.skeleton;
  }

  opening(): string {
    const { system, messages } = this.#source.value;
    return this.openingOf(system, Array.isArray(messages) ? messages : []);
  }

  protected openingOf(instructions: Json | undefined, messages: readonly Json[]): string {
    const text = new OpeningText();
    text.add(instructions);
    for (const message of messages) {
      text.add(message);
      if (isUserMessage(message)) break;
    }
    return text.text;
  }

  *userTexts(): Generator<string> {
    const { messages } = this.#source.value;
    for (const message of Array.isArray(messages) ? messages : []) yield* userTextsOf(message);
  }

  /** Of messages; all that they request can be requested by the Responses API as well as by chat completions. */
  reasonsWithTools(): boolean {
    const { tools, thinking } = this.options;
    return listOf(tools).length > 0 && !(isObject(thinking) && thinking['type'] === 'disabled');
  }

  cacheKey(): string | undefined {
    const { prompt_cache_key: key } = this.#source.skeleton;
    return textOf(key);
  }

  otherModels(): NamedModels | undefined {
    return modelsNamedIn(this.#source.skeleton);
  }

  searches(always: boolean): readonly SearchRequest[] {
    return searchesIn(this.#source.skeleton, always);
  }

  raisedCost(terms: CostTerms): RaisedCost | undefined {
    // Undefined where nothing raises the cost.
    const raising: Raising = {
      outputAtLeast: 0,
      extraOutput: 0,
      prompt: 0,
      answers: 1,
      requests: 1,
    };
    let any = false;
    for (const [member, value] of Object.entries(this.#source.skeleton)) {
      if (value === undefined || this.isHarmless(member) || isOff(value)) continue;
      any = true;
      const reader = readers.get(member);
      if (reader !== undefined) reader(value, raising, terms);
      else if (!otherName.test(plain(member))) new CapScanner(raising, member).at(member, value, 0);
    }
    return any ? raising : undefined;
  }

  /** Whether a member raises no cost, or one that is reserved elsewhere. */
  protected isHarmless(member: string): boolean {
    return harmless.has(member);
  }

  serviceTier(): string | undefined {
    const { service_tier: tier, speed } = this.#source.skeleton;
    if (speed === 'fast') return speed;
    return typeof tier === 'string' ? tier : undefined;
  }

  translatedTier(): string | undefined {
    return this.serviceTier();
  }

  expensiveTierMember(): string | undefined {
    const { service_tier: tier, speed } = this.#source.skeleton;
    if (isExpensive(tier, cheapTiers)) return 'service_tier';
    return isExpensive(speed, cheapSpeeds) ? 'speed' : undefined;
  }

  capMember(): string {
    return 'max_completion_tokens' in this.#source.skeleton
      ? 'max_completion_tokens'
      : 'max_tokens';
  }

  /** `safety_identifier` or `user` of chat, `metadata.user_id` of messages. */
  endUser(): string | undefined {
    const { safety_identifier: newer, user, metadata } = this.#source.skeleton;
    return (
      textOf(newer) ??
      textOf(user) ??
      (isObject(metadata) ? textOf(metadata['user_id']) : undefined)
    );
  }

  metadata(): readonly (readonly [string, string])[] | undefined {
    const { metadata } = this.#source.skeleton;
    if (metadata === undefined) return undefined;
    if (!isObject(metadata)) return [];
    return Object.entries(metadata).filter(
      (entry): entry is [string, string] => entry[0] !== 'user_id' && typeof entry[1] === 'string',
    );
  }

  parameters(): RequestParameters {
    const body = this.#source.skeleton;
    const { output_config: config } = body;
    const format =
      body['response_format'] ??
      (isObject(config) ? config['format'] : undefined) ??
      body['output_format'];
    const type = isObject(format) ? format['type'] : undefined;
    return {
      maxTokens: integer(body['max_completion_tokens'] ?? body['max_tokens']),
      temperature: number(body['temperature']),
      topP: number(body['top_p']),
      topK: number(body['top_k']),
      frequencyPenalty: number(body['frequency_penalty']),
      presencePenalty: number(body['presence_penalty']),
      seed: integer(body['seed']),
      choices: integer(body['n']),
      stop: stops(body['stop_sequences'] ?? body['stop']),
      json: type === 'json_object' || type === 'json_schema',
    };
  }
}

/** The texts of a message of the user, in either format; none of any other message. */
export function* userTextsOf(message: Json): Generator<string> {
  if (!isUserMessage(message)) return;
  const { content } = message;
  if (typeof content === 'string') yield content;
  if (!Array.isArray(content)) return;
  for (const part of content) {
    if (isObject(part) && typeof part['text'] === 'string') yield part['text'];
  }
}

function isUserMessage(message: Json): message is JsonObject {
  return isObject(message) && message['role'] === 'user';
}

function isExpensive(asked: Json | undefined, cheap: ReadonlySet<string>): boolean {
  if (asked === undefined || asked === null) return false;
  return typeof asked !== 'string' || !cheap.has(asked);
}

/** Of each text, its beginning and its end identify it: prompts of agents are long and begin alike. */
const comparedLength = 2048;
/** Characters of an opening that are compared. */
const maxOpeningLength = 64 * 1024;

/** Writes equal text for values that mean the same; cache marks move between requests and are omitted. */
class OpeningText {
  text = '';

  add(value: Json | undefined): void {
    if (this.text.length > maxOpeningLength) return;
    if (typeof value === 'string') this.#addText(value);
    else if (Array.isArray(value)) for (const each of value) this.add(each);
    else if (isTextPart(value)) this.#addText(value.text);
    else if (isObject(value)) {
      for (const name in value) {
        if (name === 'cache_control') continue;
        this.text += `${name}=`;
        this.add(value[name]);
      }
    } else if (value !== undefined) this.text += `${String(value)};`;
  }

  #addText(value: string): void {
    const { length } = value;
    const seen =
      length <= 2 * comparedLength
        ? value
        : value.slice(0, comparedLength) + value.slice(-comparedLength);
    this.text += `${length}:${seen};`;
  }
}

/** Clients write a text plainly, and as a part where they mark it for a cache: it is the same text. */
function isTextPart(value: Json | undefined): value is { readonly text: string } {
  return isObject(value) && value['type'] === 'text' && typeof value['text'] === 'string';
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function integer(value: Json | undefined): number | undefined {
  return Number.isSafeInteger(value) ? Number(value) : undefined;
}

function number(value: Json | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

function stops(stop: Json | undefined): readonly string[] | undefined {
  if (typeof stop === 'string') return [stop];
  if (!Array.isArray(stop) || stop.length === 0) return undefined;
  return stop.filter((each) => typeof each === 'string');
}
