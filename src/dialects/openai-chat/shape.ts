/** The members of a chat-completions request that are read, or known to have no effect. */
import { cacheHints } from '../shared/request/responses-fields.ts';
import type { Extras } from '../../core/conversation.ts';
import { fields, kinds, openFields, whole, wholes } from '../../core/shape.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
  isArray,
} from '../../json/value.ts';
import { pricedTool, vendorMembers } from '../shared/body/requested-services.ts';

const marks = {
  cache_control: fields(wholes('type', 'ttl')),
  prompt_cache_breakpoint: fields(wholes('mode', 'ttl')),
};
const address = fields(wholes('url', 'detail'));

const part = kinds(({ type }) => type, {
  text: fields({ ...wholes('type', 'text'), ...marks }),
  refusal: fields({ ...wholes('type', 'refusal'), ...marks }),
  thinking: fields({
    ...wholes('type', 'closed', 'signature'),
    thinking: fields(wholes('type', 'text')),
    ...marks,
  }),
  image_url: fields({ type: whole, image_url: address, ...marks }),
  video_url: fields({ type: whole, video_url: address, ...marks }),
  audio_url: fields({ type: whole, audio_url: address, ...marks }),
  document_url: fields({ type: whole, document_url: address, ...marks }),
  input_audio: fields({ type: whole, input_audio: fields(wholes('data', 'format')), ...marks }),
  file: fields({
    type: whole,
    file: fields(wholes('file_data', 'file_id', 'filename')),
    ...marks,
  }),
});

/** `parsed_arguments` is an SDK's parsed form of `arguments`, which it sends back with them. */
const called = fields(wholes('name', 'arguments', 'parsed_arguments'));

const message = fields({
  ...wholes('role', 'name', 'refusal', 'tool_call_id', 'audio', 'annotations'),
  ...wholes('reasoning', 'reasoning_content', 'reasoning_signature'),
  ...marks,
  content: part,
  function_call: called,
  tool_calls: fields({
    ...wholes('id', 'type', 'index', 'extra_content'),
    ...marks,
    function: called,
    custom: fields(wholes('name', 'input')),
  }),
  reasoning_details: fields(
    wholes('type', 'text', 'summary', 'data', 'signature', 'format', 'id', 'index'),
  ),
  thinking_blocks: fields({ ...wholes('type', 'thinking', 'signature', 'data'), ...marks }),
});

const definition = fields({
  ...wholes('name', 'description', 'parameters', 'strict'),
  ...marks,
});
const freeText = fields({
  ...wholes('name', 'description'),
  format: kinds(({ type }) => type, { text: fields(wholes('type')) }),
  ...marks,
});
const tool = kinds(
  ({ type }) => type ?? 'function',
  {
    function: fields({ type: whole, function: definition, ...marks }),
    custom: fields({ type: whole, custom: freeText, ...marks }),
  },
  openFields({ ...pricedTool, function: definition, custom: freeText }),
);

const chosen = {
  ...wholes('type', 'name'),
  function: fields(wholes('name')),
  custom: fields(wholes('name')),
};

// Top-level fields without a canonical slot. They are kept under this dialect's name, so that a
// writer of another dialect maps them or says that they were dropped; hints without effect on the answer and
// values equal to the API's defaults are not kept.

/** Fields that the canonical conversation has, or that are refused. */
const canonical: readonly string[] = [
  'model',
  'messages',
  'max_completion_tokens',
  'max_tokens',
  'temperature',
  'top_p',
  'top_k',
  'n',
  'stop',
  'seed',
  'stream',
  'stream_options',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'response_format',
  'reasoning_effort',
  'reasoning',
  'thinking',
  'user',
  'safety_identifier',
  'logprobs',
  'modalities',
  'web_search_options',
];

/** Hints about speed, location or caching whose loss has no effect on the answer. */
const hints: readonly string[] = ['prediction', 'audio', 'cache_control'];

const notKept: ReadonlySet<string> = new Set([...canonical, ...hints]);

