/**
 * Describes chat and messages bodies. One class reads the members of both formats: servers of either take members of
 * the other, and a member that costs money must count under any endpoint.
 */
import { isObject, type Json, type JsonObject } from '../../json/value.ts';
import type {
  CostTerms,
  DescribedSource,
  NamedModels,
  Prompt,
  RequestDescription,
  RequestParameters,
  SearchRequest,
} from '../../core/description.ts';
import type { RaisedCost } from '../../core/policy.ts';
import { modelsNamedIn, searchesIn } from './asked-services.ts';
import { promptOf } from './prompt.ts';
import { raisedCost } from './raised-cost.ts';

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
    return raisedCost(this.#source.skeleton, terms);
  }

  serviceTier(): string | undefined {
    const { service_tier: tier, speed } = this.#source.skeleton;
    if (speed === 'fast') return speed;
    return typeof tier === 'string' ? tier : undefined;
  }

  dearerTierMember(): string | undefined {
    const { service_tier: tier, speed } = this.#source.skeleton;
    if (isDearer(tier, cheapTiers)) return 'service_tier';
    return isDearer(speed, cheapSpeeds) ? 'speed' : undefined;
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

function isDearer(asked: Json | undefined, cheap: ReadonlySet<string>): boolean {
  if (asked === undefined || asked === null) return false;
  return typeof asked !== 'string' || !cheap.has(asked);
}

/** Of each text, its beginning and its end identify it: prompts of agents are long and begin alike. */
const comparedLength = 2048;
/** Characters of an opening; more of them tell no two conversations apart. */
const maxOpeningLength = 64 * 1024;

/** Writes equal text for values that mean the same; cache marks move between requests and are left out. */
class OpeningText {
  text = '';

  add(value: Json | undefined): void {
    if (this.text.length > maxOpeningLength) return;
    if (typeof value === 'string') this.#addText(value);
    else if (Array.isArray(value)) for (const each of value) this.add(each);
    else if (isTextPart(value)) this.#addText(value.text);
    else if (isObject(value)) this.#addMembers(value);
    else if (value !== undefined) this.text += `${String(value)};`;
  }

  #addText(value: string): void {
    const { length } = value;
    const seen =
      length <= 2 * comparedLength
        ? value
        : value.slice(0, comparedLength) + value.slice(-comparedLength);
    this.text += `${length}:${seen};`;
  }

  #addMembers(value: JsonObject): void {
    for (const name in value) {
      if (name === 'cache_control') continue;
      this.text += `${name}=`;
      this.add(value[name]);
    }
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
