/** The members of a Responses request that are read, or known to have no effect. */
import { fields, kinds, openFields, whole, wholes } from '../../core/shape.ts';
import type { JsonObject } from '../../json/value.ts';
import { pricedTool, vendorMembers } from '../shared/body/requested-services.ts';

const byType = ({ type }: JsonObject): JsonObject[string] => type;

/** Top-level members that are read, or have no effect on another API. */
export const knownFields: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'max_output_tokens',
  'temperature',
  'top_p',
  'top_logprobs',
  'stream',
  'stream_options',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'max_tool_calls',
  'reasoning',
  'text',
  'store',
  'previous_response_id',
  'conversation',
  'background',
  'prompt',
  'include',
  'truncation',
  'context_management',
  'metadata',
  'safety_identifier',
  'user',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'service_tier',
  'moderation',
  'client_metadata',
  'generate',
]);

const mark = wholes('prompt_cache_breakpoint', 'internal_chat_message_metadata_passthrough');
const part = kinds(byType, {
  input_text: fields({ ...wholes('type', 'text'), ...mark }),
  output_text: fields({ ...wholes('type', 'text', 'annotations', 'logprobs', 'parsed'), ...mark }),
  refusal: fields({ ...wholes('type', 'refusal'), ...mark }),
  input_image: fields({ ...wholes('type', 'image_url', 'file_id', 'detail'), ...mark }),
  input_file: fields({
    ...wholes('type', 'file_data', 'file_url', 'file_id', 'filename', 'detail'),
    ...mark,
  }),
});

const item = { ...wholes('type', 'id', 'status', 'created_by', 'caller'), ...mark };
const call = { ...item, ...wholes('call_id', 'name', 'namespace', 'parsed_arguments') };
const output = { ...call, output: part };
const message = fields({ ...item, ...wholes('role', 'phase'), content: part });

const named = {
  ...wholes(
    'name',
    'description',
    'parameters',
    'strict',
    'output_schema',
    'defer_loading',
    'allowed_callers',
  ),
  format: fields(wholes('type', 'syntax', 'definition')),
};
const search = fields(
  wholes(
    'type',
    'filters',
    'user_location',
    'search_context_size',
    'external_web_access',
    'search_content_types',
  ),
);
const namedTool = fields({ type: whole, ...named });
/** Namespaces hold functions and free texts only. */
const tool = kinds(
  byType,
  {
    function: namedTool,
    custom: namedTool,
    namespace: fields({ ...wholes('type', 'name', 'description'), tools: namedTool }),
    tool_search: fields(wholes('type', 'execution', 'description', 'parameters')),
    local_shell: fields({ type: whole }),
    apply_patch: fields(wholes('type', 'allowed_callers')),
    shell: fields(wholes('type', 'environment', 'allowed_callers')),
    web_search: search,
    web_search_2025_08_26: search,
    web_search_preview: search,
    web_search_preview_2025_03_11: search,
  },
  openFields({ ...pricedTool, ...named }),
);
const format = fields(wholes('type', 'name', 'schema', 'description', 'strict'));

/** A request of this dialect. Members that are not listed are kept by name (`request/read.ts`). */
export const requestShape = fields({
  ...wholes(...knownFields),
  ...vendorMembers,
  input: kinds(({ type }) => type ?? 'message', {
    message,
    reasoning: fields({ ...item, ...wholes('summary', 'content', 'encrypted_content') }),
    function_call: fields({ ...call, arguments: whole }),
    function_call_output: fields(output),
    custom_tool_call: fields({ ...call, input: whole }),
    custom_tool_call_output: fields(output),
    tool_search_call: fields({ ...call, ...wholes('arguments', 'execution') }),
    tool_search_output: fields({ ...call, execution: whole, tools: tool }),
    additional_tools: fields({ ...item, role: whole, tools: tool }),
  }),
  tools: tool,
  stream_options: fields(wholes('include_obfuscation')),
  tool_choice: fields({
    ...wholes('type', 'name', 'namespace', 'mode', 'server_label'),
    tools: fields(wholes('type', 'name', 'namespace', 'server_label')),
  }),
  reasoning: fields(wholes('effort', 'summary', 'generate_summary', 'context', 'mode')),
  text: fields({ verbosity: whole, format }),
});
