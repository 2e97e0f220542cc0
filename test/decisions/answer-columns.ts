/** What answers become for the further client of each upstream dialect: rows of chat-, messages- and responses-answer.ts. */
import { exact, ignore, near, warn, type Column, type Verdict } from './decision.ts';

const own = ignore('no field there');
const text = exact('output[assistant].content[output_text].text');
const refusal = exact('output[assistant].content[refusal].refusal', 'an item of its own');
const completed = exact('status', 'completed');
const cut = exact('status', 'incomplete, for max_output_tokens');
const noSlot = ignore('no counter there; kept in the ledger');
const newId = near('id', 'a new one, with the prefix of the API');

/** Of a call, in a message or in a delta. */
function chatCalls(at: string): Column {
  const item = exact('output[function_call]');
  const free = exact('output[custom_tool_call]');
  const part = (verdict: Verdict, members: readonly string[]): readonly [string, Verdict][] =>
    members.map((member) => [`${at}${member}`, verdict]);
  return Object.fromEntries([
    ...part(item, ['.tool_calls[function].*', '.function_call.*']),
    ...part(free, ['.tool_calls[custom].*']),
  ]);
}

const chatChoice = (said: string): Column => ({
  'choices.index': exact('', 'the first choice only'),
  'choices.finish_reason': completed,
  'choices.finish_reason (length)': cut,
  'choices.finish_reason (content_filter)': exact(
    'status',
    'completed with a refusal; else incomplete, for content_filter',
  ),
  'choices.logprobs': ignore('refused in requests'),
  [`choices.${said}.role`]: exact('output[assistant].role'),
  [`choices.${said}.content`]: text,
  [`choices.${said}.refusal`]: refusal,
  [`choices.${said}.audio`]: near(
    text.decision === 'EXACT' ? text.to : '',
    'what was said; audio is refused in requests',
  ),
  ...chatCalls(`choices.${said}`),
});

/** Chat answers to responses clients. */
export const chatToResponses: Column = {
  id: newId,
  object: exact('object', 'response'),
  created: near('created_at', 'the time of the call'),
  model: exact('model', 'the name that the client used'),
  moderation: ignore('the request had none'),
  service_tier: exact('service_tier'),
  system_fingerprint: own,
  metadata: ignore('not sent in requests'),
  'usage.prompt_tokens': exact('usage.input_tokens'),
  'usage.completion_tokens': exact('usage.output_tokens'),
  'usage.total_tokens': exact('usage.total_tokens', 'the sum of the others'),
  'usage.prompt_tokens_details.*': noSlot,
  'usage.prompt_tokens_details.cached_tokens': exact('usage.input_tokens_details.cached_tokens'),
  'usage.prompt_tokens_details.cache_write_tokens': exact(
    'usage.input_tokens_details.cache_write_tokens',
  ),
  'usage.completion_tokens_details.*': noSlot,
  'usage.completion_tokens_details.reasoning_tokens': exact(
    'usage.output_tokens_details.reasoning_tokens',
  ),
  ...chatChoice('message'),
  'choices.message.annotations': exact('annotations[url_citation]'),
  citations: near('annotations[url_citation]', 'of the whole text'),
  search_results: near('annotations[url_citation]', 'of the whole text: address and title'),
  'choices[].message.executed_tools': near(
    'output[web_search_call]',
    'of a search: its query and addresses; others are dropped, and noted',
  ),
  'choices[].message.reasoning*': exact(
    'output[reasoning]',
    'its text where a summary was asked for, else sealed',
  ),
  'choices[].stop_reason': ignore('no request of this API has stop sequences'),
};

export const chatStreamToResponses: Column = {
  ...Object.fromEntries(
    Object.entries(chatToResponses).filter(
      ([row]) => row !== 'metadata' && !/message|\[\]|citations|search_results/.test(row),
    ),
  ),
  obfuscation: ignore('padding'),
  ...chatChoice('delta'),
};

