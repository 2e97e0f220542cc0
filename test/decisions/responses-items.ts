/** Input items of a responses request, on the way to a chat upstream. */
import type { ResponseInputItem } from 'openai/resources/responses/responses';
import {
  approx,
  byCase,
  exact,
  ignore,
  near,
  reject,
  warn,
  whole,
  type Variants,
} from './decision.ts';

const own = ignore('says nothing there');
const item = { id: own, status: ignore('says nothing there') } as const;
const mark = near('the mark of the part', 'where the upstream knows marks');
const call = {
  ...item,
  caller: ignore('the caller does not change the call'),
  async: warn('each call waits for its result'),
} as const;
const fileId = reject("ids belong to one provider's file store");

const parts = {
  input_text: {
    ...exact('text part'),
    in: { text: exact('messages[user].content'), prompt_cache_breakpoint: whole(mark) },
  },
  input_image: {
    ...exact('image_url part'),
    in: {
      image_url: exact('messages[user].content[image_url].image_url.url'),
      detail: byCase({
        'low, high': exact('messages[user].content[image_url].image_url.detail'),
        original: near('messages[user].content[image_url].image_url.detail', 'high'),
        auto: ignore('the default'),
      }),
      file_id: fileId,
      prompt_cache_breakpoint: whole(mark),
    },
  },
  input_file: {
    ...exact('file part'),
    in: {
      file_data: byCase({
        PDF: exact('messages[user].content[file].file.file_data'),
        text: near('messages[user].content', 'as text'),
      }),
      file_url: reject('chat completions takes no addresses of files'),
      file_id: fileId,
      filename: exact('messages[user].content[file].file.filename'),
      detail: ignore('no such option there'),
      prompt_cache_breakpoint: whole(mark),
    },
  },
} as const;

const said = {
  output_text: {
    ...exact('content'),
    in: {
      text: exact('messages[assistant].content'),
      annotations: ignore('what was cited stays in the text'),
      logprobs: ignore('of the past'),
    },
  },
  refusal: { ...exact('refusal'), in: { refusal: exact('messages[assistant].refusal') } },
} as const;

/** Of one role; the content of every role is decided alike, so the user's tells of all. */
const instructions = {
  ...byCase({
    'before the first turn': exact('messages[system].content'),
    'later on, upstream that takes it': exact('messages[system].content', 'keeps its position'),
    'later on, other upstreams': approx('messages[user].content', 'marked as <system>'),
  }),
  in: { content: whole(exact('messages[system].content')), phase: own, status: item.status },
} as const;

const hosted = whole(approx('messages[assistant].content', 'what it did and found, as text'));
const onlyThere = reject('only its own service understands it');

export const responsesItems = {
  user: {
    ...exact('user message'),
    in: {
      content: { ...exact('content'), one: parts },
      phase: own,
      status: item.status,
    },
  },
  system: instructions,
  developer: instructions,
  assistant: {
    ...exact('assistant message'),
    in: {
      content: {
        ...exact('content'),
        one: {
          ...said,
          input_text: whole(exact('messages[assistant].content')),
          input_image: warn('answers hold text only'),
          input_file: warn('answers hold text only'),
        },
      },
      phase: ignore('says nothing there'),
      ...item,
    },
  },
  function_call: {
    ...exact('tool_calls[]'),
    in: {
      call_id: exact('messages[assistant].tool_calls[function].id'),
      name: exact('messages[assistant].tool_calls[function].function.name'),
      namespace: exact(
        'messages[assistant].tool_calls[function].function.name',
        'in front of the name, where the tools have it so',
      ),
      arguments: exact('messages[assistant].tool_calls[function].function.arguments'),
      ...call,
    },
  },
  function_call_output: {
    ...byCase({
      'with call_id': exact('tool message'),
      'without call_id': approx('messages[user].content', '[output of NAME], and the output'),
    }),
    in: {
      call_id: exact('messages[tool].tool_call_id'),
      output: {
        ...byCase({ 'a text': exact('messages[tool].content') }),
        one: {
          input_text: whole(exact('messages[tool].content')),
          input_image: whole(near('messages[user].content[image_url]', 'in a user message behind')),
          input_file: whole(near('messages[user].content[file]', 'in a user message behind')),
        },
      },
      name: ignore('says nothing there'),
      namespace: ignore('says nothing there'),
      id: own,
      status: byCase({ 'completed, incomplete': ignore('says nothing there') }),
      caller: call.caller,
    },
  },
  custom_tool_call: {
    ...exact('tool_calls[]'),
    in: {
      call_id: exact('messages[assistant].tool_calls[].id'),
      name: exact('messages[assistant].tool_calls[]'),
      namespace: exact('messages[assistant].tool_calls[]', 'in front of the name'),
      input: exact('messages[assistant].tool_calls[]'),
      id: own,
      caller: call.caller,
      async: call.async,
    },
  },
  custom_tool_call_output: whole(exact('messages[tool].content', 'as function_call_output')),
  reasoning: {
    ...byCase({
      'sealed by the gateway for the provider asked': exact('as its provider takes it back'),
      'encrypted by its own service, or sealed for another provider': warn(
        'a provider receives its own reasoning only',
      ),
      neither: near('messages[assistant].reasoning_content', 'where the provider wants it back'),
    }),
    whole: true,
  },
  tool_search_call: {
    ...byCase({
      'of the client': exact('messages[assistant].tool_calls[function].function.arguments'),
      'of the service': approx('messages[assistant].content', 'as text'),
    }),
    whole: true,
  },
  tool_search_output: {
    ...byCase({
      'of the client': exact('messages[tool].content, tools', 'what was found joins the tools'),
      'of the service': warn('what was found joins the tools'),
    }),
    whole: true,
  },
  additional_tools: {
    ...exact('tools', 'behind those of the request'),
    in: { tools: whole(exact('tools')), id: own },
  },
  configuration_update: onlyThere,
  compaction: onlyThere,
  compaction_trigger: onlyThere,
  item_reference: whole(exact('', 'the gateway puts what it kept in its place')),
  program: onlyThere,
  program_output: onlyThere,
  local_shell_call: whole(exact('messages[assistant].tool_calls[function].function.arguments')),
  local_shell_call_output: whole(exact('messages[tool].content')),
  shell_call: whole(exact('messages[assistant].tool_calls[function].function.arguments')),
  shell_call_output: whole(near('messages[tool].content', 'outputs and exit codes as text')),
  apply_patch_call: whole(exact('messages[assistant].tool_calls[function].function.arguments')),
  apply_patch_call_output: whole(exact('messages[tool].content')),
  mcp_list_tools: hosted,
  mcp_approval_request: onlyThere,
  mcp_approval_response: onlyThere,
  mcp_call: hosted,
  file_search_call: hosted,
  computer_call: onlyThere,
  computer_call_output: onlyThere,
  web_search_call: hosted,
  image_generation_call: hosted,
  code_interpreter_call: hosted,
} as const satisfies Variants<ResponseInputItem>;
