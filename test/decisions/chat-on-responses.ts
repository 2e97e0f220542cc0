/** What a responses upstream gets of each row of chat requests. */
import {
  approx,
  exact,
  ignore,
  near,
  reject,
  warn,
  type Column,
  type Verdict,
} from './decision.ts';

const notThere = warn('no such field there');
const untunable = warn('the model refuses sampling parameters');
const effort = exact('reasoning.effort', 'with a summary');
const format = exact('text.format');
const cached = (to: string): Verdict => near(to, 'OpenAI only; a hint elsewhere');

/** Instructions are one message in front; later ones keep their place. */
function instructions(role: 'developer' | 'system'): Column {
  return {
    [`messages[${role}]`]: exact('input[developer]'),
    [`messages[${role}] (later on, other models)`]: exact('input[developer]'),
    [`messages[${role}].content.text`]: exact('input[developer].content[input_text].text'),
    [`messages[${role}].content.text (white space only)`]: ignore('blank texts say nothing'),
    [`messages[${role}].content.prompt_cache_breakpoint`]: exact(
      'input[developer].content[input_text].prompt_cache_breakpoint',
    ),
    [`messages[${role}].name`]: warn('messages have no author there'),
  };
}

const user = 'messages[user].content';
const userPart = 'input[user].content';
const mark = (at: string): Verdict =>
  near(`${at}.prompt_cache_breakpoint`, 'kept as long as the model keeps it');
const calls = 'messages[assistant].tool_calls';

const messages: Column = {
  ...instructions('developer'),
  ...instructions('system'),
  [`${user}[text].text`]: exact(`${userPart}[input_text].text`),
  [`${user}[text].text (white space only)`]: ignore('blank texts say nothing'),
  [`${user}[text].prompt_cache_breakpoint`]: mark(`${userPart}[input_text]`),
  [`${user}[image_url].image_url.url`]: exact(`${userPart}[input_image].image_url`),
  [`${user}[image_url].image_url.url (data URL of a PDF)`]: near(
    `${userPart}[input_file].file_data`,
    'a file, as its data says',
  ),
  [`${user}[image_url].image_url.url (data URL of another type)`]: reject(),
  [`${user}[image_url].image_url.detail`]: exact(`${userPart}[input_image].detail`),
  [`${user}[image_url].prompt_cache_breakpoint`]: mark(`${userPart}[input_image]`),
  [`${user}[input_audio]`]: reject('no audio there'),
  [`${user}[file].file.file_data (PDF)`]: exact(`${userPart}[input_file].file_data`),
  [`${user}[file].file.file_data (text)`]: near(`${userPart}[input_text].text`, 'as text'),
  [`${user}[file].file.file_data (address of a PDF)`]: exact(
    `${userPart}[input_file].file_url`,
    'without its name',
  ),
  [`${user}[file].file.file_data (other types)`]: reject(),
  [`${user}[file].file.file_id`]: reject("ids belong to one provider's file store"),
  [`${user}[file].file.filename`]: exact(`${userPart}[input_file].filename`),
  [`${user}[file].prompt_cache_breakpoint`]: mark(`${userPart}[input_file]`),
  'messages[user].name': warn('messages have no author there'),
  'messages[assistant].content[text].text': exact('input[assistant].content[output_text].text'),
  'messages[assistant].content[text].prompt_cache_breakpoint': near(
    `${userPart}[input_text].prompt_cache_breakpoint`,
    'on the input before it: answers carry no marks',
  ),
  'messages[assistant].content[refusal].refusal': exact(
    'input[assistant].content[refusal].refusal',
  ),
  'messages[assistant].refusal': exact('input[assistant].content[refusal].refusal'),
  'messages[assistant].audio': reject('no audio there'),
  'messages[assistant].function_call.name': exact('input[function_call].name'),
  'messages[assistant].function_call.arguments': exact('input[function_call].arguments'),
  'messages[assistant].name': warn('messages have no author there'),
  [`${calls}[function].id`]: exact(
    'input[function_call].call_id',
    'hashed where it is longer than 64',
  ),
  [`${calls}[function].function.name`]: exact('input[function_call].name'),
  [`${calls}[function].function.arguments`]: exact('input[function_call].arguments'),
  [`${calls}[function].function.arguments (blank)`]: exact('input[function_call].arguments', '{}'),
  [`${calls}[custom].id`]: exact('input[custom_tool_call].call_id'),
  [`${calls}[custom].custom.name`]: exact('input[custom_tool_call].name'),
  [`${calls}[custom].custom.input`]: exact('input[custom_tool_call].input'),
  'messages[tool].content.text': exact('input[function_call_output].output'),
  'messages[tool].content.prompt_cache_breakpoint': near(
    'input[function_call_output].output[input_text].prompt_cache_breakpoint',
    'kept as long as the model keeps it',
  ),
  'messages[tool].tool_call_id': exact('input[function_call_output].call_id'),
  'messages[function].content': exact('input[function_call_output].output'),
  'messages[function].name': exact('input[function_call_output].call_id', 'the call before it'),
};