const defaults: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['frequency_penalty', 0],
  ['presence_penalty', 0],
  ['top_logprobs', 0],
  ['store', false],
  ['verbosity', 'medium'],
  ['service_tier', 'auto'],
  ['prompt_cache_retention', 'in_memory'],
]);

/** All members that this dialect knows. */
const knownFields: readonly string[] = [...canonical, ...hints, ...cacheHints, ...defaults.keys()];

export function readExtras(body: JsonObject): Extras {
  const kept: JsonMembers = {};
  let any = false;
  for (const [key, value] of Object.entries(body)) {
    if (notKept.has(key) || isDefault(key, value)) continue;
    // Not an assignment: the key may be `__proto__`.
    Object.defineProperty(kept, key, { value, enumerable: true, writable: true });
    any = true;
  }
  const { cache_control: mark } = body;
  return {
    ...(any ? { 'openai-chat': kept } : {}),
    // A field of the messages dialect, sent by clients that know the upstream.
    ...(isObject(mark) ? { 'anthropic-messages': { cache_control: mark } } : {}),
  };
}

/** Whether a member has the API's default value. */
export function isDefault(key: string, value: Json | undefined): boolean {
  if (value === null || value === undefined || value === defaults.get(key)) return true;
  // `logit_bias: {}`, `metadata: {}` and empty lists request nothing.
  if (isArray(value)) return value.length === 0;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/**
 * Members that one vendor or engine added to chat completions. Clients written for it send them to other servers,
 * and some of them refuse every member that they do not know.
 */
const names = `
  top_k top_a min_p typical_p tfs_z repetition_penalty repeat_penalty length_penalty mirostat mirostat_tau mirostat_eta
  min_tokens ignore_eos stop_token_ids include_stop_str_in_output best_of use_beam_search bad_words allowed_token_ids
  logits_processors prompt_logprobs skip_special_tokens
  chat_template chat_template_kwargs continue_final_message add_generation_prompt add_special_tokens documents
  structured_outputs guided_json guided_regex guided_choice guided_grammar guided_decoding_backend grammar json_schema
  mm_processor_kwargs priority request_id cache_salt truncate_prompt_tokens cache_prompt id_slot n_predict n_keep n_probs
  samplers echo options timings_per_token keep_alive ttl draft_model num_ctx think format
  models provider plugins transforms route reasoning include_reasoning usage cache_control session_id
  thinking enable_thinking thinking_budget enable_search search_options vl_high_resolution_images translation_options
  reasoning_format search_settings citation_options compound_custom disable_tool_validation include_domains
  exclude_domains random_seed safe_prompt prompt_mode guardrails search_parameters deferred do_sample tool_stream
  safety_model context_length_exceeded_behavior prompt_truncate_len disable_reasoning clear_thinking
  extra_body extra_headers extra_query
`;

export const foreignMembers: ReadonlySet<string> = new Set(names.trim().split(/\s+/));

/** A request of this dialect. What is not among its own members is kept by name (`readExtras`). */
export const requestShape = fields({
  ...wholes(...knownFields, 'logit_bias', 'moderation', 'enable_thinking'),
  ...vendorMembers,
  messages: message,
  tools: tool,
  functions: definition,
  tool_choice: fields({
    ...chosen,
    allowed_tools: fields({ mode: whole, tools: fields(chosen) }),
  }),
  function_call: fields(wholes('name')),
  response_format: kinds(({ type }) => type, {
    text: fields(wholes('type')),
    json_object: fields(wholes('type')),
    json_schema: fields({
      type: whole,
      json_schema: fields(wholes('name', 'description', 'schema', 'strict')),
    }),
  }),
  stream_options: fields(wholes('include_usage', 'include_obfuscation')),
  thinking: fields(wholes('type', 'budget_tokens', 'display')),
  reasoning: fields(wholes('effort', 'max_tokens', 'exclude', 'enabled')),
  cache_control: marks.cache_control,
  web_search_options: fields({
    search_context_size: whole,
    user_location: fields({ type: whole, approximate: whole }),
  }),
});
