/** Reads the body of a chat-completions request. Null is absent. */
import {
  type Json,
  type JsonObject,
  flag,
  integer,
  invalid,
  isArray,
  isObject,
  member,
  unsupported,
  wrongType,
} from './engine-error.ts';
import { type ChatMessage, readMessages } from './prompt.ts';
import { type SamplingInput, readSampling } from './sampling.ts';
import { type ToolUse, readTools } from './tools.ts';

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: ToolUse;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** The caller's cap on generated tokens, the end token included. */
  readonly maxTokens?: number;
  /** How many answers are requested. */
  readonly choices: number;
  readonly stop: readonly string[];
  readonly sampling: SamplingInput;
  readonly thinking: ThinkingControls;
  readonly format?: OutputFormat;
  /** Log probabilities of each token and of this many of the most likely ones; absent = not requested. */
  readonly logprobs?: number;
}

const maxStopSequences = 64;
const maxStopLength = 1024;
const maxLogprobs = 20;
const maxChoices = 8;

/** @throws EngineError 400 that names the field. */
export function readRequest(body: Json | undefined): ChatRequest {
  if (!isObject(body)) throw invalid('The request body must be a JSON object.', 'body');
  for (const field of Object.keys(refused)) {
    const value = member(body, field);
    const rule = refused[field];
    if (value === undefined || rule === undefined || rule.unless(value)) continue;
    throw unsupported(`The local engine does not support "${field}": ${rule.why}.`, field);
  }
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
    choices: integer(body, 'n', { min: 1, max: maxChoices }) ?? 1,
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
  functions: { unless: never, why: 'use "tools"' },
  function_call: { unless: never, why: 'use "tool_choice"' },
  modalities: { unless: isTextOnly, why: 'text only' },
  audio: { unless: never, why: 'text only' },
  web_search_options: { unless: never, why: 'no web search' },
  moderation: { unless: never, why: 'no moderation' },
};

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

// Reads `response_format`.

/** A form that the whole answer has. */
export interface OutputFormat {
  /** Absent = any JSON object. */
  readonly schema?: Json;
  /** Where the schema is in the request. */
  readonly path: string;
}

/** @throws EngineError 400 that names the member. */
function readOutputFormat(body: JsonObject): OutputFormat | undefined {
  const value = member(body, 'response_format');
  if (value === undefined) return undefined;
  const path = 'response_format';
  if (!isObject(value)) throw invalid('"response_format" must be an object.', path, 'invalid_type');
  switch (value['type']) {
    case 'text':
      return undefined;
    case 'json_object': {
      // llama.cpp and others take a schema here too.
      const schema = member(value, 'schema');
      return schema === undefined ? { path } : { schema, path: `${path}.schema` };
    }
    case 'json_schema': {
      const described = member(value, 'json_schema');
      const schema = isObject(described) ? member(described, 'schema') : undefined;
      if (!isObject(described)) {
        throw invalid('"json_schema" must be an object.', `${path}.json_schema`);
      }
      return { schema: schema ?? {}, path: `${path}.json_schema.schema` };
    }
    default:
      throw invalid('A response format is text, json_object or json_schema.', `${path}.type`);
  }
}

// Reads what a request says about reasoning, and turns it into what the model's template knows.

interface ThinkingControls {
  readonly effort?: string;
  /** `chat_template_kwargs`: values for the template, by the names it uses. */
  readonly templateValues: JsonObject;
}

/** What a template has to do with reasoning. */
interface ThinkingSwitches {
  /** The template's source. */
  readonly template: string;
  /** The model marks its reasoning with tags. */
  readonly thinks: boolean;
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
/** Words that templates with levels of effort know. */
const levels: { readonly [effort: string]: string } = {
  minimal: 'low',
  xhigh: 'high',
  max: 'high',
};
const reserved = ['messages', 'tools', 'add_generation_prompt', 'bos_token', 'eos_token'];

/** @throws EngineError 400 that names the member. */
export function readThinking(body: JsonObject): ThinkingControls {
  const values = member(body, 'chat_template_kwargs') ?? {};
  if (!isObject(values)) {
    throw invalid('"chat_template_kwargs" must be an object.', 'chat_template_kwargs');
  }
  const effort = member(body, 'reasoning_effort');
  if (effort === undefined) return { templateValues: values };
  if (typeof effort === 'string' && efforts.includes(effort))
    return { effort, templateValues: values };
  throw invalid(`"reasoning_effort" is one of ${efforts.join(', ')}.`, 'reasoning_effort');
}

/**
 * The values for the template. A switch that it does not know is refused, unless it requests what
 * happens anyway.
 * @throws EngineError 400 that names the member.
 */
export function templateValues(input: ThinkingControls, model: ThinkingSwitches): JsonObject {
  const values: Record<string, Json | undefined> = { ...effortValues(input.effort, model) };
  for (const [name, value] of Object.entries(input.templateValues)) {
    const isSwitch = knows(model, name) && !reserved.includes(name);
    const happensAnyway = name === 'enable_thinking' && value === false && !model.thinks;
    if (isSwitch) values[name] = value;
    else if (!happensAnyway) {
      throw unsupported(
        `The chat template of this model does not know "${name}".`,
        `chat_template_kwargs.${name}`,
      );
    }
  }
  return values;
}

function effortValues(effort: string | undefined, model: ThinkingSwitches): JsonObject {
  if (effort === undefined) return {};
  const field = 'reasoning_effort';
  if (effort === 'none') {
    if (knows(model, 'enable_thinking')) return { enable_thinking: false };
    if (!model.thinks) return {};
    throw unsupported('This model cannot answer without reasoning.', field);
  }
  if (knows(model, field)) return { reasoning_effort: levels[effort] ?? effort };
  if (knows(model, 'enable_thinking')) return { enable_thinking: true };
  // It reasons as it does; there is nothing to say how much.
  if (model.thinks) return {};
  throw unsupported('This model does not reason.', field);
}

function knows({ template }: ThinkingSwitches, name: string): boolean {
  return /^\w+$/.test(name) && new RegExp(String.raw`\b${name}\b`, 'u').test(template);
}
