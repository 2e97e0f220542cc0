/** An answer of a responses upstream, on the way to a chat client (wire/responses.md §5, §6). */
import type {
  Response,
  ResponseOutputItem,
  ResponseOutputRefusal,
  ResponseOutputText,
  ResponseStreamEvent,
  ResponseUsage,
} from 'openai/resources/responses/responses';
import {
  byCase,
  exact,
  ignore,
  near,
  warn,
  whole,
  type Fields,
  type Variants,
} from './decision.ts';

const hidden = ignore('the provider ran it; a client would try to run it again');
const repeated = ignore('repeats the request');
const own = ignore('says nothing there');
const notAsked = ignore('refused in requests');
const bare = warn('a source without an address cannot be expressed there');

const annotations = {
  ...exact('annotations'),
  one: {
    url_citation: {
      ...exact('annotations[].url_citation'),
      in: {
        url: exact('annotations[].url_citation.url'),
        title: exact('annotations[].url_citation.title'),
        start_index: exact('annotations[].url_citation.start_index', 'in the whole content'),
        end_index: exact('annotations[].url_citation.end_index', 'in the whole content'),
      },
    },
    file_citation: bare,
    container_file_citation: bare,
    file_path: bare,
  },
} as const;

const contents = {
  output_text: {
    ...exact('content'),
    in: { text: exact('content', 'messages are joined'), annotations, logprobs: notAsked },
  },
  refusal: { ...exact('refusal'), in: { refusal: exact('refusal') } },
} as const satisfies Variants<ResponseOutputText | ResponseOutputRefusal>;

const caller = ignore('the caller does not change the call');
const called = {
  id: own,
  call_id: exact('tool_calls[].id'),
  status: own,
  caller,
} as const;
const made = { created_by: own } as const;
const named = {
  name: exact('tool_calls[].function.name', 'as the tool was offered'),
  namespace: ignore('no request of another API offers one'),
  async: ignore('no request of another API asks for it'),
} as const;
const typed = (name: string): ReturnType<typeof exact> =>
  exact('tool_calls[].function.arguments', `a call of ${name}`);

export const answerItems = {
  assistant: {
    ...exact('message'),
    in: {
      id: own,
      content: { ...exact('content'), one: contents },
      status: own,
      phase: ignore('a blank line stands between the messages'),
    },
  },
  reasoning: {
    ...exact('reasoning_content, reasoning_details'),
    in: {
      id: exact('reasoning_details[].id', 'kept for the next turn'),
      summary: {
        ...exact('reasoning_content'),
        in: { type: exact(''), text: exact('reasoning_content') },
      },
      content: {
        ...exact('reasoning_content'),
        in: {
          type: exact(''),
          text: exact('reasoning_content', 'where there is no summary'),
        },
      },
      encrypted_content: exact('reasoning_details[].data'),
      status: own,
    },
  },
  function_call: {
    ...exact('tool_calls'),
    in: { ...called, ...named, arguments: exact('tool_calls[].function.arguments') },
  },
  custom_tool_call: {
    ...exact('tool_calls'),
    in: {
      id: own,
      call_id: exact('tool_calls[].id'),
      caller,
      ...named,
      input: exact('tool_calls[].custom.input', 'as arguments {"input": …} for a function'),
    },
  },
  tool_search_call: {
    ...exact('tool_calls'),
    in: {
      id: own,
      call_id: exact('tool_calls[].id'),
      status: own,
      created_by: own,
      arguments: typed('tool_search'),
      execution: byCase({
        client: exact('tool_calls'),
        server: near('', 'not shown: the provider ran it'),
      }),
    },
  },
  local_shell_call: {
    ...exact('tool_calls'),
    in: {
      id: own,
      call_id: exact('tool_calls[].id'),
      status: own,
      action: whole(typed('local_shell')),
    },
  },
  shell_call: {
    ...exact('tool_calls'),
    in: {
      ...called,
      ...made,
      action: whole(typed('shell')),
      environment: ignore('a shell of the client; one in a container is not shown'),
    },
  },
  apply_patch_call: {
    ...exact('tool_calls'),
    in: { ...called, ...made, operation: whole(typed('apply_patch')) },
  },
  web_search_call: hidden,
  file_search_call: hidden,
  code_interpreter_call: hidden,
  image_generation_call: hidden,
  computer_call: hidden,
  computer_call_output: hidden,
  function_call_output: hidden,
  custom_tool_call_output: hidden,
  local_shell_call_output: hidden,
  shell_call_output: hidden,
  apply_patch_call_output: hidden,
  tool_search_output: hidden,
  additional_tools: hidden,
  program: hidden,
  program_output: hidden,
  mcp_call: hidden,
  mcp_list_tools: hidden,
  mcp_approval_request: hidden,
  mcp_approval_response: hidden,
  compaction: hidden,
} as const satisfies Variants<ResponseOutputItem>;