const known = warn('a block that only its provider knows');
const places = warn('positions in documents cannot be expressed there');
const annotation = near('annotations[url_citation]', 'for the whole block');

/** Blocks of a messages answer, wherever they stand. */
function blocks(at: string): Column {
  const hidden = [
    'web_fetch_tool_result',
    'advisor_tool_result',
    'code_execution_tool_result',
    'bash_code_execution_tool_result',
    'text_editor_code_execution_tool_result',
    'tool_search_tool_result',
    'mcp_tool_use',
    'mcp_tool_result',
    'mcp_tool_listing',
    'container_upload',
    'compaction',
    'fallback',
  ];
  return Object.fromEntries([
    [`${at}[text].text`, text],
    ...citations(`${at}[text].citations`),
    [
      `${at}[thinking].thinking`,
      exact('output[reasoning].summary', 'where a summary was asked for, else sealed'),
    ],
    [`${at}[thinking].signature`, exact('output[reasoning].encrypted_content', 'sealed')],
    [`${at}[redacted_thinking].data`, exact('output[reasoning].encrypted_content', 'sealed')],
    [`${at}[tool_use].id`, exact('output[function_call].call_id')],
    [`${at}[tool_use].name`, exact('output[function_call].name', 'as the tool was offered')],
    [`${at}[tool_use].input`, exact('output[function_call].arguments')],
    [`${at}[tool_use].caller`, ignore('the caller does not change the call')],
    [`${at}[tool_use].toolset_name`, ignore('toolsets are refused in requests')],
    [
      `${at}[server_tool_use]`,
      near('output[web_search_call]', 'of a web search; others are dropped, and noted'),
    ],
    [
      `${at}[web_search_tool_result]`,
      near(
        'output[web_search_call].action.sources',
        'the addresses; `failed` where the search failed',
      ),
    ],
    ...hidden.map((type): readonly [string, Verdict] => [`${at}[${type}]`, known]),
  ]);
}

function citations(at: string): readonly (readonly [string, Verdict])[] {
  return [
    [`${at}[web_search_result_location]`, annotation],
    [
      `${at}[search_result_location]`,
      near('annotations[url_citation]', 'where the source is an address; else dropped'),
    ],
    [`${at}[char_location]`, places],
    [`${at}[page_location]`, places],
    [`${at}[content_block_location]`, places],
  ];
}

function ending(at: string): Column {
  return {
    [`${at}stop_reason`]: completed,
    [`${at}stop_reason (max_tokens)`]: cut,
    [`${at}stop_reason (model_context_window_exceeded)`]: near(
      'status',
      'incomplete, for max_output_tokens',
    ),
    [`${at}stop_reason (pause_turn)`]: exact(
      '',
      'the gateway continues the turn; incomplete after five rounds',
    ),
    [`${at}stop_reason (refusal)`]: exact(
      'status',
      'completed with a refusal; else incomplete, for content_filter',
    ),
    [`${at}stop_reason (compaction)`]: near('status', 'completed; no client can ask for it'),
    [`${at}stop_sequence`]: ignore('no request of this API has stop sequences'),
    [`${at}stop_details.*`]: own,
    [`${at}stop_details.explanation`]: refusal,
  };
}

function messagesCounts(at: string): Column {
  return {
    [`${at}.input_tokens`]: exact(
      'usage.input_tokens',
      'with what was read from and written to the cache',
    ),
    [`${at}.cache_read_input_tokens`]: exact('usage.input_tokens_details.cached_tokens'),
    [`${at}.cache_creation_input_tokens`]: exact('usage.input_tokens_details.cache_write_tokens'),
    [`${at}.output_tokens`]: exact('usage.output_tokens'),
    [`${at}.output_tokens_details.thinking_tokens`]: exact(
      'usage.output_tokens_details.reasoning_tokens',
    ),
    [`${at}.server_tool_use`]: noSlot,
    [`${at}.iterations`]: ignore('compactions are added to the totals'),
    [`${at}.fallback_credit`]: ignore('only its own provider can use it'),
  };
}