const tools: Column = {
  'tools[function].function.name': exact('tools[function].name'),
  'tools[function].function.description': exact('tools[function].description'),
  'tools[function].function.parameters': exact('tools[function].parameters'),
  'tools[function].function.parameters (absent)': exact(
    'tools[function].parameters',
    'an object without properties',
  ),
  'tools[function].function.parameters (schema of something else)': reject(),
  'tools[function].function.strict': exact('tools[function].strict', 'false where it is absent'),
  'tools[custom].custom.name': exact('tools[custom].name'),
  'tools[custom].custom.description': exact('tools[custom].description'),
  'tools[custom].custom.format[text]': ignore('the default'),
  'tools[custom].custom.format[grammar]': exact('tools[custom].format'),
  tool_choice: exact('tool_choice'),
  'tool_choice[function].function.name': exact('tool_choice.name'),
  'tool_choice[custom].custom.name': exact('tool_choice.name'),
  'tool_choice[allowed_tools].allowed_tools.mode': exact('tool_choice.mode'),
  'tool_choice[allowed_tools].allowed_tools.tools': exact('tool_choice.tools'),
  'parallel_tool_calls (true)': ignore('the default'),
  'parallel_tool_calls (false)': exact('parallel_tool_calls'),
  'functions.name': exact('tools[function].name'),
  'functions.description': exact('tools[function].description'),
  'functions.parameters': exact('tools[function].parameters'),
  function_call: exact('tool_choice'),
  'function_call.name': exact('tool_choice.name'),
  'response_format[text]': ignore('the default'),
  'response_format[json_schema].json_schema.name': exact('text.format.name'),
  'response_format[json_schema].json_schema.description': exact('text.format.description'),
  'response_format[json_schema].json_schema.schema': exact('text.format.schema'),
  'response_format[json_schema].json_schema.schema (absent)': reject(),
  'response_format[json_schema].json_schema.strict': exact('text.format.strict'),
  'response_format[json_object]': format,
  'tools[function].cache_control': ignore('tools carry no marks there'),
};

const extensions: Column = {
  top_k: notThere,
  'thinking[enabled].budget_tokens': near('reasoning.effort', 'by the budget'),
  'thinking[adaptive]': near('reasoning.effort', 'high'),
  'thinking[disabled]': exact('reasoning.effort', 'none'),
  'reasoning.effort': effort,
  'reasoning.max_tokens': near('reasoning.effort', 'by the budget'),
  'reasoning.enabled': near('reasoning.effort', 'medium'),
  'reasoning.exclude': exact('', 'no summary is asked for'),
  cache_control: ignore('that API caches by itself'),
  'any other field': warn('passed on to chat upstreams only'),
  'messages[user].content[text].cache_control': mark(`${userPart}[input_text]`),
  'messages[user].cache_control': mark(`${userPart}[input_text]`),
  'messages[tool].cache_control': near(
    'input[function_call_output].output[input_text].prompt_cache_breakpoint',
    'kept as long as the model keeps it',
  ),
  'messages[tool].content[image_url]': exact(
    'input[function_call_output].output[input_image].image_url',
  ),
  'messages[assistant].reasoning_content': ignore('unsigned reasoning is refused there'),
  'messages[assistant].reasoning_details': warn('written by another model; its own: EXACT'),
  'messages[assistant].thinking_blocks': warn('written by another model'),
};

