/** The members of a response and of its events that are read, or whose loss is decided. Others are noted. */
import { fields, kinds, openFields, wholes, type Fields } from '../../../core/shape.ts';
import type { JsonObject } from '../../../json/value.ts';
import { clientCall, isOtherContent } from './response.ts';

const annotation = fields({
  ...wholes('type', 'index', 'url', 'title', 'start_index', 'end_index'),
  ...wholes('filename', 'file_id', 'container_id'),
});

const content = kinds(
  (part) => (part['type'] === 'refusal' ? 'refusal' : isText(part) ? 'text' : ''),
  {
    text: fields({ ...wholes('type', 'text', 'logprobs'), annotations: annotation }),
    refusal: fields(wholes('type', 'refusal')),
  },
  // Content of other types is noted as a whole.
  openFields({}),
);

/** Texts of messages and of reasoning, before their first piece, too. */
function isText(part: JsonObject): boolean {
  const { type } = part;
  return type === 'summary_text' || type === 'reasoning_text' || !isOtherContent(part);
}

const item = kinds(
  (each) => (clientCall(each) === undefined ? each['type'] : 'call'),
  {
    message: fields({ ...wholes('id', 'type', 'role', 'status', 'phase', 'created_by'), content }),
    reasoning: fields({
      ...wholes('id', 'type', 'status', 'encrypted_content', 'created_by'),
      summary: fields(wholes('type', 'text')),
      content: fields(wholes('type', 'text')),
    }),
    call: fields({
      ...wholes('id', 'type', 'status', 'call_id', 'caller', 'created_by', 'async'),
      ...wholes('namespace', 'name', 'arguments', 'input', 'action', 'operation'),
      ...wholes('execution', 'environment', 'max_output_length'),
    }),
  },
  // Items of other types are carried or noted as a whole.
  openFields({}),
);

export const responseShape: Fields = fields({
  ...wholes('id', 'object', 'created_at', 'completed_at', 'status', 'error', 'incomplete_details'),
  ...wholes('model', 'usage', 'service_tier', 'output_text'),
  // They repeat the request.
  ...wholes('background', 'conversation', 'context_management', 'instructions', 'metadata'),
  ...wholes('max_output_tokens', 'max_tool_calls', 'parallel_tool_calls', 'previous_response_id'),
  ...wholes('prompt', 'prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention'),
  ...wholes('reasoning', 'safety_identifier', 'store', 'temperature', 'text', 'tool_choice'),
  ...wholes('tools', 'top_logprobs', 'top_p', 'truncation', 'user', 'frequency_penalty'),
  ...wholes('presence_penalty', 'input_messages', 'output_messages', 'include', 'stream', 'image'),
  // What vendors say of a call, and no part of an answer.
  ...wholes('access_programs', 'billing', 'content_filters', 'copilot_usage', 'moderation'),
  ...wholes('prompt_cache_diagnostics', 'tool_usage', 'kv_transfer_params'),
  output: item,
});

/** Of events whose type is known. */
export const eventShape: Fields = fields({
  ...wholes('type', 'sequence_number', 'obfuscation', 'copilot_usage', 'response_id'),
  ...wholes('item_id', 'output_index', 'content_index', 'summary_index', 'annotation_index'),
  ...wholes('delta', 'text', 'refusal', 'logprobs', 'name', 'arguments', 'input', 'call_id'),
  response: responseShape,
  item,
  part: content,
  annotation,
});

/** Events whose content another event repeats. */
const repeated: ReadonlySet<string> = new Set([
  'response.content_part.done',
  'response.reasoning_summary_part.added',
  'response.reasoning_summary_part.done',
  'response.reasoning_summary_text.done',
  'response.reasoning_text.done',
]);

export function isRepeated(type: string): boolean {
  return repeated.has(type);
}

/**
 * Progress of the provider's own tools, whose items have all of it, and sound, which no request of another API asks for.
 * `keepalive` and what some services send of limits say nothing of the answer, and neither does an event of vLLM's.
 */
const decided =
  /^(response\.(((web_search|file_search|code_interpreter|image_generation|mcp)_call|code_interpreter_call_code|mcp_call_arguments|mcp_list_tools|shell_call_command|shell_call_output_content|apply_patch_call_operation_diff|compaction|audio|audio\.transcript|reasoning_part)\.[a-z_]+|metadata)|keepalive|ping|codex\.rate_limits)$/;

export function isDecided(type: string): boolean {
  return decided.test(type);
}