/** Messages answers to responses clients. */
export const messagesToResponses: Column = {
  id: newId,
  role: exact('output[assistant].role'),
  model: exact('model', 'the name that the client used'),
  ...blocks('content'),
  ...ending(''),
  ...messagesCounts('usage'),
  'usage.cache_creation': ignore('one counter there; the split is in the ledger'),
  'usage.service_tier': near('service_tier', 'standard and batch: default'),
  'usage.inference_geo': own,
  'usage.speed': own,
  container: own,
  context_management: own,
  diagnostics: own,
  input_transformations: own,
};

const delta = 'content_block_delta.delta';

export const messagesStreamToResponses: Column = {
  'message_start.message': exact('response.created', 'as in a document'),
  'content_block_start.index': exact('output_index', 'counted over items'),
  ...blocks('content_block_start.content_block'),
  'content_block_delta.index': exact('output_index'),
  [`${delta}[text_delta].text`]: exact('response.output_text.delta'),
  [`${delta}[thinking_delta].thinking`]: exact(
    'response.reasoning_summary_text.delta',
    'where a summary was asked for, else sealed',
  ),
  [`${delta}[thinking_delta].estimated_tokens`]: own,
  [`${delta}[signature_delta].signature`]: exact('output[reasoning].encrypted_content', 'sealed'),
  [`${delta}[input_json_delta].partial_json`]: exact('response.function_call_arguments.delta'),
  ...Object.fromEntries(citations(`${delta}[citations_delta].citation`)),
  [`${delta}[compaction_delta]`]: known,
  'content_block_stop.index': exact(''),
  ...ending('message_delta.delta.'),
  'message_delta.delta.container': own,
  ...messagesCounts('message_delta.usage'),
  'message_delta.context_management': own,
  'message_delta.input_transformations': own,
  message_stop: exact('response.completed, response.incomplete'),
};

const sourced = warn('citations there carry a key that only Anthropic can make');
const repeated = ignore('repeats the request');
const said = ignore('says nothing there');
const sealed = near('redacted_thinking block', 'sealed: it comes back with the call');
const called: Column = Object.fromEntries(
  ['function', 'custom_tool', 'tool_search', 'local_shell', 'shell', 'apply_patch'].flatMap(
    (kind): readonly (readonly [string, Verdict])[] => [
      [`output[${kind}_call].*`, said],
      [`output[${kind}_call].call_id`, exact('tool_use.id')],
      ...(/search|local/.test(kind) ? [] : [[`output[${kind}_call].caller`, sealed] as const]),
    ],
  ),
);
const input = exact('tool_use.input');
const failure = exact('error', 'the call fails; another target is asked where that is allowed');

