/** Reads the body of a chat-completions request (wire/chat-completions.md §2). Null is absent. */
import { invalid, unsupported } from './engine-error.ts';
import { isArray, isObject, member, type Json, type JsonObject } from './json.ts';
import { readMessages, type ChatMessage } from './messages.ts';
import { readTools, type ToolUse } from './tools.ts';

export interface Sampling {
  readonly temperature: number;
  /** 0 = off. */
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly seed?: number;
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: ToolUse;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** The caller's cap on generated tokens, the end token included. */
  readonly maxTokens?: number;
  readonly stop: readonly string[];
  readonly sampling: Sampling;
}

/** llama.cpp's customary sampling, for callers that set none. */
const defaults = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 } as const;
const maxStopSequences = 64;
const maxStopLength = 1024;

/** @throws EngineError 400 that names the field. */
export function readRequest(body: Json | undefined): ChatRequest {
  if (!isObject(body)) throw invalid('The request body must be a JSON object.', 'body');
  refuseUnsupported(body);
  const model = member(body, 'model');
  if (typeof model !== 'string' || model === '') {
    throw invalid('A model is required.', 'model', 'missing_required_parameter');
  }
  const streamOptions = member(body, 'stream_options');
  const maxTokens =
    integer(body, 'max_completion_tokens', { min: 1 }) ?? integer(body, 'max_tokens', { min: 1 });
  return {
    model,
    messages: readMessages(member(body, 'messages')),
    tools: readTools(body),
    stream: flag(body, 'stream'),
    includeUsage: isObject(streamOptions) && flag(streamOptions, 'include_usage'),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    stop: readStop(member(body, 'stop')),
    sampling: readSampling(body),
  };
}

function readSampling(body: JsonObject): Sampling {
  const seed = integer(body, 'seed', {});
  return {
    temperature: number(body, 'temperature', { min: 0, max: 2 }) ?? defaults.temperature,
    // Servers in the wild spell "off" as 0 or as -1.
    topK: Math.max(0, integer(body, 'top_k', { min: -1 }) ?? defaults.topK),
    topP: number(body, 'top_p', { min: 0, max: 1 }) ?? defaults.topP,
    minP: number(body, 'min_p', { min: 0, max: 1 }) ?? defaults.minP,
    frequencyPenalty: number(body, 'frequency_penalty', { min: -2, max: 2 }) ?? 0,
    presencePenalty: number(body, 'presence_penalty', { min: -2, max: 2 }) ?? 0,
    ...(seed === undefined ? {} : { seed }),
  };
}

/** Fields that change the answer and that this engine does not do, with the values that ask nothing. */
const refused: {
  readonly [field: string]: { readonly unless: (value: Json) => boolean; readonly why: string };
} = {
  n: { unless: (value) => value === 1, why: 'one choice per request' },
  logprobs: { unless: (value) => value === false, why: 'no log probabilities' },
  top_logprobs: { unless: (value) => value === 0, why: 'no log probabilities' },
  logit_bias: { unless: isEmptyObject, why: 'no token biases' },
  response_format: { unless: isTextFormat, why: 'text only, no JSON mode' },
  functions: { unless: never, why: 'use "tools"' },
  function_call: { unless: never, why: 'use "tool_choice"' },
  modalities: { unless: isTextOnly, why: 'text only' },
  audio: { unless: never, why: 'text only' },
  reasoning_effort: { unless: (value) => value === 'none', why: 'no reasoning control' },
  web_search_options: { unless: never, why: 'no web search' },
  moderation: { unless: never, why: 'no moderation' },
};

function refuseUnsupported(body: JsonObject): void {
  for (const field of Object.keys(refused)) {
    const value = member(body, field);
    const rule = refused[field];
    if (value === undefined || rule === undefined || rule.unless(value)) continue;
    throw unsupported(`The local engine does not support "${field}": ${rule.why}.`, field);
  }
}

function never(): boolean {
  return false;
}

function isEmptyObject(value: Json): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

function isTextFormat(value: Json): boolean {
  return isObject(value) && value['type'] === 'text';
}

function isTextOnly(value: Json): boolean {
  return isArray(value) && value.every((item) => item === 'text');
}

function readStop(value: Json | undefined): readonly string[] {
  if (value === undefined) return [];
  const list = isArray(value) ? value : [value];
  if (list.length > maxStopSequences) {
    throw invalid(`At most ${maxStopSequences} stop sequences are allowed.`, 'stop');
  }
  return list.map((item, index) => {
    const param = isArray(value) ? `stop[${index}]` : 'stop';
    if (typeof item !== 'string') throw wrongType(param, 'a string');
    if (item === '' || item.length > maxStopLength) {
      throw invalid(`A stop sequence has 1 to ${maxStopLength} characters.`, param);
    }
    return item;
  });
}

interface Range {
  readonly min?: number;
  readonly max?: number;
}

function number(body: JsonObject, field: string, range: Range): number | undefined {
  const value = member(body, field);
  if (value === undefined) return undefined;
  if (typeof value !== 'number') throw wrongType(field, 'a number');
  const { min = -Infinity, max = Infinity } = range;
  if (value >= min && value <= max) return value;
  throw invalid(`Invalid "${field}": expected a value ${describeRange(range)}.`, field);
}

function describeRange({ min, max }: Range): string {
  if (max === undefined) return `of at least ${min}`;
  return `between ${min} and ${max}`;
}

function integer(body: JsonObject, field: string, range: Range): number | undefined {
  const value = number(body, field, range);
  if (value !== undefined && !Number.isInteger(value)) throw wrongType(field, 'an integer');
  return value;
}

function flag(body: JsonObject, field: string): boolean {
  const value = member(body, field);
  if (value === undefined) return false;
  if (typeof value !== 'boolean') throw wrongType(field, 'a boolean');
  return value;
}

function wrongType(param: string, expected: string): Error {
  return invalid(`Invalid type for "${param}": expected ${expected}.`, param, 'invalid_type');
}