export const chatOnResponses: Column = {
  ...messages,
  ...tools,
  ...extensions,
  model: exact('model'),
  'max_completion_tokens (from 16)': exact('max_output_tokens'),
  'max_completion_tokens (below 16)': approx('max_output_tokens', '16, the least there'),
  max_tokens: exact('max_output_tokens'),
  temperature: exact('temperature'),
  'temperature (untunable model)': untunable,
  top_p: exact('top_p'),
  'top_p (untunable model)': untunable,
  'n (1)': ignore('the default'),
  'n (above 1)': reject('one answer only'),
  stop: exact('', 'enforced by the gateway'),
  'stop (an empty text)': reject(),
  stream: exact('stream'),
  'stream_options.include_usage': exact('', 'the gateway sends the usage chunk'),
  'stream_options.include_obfuscation': ignore('the gateway pads nothing'),
  reasoning_effort: effort,
  'reasoning_effort (none)': exact('reasoning.effort'),
  'reasoning_effort (minimal)': exact('reasoning.effort', 'or the nearest that the model knows'),
  'reasoning_effort (model that does not think)': warn(),
  'verbosity (medium)': ignore('the default'),
  'verbosity (low, high)': exact('text.verbosity'),
  'logprobs (false)': ignore('the default'),
  'logprobs (true)': reject('not reported by the gateway'),
  'top_logprobs (0)': ignore('the default'),
  'top_logprobs (above 0)': reject('not reported by the gateway'),
  'logit_bias (empty)': ignore(),
  'logit_bias (some bias)': notThere,
  'frequency_penalty (0)': ignore('the default'),
  'frequency_penalty (other values)': notThere,
  'presence_penalty (0)': ignore('the default'),
  'presence_penalty (other values)': notThere,
  seed: notThere,
  prediction: ignore('a hint about speed'),
  'modalities (text only)': ignore('the default'),
  'modalities (with audio)': reject('no audio there'),
  'audio (without the audio modality)': ignore(),
  'audio (with it)': reject('no audio there'),
  user: exact('safety_identifier or user'),
  'user (longer)': near('safety_identifier or user', 'its SHA-256'),
  safety_identifier: exact('safety_identifier or user'),
  'safety_identifier (longer)': near('safety_identifier or user', 'its SHA-256'),
  metadata: exact('metadata'),
  'store (false)': ignore('nothing is kept at providers'),
  'store (true)': warn('the gateway keeps nothing at providers'),
  prompt_cache_key: cached('prompt_cache_key'),
  prompt_cache_options: cached('prompt_cache_options'),
  'prompt_cache_retention (24h)': cached('prompt_cache_retention'),
  'prompt_cache_retention (in_memory)': ignore('the default'),
  service_tier: exact('service_tier'),
  'service_tier (auto)': exact('', 'the default there as well'),
  'web_search_options (provider or route with server_tools)': exact('tools[web_search]'),
  'web_search_options (others)': reject('the search there needs server_tools'),
  'web_search_options.search_context_size': exact('tools[web_search].search_context_size'),
  'web_search_options.user_location': exact('tools[web_search].user_location'),
  'moderation (with the mode block)': reject('the upstream could not keep this promise'),
  'moderation (without it)': notThere,
};
