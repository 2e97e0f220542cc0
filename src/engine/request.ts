/** Reads the body of a chat-completions request. Null is absent. */
import { invalid, unsupported } from './engine-error.ts';
import { flag, integer, wrongType } from './fields.ts';
import { isArray, isObject, member, type Json, type JsonObject } from './json.ts';
import { readMessages, type ChatMessage } from './messages.ts';
import { readOutputFormat, type OutputFormat } from './output-format.ts';
import { readSampling, type SamplingWishes } from './sampling.ts';
import { readThinking, type ThinkingWishes } from './thinking.ts';
import { readTools, type ToolUse } from './tools.ts';

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: ToolUse;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** The caller's cap on generated tokens, the end token included. */
  readonly maxTokens?: number;
  readonly stop: readonly string[];
  readonly sampling: SamplingWishes;
  readonly thinking: ThinkingWishes;
  readonly format?: OutputFormat;
  /** Log probabilities of each token and of this many of the most likely ones; absent = not requested. */
  readonly logprobs?: number;
}

const maxStopSequences = 64;
const maxStopLength = 1024;
const maxLogprobs = 20;

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
  const tools = readTools(body);
  const format = readOutputFormat(body);
  const logprobs = readLogprobs(body, tools.required || format !== undefined);
  return {
    model,
    messages: readMessages(member(body, 'messages')),
    tools,
    stream: flag(body, 'stream'),
    includeUsage: isObject(streamOptions) && flag(streamOptions, 'include_usage'),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    stop: readStop(member(body, 'stop')),
    sampling: readSampling(body),
    thinking: readThinking(body),
    ...(format === undefined ? {} : { format }),
    ...(logprobs === undefined ? {} : { logprobs }),
  };
}

function readLogprobs(body: JsonObject, held: boolean): number | undefined {
  const asked = flag(body, 'logprobs');
  const top = integer(body, 'top_logprobs', { min: 0, max: maxLogprobs });
  if (!asked) {
    if (top === undefined || top === 0) return undefined;
    throw invalid('"top_logprobs" needs "logprobs".', 'top_logprobs');
  }
  if (!held) return top ?? 0;
  throw unsupported(
    'Log probabilities are not given for answers that are held to a form ' +
      '("response_format", or "tool_choice" that asks for a call).',
    'logprobs',
  );
}

/** Fields that change the answer and that this engine does not do, with the values that ask nothing. */
const refused: {
  readonly [field: string]: { readonly unless: (value: Json) => boolean; readonly why: string };
} = {
  n: { unless: (value) => value === 1, why: 'one choice per request' },
  functions: { unless: never, why: 'use "tools"' },
  function_call: { unless: never, why: 'use "tool_choice"' },
  modalities: { unless: isTextOnly, why: 'text only' },
  audio: { unless: never, why: 'text only' },
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