/** Responses answers to messages clients. */
export const responsesToMessages: Column = {
  '*': repeated,
  id: near('id', 'msg_ and the id'),
  object: exact('type', 'message'),
  created_at: own,
  completed_at: own,
  'status (completed)': exact('stop_reason', 'end_turn, or tool_use with calls'),
  'status (incomplete)': exact('stop_reason', 'by its reason'),
  status: failure,
  error: failure,
  'incomplete_details.reason (max_output_tokens)': exact('stop_reason', 'max_tokens'),
  'incomplete_details.reason (content_filter)': exact('stop_reason', 'refusal'),
  'incomplete_details.reason': near('stop_reason', 'max_tokens'),
  model: exact('model', 'the name that the client used'),
  output_text: ignore('made by the SDK'),
  access_programs: own,
  moderation: ignore('the request had none'),
  prompt_cache_diagnostics: ignore('the request had none'),
  tool_usage: ignore('no counter there; searches are in the ledger'),
  'output[*': known,
  'output[assistant].*': said,
  'output[assistant].content[output_text].text': exact('text block'),
  'output[assistant].content[output_text].logprobs': ignore('refused in requests'),
  'output[assistant].content[output_text].annotations[*': sourced,
  'output[assistant].content[refusal].refusal': exact('text block, stop_details.explanation'),
  'output[reasoning].*': said,
  'output[reasoning].id': exact('thinking block', 'kept in its seal for the next turn'),
  'output[reasoning].summary.text': exact('thinking block'),
  'output[reasoning].content.text': exact('thinking block', 'where there is no summary'),
  'output[reasoning].encrypted_content': exact('thinking or redacted_thinking block', 'sealed'),
  ...called,
  'output[function_call].name': exact('tool_use.name', 'as the tool was offered'),
  'output[function_call].namespace': sealed,
  'output[function_call].async': ignore('no request of another API asks for it'),
  'output[function_call].arguments': input,
  'output[custom_tool_call].name': exact('tool_use.name', 'as the tool was offered'),
  'output[custom_tool_call].namespace': sealed,
  'output[custom_tool_call].async': ignore('no request of another API asks for it'),
  'output[custom_tool_call].input': exact('tool_use.input.input'),
  'output[tool_search_call].arguments': input,
  'output[tool_search_call].execution (client)': exact('tool_use block'),
  'output[tool_search_call].execution (server)': known,
  'output[local_shell_call].action': input,
  'output[shell_call].action': input,
  'output[apply_patch_call].operation': input,
  'usage.input_tokens': exact(
    'usage.input_tokens',
    'without what was read from and written to the cache',
  ),
  'usage.input_tokens_details.cached_tokens': exact('usage.cache_read_input_tokens'),
  'usage.input_tokens_details.cache_write_tokens': exact('usage.cache_creation_input_tokens'),
  'usage.input_tokens_details.cache_write_tokens_details': ignore('the time to live is another'),
  'usage.output_tokens': exact('usage.output_tokens'),
  'usage.output_tokens_details.reasoning_tokens': exact(
    'usage.output_tokens_details.thinking_tokens',
  ),
  'usage.total_tokens': exact('', 'the sum of the others'),
  service_tier: near('usage.service_tier', 'default: standard, priority: priority'),
};

/** Names of events as paths have them. */
export const responsesStreamToMessages: Column = {
  // Of an event that is told: its number and what it belongs to; of any other, all of it.
  '*': said,
  'response_created.response': exact('message_start'),
  'response_output_item_added.item': exact('content_block_start'),
  'response_output_item_done.item': exact('content_block_stop', 'as in a document'),
  'response_content_part_added.part': exact('content_block_start'),
  'response_output_text_delta.delta': exact('text_delta'),
  'response_output_text_delta.content_index': exact('content_block_start.index'),
  'response_output_text_delta.output_index': exact('content_block_start.index'),
  'response_output_text_done.text': exact('text_delta', 'what was not streamed'),
  'response_output_text_annotation_added.annotation': sourced,
  'response_refusal_delta.delta': exact('text_delta, stop_details.explanation'),
  'response_refusal_done.refusal': exact('text_delta', 'what was not streamed'),
  'response_function_call_arguments_delta.delta': exact('input_json_delta'),
  'response_function_call_arguments_done.arguments': exact(
    'input_json_delta',
    'what was not streamed',
  ),
  'response_custom_tool_call_input_delta.delta': exact('input_json_delta'),
  'response_custom_tool_call_input_done.input': exact('input_json_delta', 'what was not streamed'),
  'response_reasoning_summary_text_delta.delta': exact('thinking_delta'),
  'response_reasoning_summary_text_delta.summary_index': exact('', 'a blank line between'),
  'response_reasoning_text_delta.delta': exact('thinking_delta', 'where there is no summary'),
  'response_completed.response': exact('message_delta', 'as in a document'),
  'response_incomplete.response': exact('message_delta', 'as in a document'),
  response_failed: exact('error event'),
  error: exact('error event'),
};