const usage = {
  input_tokens: exact('prompt_tokens'),
  input_tokens_details: {
    ...exact('prompt_tokens_details'),
    in: {
      cached_tokens: exact('prompt_tokens_details.cached_tokens'),
      cache_write_tokens: exact('prompt_tokens_details.cache_write_tokens'),
      cache_write_tokens_details: ignore('one counter there'),
    },
  },
  output_tokens: exact('completion_tokens'),
  output_tokens_details: {
    ...exact('completion_tokens_details'),
    in: { reasoning_tokens: exact('completion_tokens_details.reasoning_tokens') },
  },
  total_tokens: exact('', 'the sum of the others'),
} as const satisfies Fields<ResponseUsage>;

const failure = exact('error', 'the call fails; another target is asked where that is allowed');

export const responsesAnswer = {
  id: near('id', 'chatcmpl- and the id'),
  object: exact('object', 'chat.completion'),
  created_at: near('created', 'the time of the call'),
  completed_at: own,
  status: byCase({
    completed: exact('finish_reason', 'stop, or tool_calls with calls'),
    incomplete: exact('finish_reason', 'by its reason'),
    failed: failure,
    cancelled: failure,
    queued: failure,
    in_progress: failure,
  }),
  error: whole(failure),
  incomplete_details: {
    ...exact('finish_reason'),
    in: {
      reason: byCase({
        max_output_tokens: exact('finish_reason', 'length'),
        content_filter: exact('finish_reason', 'content_filter'),
        max_messages: near('finish_reason', 'length'),
        steered: near('finish_reason', 'length'),
      }),
    },
  },
  model: exact('model', 'the name that the client used'),
  output: { ...exact('message'), one: answerItems },
  output_text: ignore('made by the SDK'),
  usage: { ...exact('usage'), in: usage },
  service_tier: near('service_tier', 'where chat has the word'),
  tool_usage: ignore('no counter there; searches are in the ledger'),
  access_programs: own,
  background: repeated,
  conversation: repeated,
  image: repeated,
  instructions: repeated,
  max_output_tokens: repeated,
  max_tool_calls: repeated,
  metadata: repeated,
  moderation: ignore('the request had none'),
  parallel_tool_calls: repeated,
  previous_response_id: repeated,
  prompt: repeated,
  prompt_cache_diagnostics: ignore('the request had none'),
  prompt_cache_key: repeated,
  prompt_cache_options: repeated,
  prompt_cache_retention: repeated,
  reasoning: repeated,
  safety_identifier: repeated,
  temperature: repeated,
  text: repeated,
  tool_choice: repeated,
  tools: repeated,
  top_logprobs: repeated,
  top_p: repeated,
  truncation: repeated,
  user: repeated,
} as const satisfies Fields<Response>;

const place = {
  sequence_number: own,
  output_index: exact('', 'tells the items apart'),
  item_id: own,
} as const;
const content = { ...place, content_index: exact('', 'tells the texts apart') } as const;
const summary = { ...place, summary_index: exact('', 'a blank line between') } as const;
const again = exact('', 'what was not streamed is told; another text is an error');
const progress = ignore('progress of what the provider runs');
const spoken = ignore('no request of another API asks for audio');
const told = ignore('told by other events');
const ending = {
  ...exact('finish chunk, usage chunk', 'as in a document'),
  in: { response: whole(exact('finish chunk, usage chunk')), sequence_number: own },
} as const;

