/** The members of an answer and of its chunks that are read, or whose loss is decided. Others are noted. */
import { fields, openFields, kinds, whole, wholes, type Fields } from '../../../core/shape.ts';
import { isObject, type JsonObject } from '../../../json/value.ts';
import { isPresent } from '../../shared/answers.ts';

/** Ids, times, figures and reports of filters: what vendors say of a call, and no part of an answer. */
const beside = wholes(
  'metadata',
  'moderation',
  'obfuscation',
  // Mistral's padding against guesses of the length of a text.
  'p',
  'provider',
  // LiteLLM's copy of what it read elsewhere.
  'provider_specific_fields',
  'request_id',
  'usage_breakdown',
  'x_groq',
  'timings',
  'time_info',
  'stats',
  'runtime',
  'model_info',
  'perf_metrics',
  'cost',
  'estimated_cost',
  'num_sources_used',
  'seed',
  'prompt',
  'prompt_logprobs',
  'prompt_token_ids',
  'prompt_filter_results',
  'prompt_annotations',
  'content_filter_results',
  'kv_transfer_params',
  'nvext',
  'sglext',
  'base_resp',
  'input_sensitive',
  'input_sensitive_type',
  'output_sensitive',
  'output_sensitive_type',
  'output_sensitive_int',
  'azureml-model-session',
);

/** Sources that vendors list beside the text (`sources.ts`). */
const sources = wholes('citations', 'search_results');

const call = fields({
  ...wholes('index', 'id', 'type', 'extra_content', 'provider_specific_fields'),
  function: fields(wholes('name', 'arguments', 'provider_specific_fields')),
  custom: fields(wholes('name', 'input')),
});

const piece = kinds(
  (part) => (part['type'] === 'thinking' ? 'thinking' : isPresent(part['text']) ? 'text' : ''),
  {
    text: fields(wholes('type', 'text', 'index')),
    thinking: fields({
      ...wholes('type', 'closed', 'index'),
      thinking: fields(wholes('type', 'text')),
    }),
  },
  // A part without a text is noted as a whole.
  openFields({}),
);

const message = fields({
  ...wholes('role', 'name', 'refusal', 'reasoning', 'reasoning_content', 'reasoning_signature'),
  ...wholes(
    'audio',
    'images',
    'executed_tools',
    'token_id',
    'token_ids',
    'hidden_states',
    'prefix',
  ),
  ...wholes('extra_content', 'provider_specific_fields'),
  ...sources,
  content: piece,
  reasoning_details: fields(
    wholes('type', 'index', 'id', 'format', 'text', 'summary', 'data', 'signature'),
  ),
  thinking_blocks: fields(wholes('type', 'index', 'thinking', 'data', 'signature')),
  tool_calls: call,
  function_call: fields(wholes('name', 'arguments')),
  annotations: kinds(
    ({ url_citation: source }) => (isPresent(source) ? 'url' : ''),
    {
      url: fields({
        ...wholes('type', 'index'),
        url_citation: fields(wholes('url', 'title', 'content', 'start_index', 'end_index')),
      }),
    },
    fields(wholes('type', 'index')),
  ),
});

const choice = {
  ...wholes('index', 'finish_reason', 'native_finish_reason', 'stop_reason', 'matched_stop'),
  ...wholes('logprobs', 'error', 'seed', 'token_ids', 'hidden_states', 'raw_output', 'usage'),
  ...wholes('content_filter_results', 'content_filter_offsets', 'content_filter_raw'),
  ...wholes('provider_specific_fields'),
  message,
  delta: message,
};

/** Together repeats the text beside the delta. A text that is only there is noted. */
function repeatsText({ text, delta, message: answer }: JsonObject): boolean {
  const said = isObject(delta) ? delta : answer;
  if (text === undefined || !isObject(said)) return false;
  return [said['content'], said['reasoning'], said['reasoning_content']].includes(text);
}

export const answerShape: Fields = fields({
  ...wholes('id', 'object', 'created', 'model', 'usage', 'service_tier', 'system_fingerprint'),
  ...wholes('error'),
  ...beside,
  ...sources,
  choices: kinds(
    (value) => (repeatsText(value) ? 'repeated' : ''),
    { repeated: fields({ ...choice, text: whole }) },
    fields(choice),
  ),
});