export const responsesEvents = {
  'response.created': {
    ...exact('first chunk'),
    in: { response: whole(exact('id, model')), sequence_number: own },
  },
  'response.queued': progress,
  'response.in_progress': progress,
  'response.output_item.added': {
    ...exact('', 'begins a call'),
    in: { item: whole(exact('delta')), output_index: place.output_index, sequence_number: own },
  },
  'response.output_item.done': {
    ...exact('', 'as in a document'),
    in: { item: whole(exact('delta')), output_index: place.output_index, sequence_number: own },
  },
  'response.content_part.added': {
    ...exact('', 'begins a text'),
    in: { ...content, part: whole(exact('delta')) },
  },
  'response.content_part.done': told,
  'response.output_text.delta': {
    ...exact('delta'),
    in: { ...content, delta: exact('delta.content'), logprobs: notAsked },
  },
  'response.output_text.done': {
    ...exact('delta'),
    in: { ...content, text: again, logprobs: notAsked },
  },
  'response.output_text.annotation.added': {
    ...exact('delta.annotations'),
    in: { ...content, annotation_index: own, annotation: whole(exact('delta.annotations')) },
  },
  'response.refusal.delta': {
    ...exact('delta'),
    in: { ...content, delta: exact('delta.refusal') },
  },
  'response.refusal.done': { ...exact('delta'), in: { ...content, refusal: again } },
  'response.function_call_arguments.delta': {
    ...exact('delta'),
    in: { ...place, delta: exact('delta.tool_calls[].function.arguments') },
  },
  'response.function_call_arguments.done': {
    ...exact('delta'),
    in: { ...place, arguments: again },
  },
  'response.custom_tool_call_input.delta': {
    ...exact('delta'),
    in: { ...place, delta: exact('delta.tool_calls[].custom.input') },
  },
  'response.custom_tool_call_input.done': { ...exact('delta'), in: { ...place, input: again } },
  'response.reasoning_summary_part.added': told,
  'response.reasoning_summary_part.done': told,
  'response.reasoning_summary_text.delta': {
    ...exact('delta'),
    in: { ...summary, delta: exact('delta.reasoning_content') },
  },
  'response.reasoning_summary_text.done': told,
  'response.reasoning_text.delta': {
    ...exact('delta'),
    in: { ...content, delta: exact('delta.reasoning_content', 'where there is no summary') },
  },
  'response.reasoning_text.done': told,
  'response.completed': ending,
  'response.incomplete': ending,
  'response.failed': whole(failure),
  error: whole(failure),
  'response.audio.delta': spoken,
  'response.audio.done': spoken,
  'response.audio.transcript.delta': spoken,
  'response.audio.transcript.done': spoken,
  'response.web_search_call.in_progress': progress,
  'response.web_search_call.searching': progress,
  'response.web_search_call.completed': progress,
  'response.file_search_call.in_progress': progress,
  'response.file_search_call.searching': progress,
  'response.file_search_call.completed': progress,
  'response.code_interpreter_call.in_progress': progress,
  'response.code_interpreter_call.interpreting': progress,
  'response.code_interpreter_call.completed': progress,
  'response.code_interpreter_call_code.delta': progress,
  'response.code_interpreter_call_code.done': progress,
  'response.image_generation_call.in_progress': progress,
  'response.image_generation_call.generating': progress,
  'response.image_generation_call.partial_image': progress,
  'response.image_generation_call.completed': progress,
  'response.mcp_call.in_progress': progress,
  'response.mcp_call.completed': progress,
  'response.mcp_call.failed': progress,
  'response.mcp_call_arguments.delta': progress,
  'response.mcp_call_arguments.done': progress,
  'response.mcp_list_tools.in_progress': progress,
  'response.mcp_list_tools.completed': progress,
  'response.mcp_list_tools.failed': progress,
  'response.shell_call_command.added': told,
  'response.shell_call_command.delta': told,
  'response.shell_call_command.done': told,
  'response.shell_call_output_content.delta': progress,
  'response.shell_call_output_content.done': progress,
  'response.compaction.compacting': progress,
} as const satisfies Variants<ResponseStreamEvent>;
