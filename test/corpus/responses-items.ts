/** Responses requests, one for each kind of input item and each field of one. */
import type {
  ResponseCreateParamsBase,
  ResponseInputItem,
} from 'openai/resources/responses/responses';
import type { Json, JsonObject } from '../../src/json/value.ts';
import { objectSchema, pdf, png, type Sample, type Samples } from './sample.ts';

type Sent = Partial<ResponseCreateParamsBase>;
type Item = ResponseInputItem;

const hi: Item = { role: 'user', content: 'Hi' };
const yes: Item = { role: 'assistant', content: 'Yes.' };
const brief = 'Be brief.';
const dataUrl = `data:image/png;base64,${png}`;
const pdfUrl = `data:application/pdf;base64,${pdf}`;
const mark = { mode: 'explicit' } as const;
const marked = { type: 'ephemeral' } as const;
const user = 'input[user].content';
const weather = {
  type: 'function',
  name: 'weather',
  parameters: objectSchema,
  strict: false,
} as const;

/** What both foreign dialects get in `messages`. */
function arriving(
  chat: readonly JsonObject[],
  messages: readonly JsonObject[],
): Pick<Sample<Sent>, 'arrives' | 'on'> {
  return { arrives: { messages: chat }, on: { messages: { arrives: { messages } } } };
}

/** One message of the user, and its parts there. */
function asked(
  part: object,
  chat: readonly JsonObject[] | string,
  messages: readonly JsonObject[],
): Pick<Sample<object>, 'sends' | 'arrives' | 'on'> {
  return {
    sends: { input: [{ role: 'user', content: [part] }] },
    ...arriving([{ role: 'user', content: chat }], [{ role: 'user', content: messages }]),
  };
}

const parts: Samples<object> = {
  [`${user}[input_text].text`]: {
    ...asked({ type: 'input_text', text: 'One.', prompt_cache_breakpoint: mark }, 'One.', [
      { type: 'text', text: 'One.', cache_control: marked },
    ]),
    also: [`${user}[input_text].prompt_cache_breakpoint`],
  },
  [`${user}[input_image].image_url`]: {
    ...asked(
      { type: 'input_image', image_url: dataUrl, detail: 'low', prompt_cache_breakpoint: mark },
      [{ type: 'image_url', image_url: { url: dataUrl, detail: 'low' } }],
      [
        {
          type: 'image',
          source: { type: 'base64', media_type: 'image/png', data: png },
          cache_control: marked,
        },
      ],
    ),
    also: [
      `${user}[input_image].detail (low, high)`,
      `${user}[input_image].prompt_cache_breakpoint`,
    ],
  },
  [`${user}[input_image].detail (original)`]: asked(
    { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'original' },
    [{ type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'high' } }],
    [{ type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }],
  ),
  [`${user}[input_image].detail (auto)`]: asked(
    { type: 'input_image', image_url: dataUrl, detail: 'auto' },
    [{ type: 'image_url', image_url: { url: dataUrl } }],
    [{ type: 'image' }],
  ),
  [`${user}[input_image].file_id`]: {
    sends: asked({ type: 'input_image', file_id: 'file-1', detail: 'auto' }, '', []).sends,
  },
  [`${user}[input_file].file_data (PDF)`]: {
    ...asked(
      {
        type: 'input_file',
        file_data: pdfUrl,
        filename: 'a.pdf',
        detail: 'low',
        prompt_cache_breakpoint: mark,
      },
      [{ type: 'file', file: { file_data: pdfUrl, filename: 'a.pdf' } }],
      [
        {
          type: 'document',
          title: 'a.pdf',
          source: { type: 'base64', media_type: 'application/pdf', data: pdf },
          cache_control: marked,
        },
      ],
    ),
    also: [
      `${user}[input_file].filename`,
      `${user}[input_file].detail`,
      `${user}[input_file].prompt_cache_breakpoint`,
    ],
  },
  [`${user}[input_file].file_data (text)`]: asked(
    {
      type: 'input_file',
      file_data: `data:text/plain;base64,${Buffer.from('Words.').toString('base64')}`,
      filename: 'a.txt',
    },
    'a.txt\n\nWords.',
    [{ type: 'document', source: { type: 'text', data: 'Words.' } }],
  ),
  [`${user}[input_file].file_url`]: asked(
    { type: 'input_file', file_url: 'https://example.com/a.pdf' },
    '',
    [{ type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }],
  ),
  [`${user}[input_file].file_id`]: {
    sends: asked({ type: 'input_file', file_id: 'file-1' }, '', []).sends,
  },
  'input[user].phase': {
    sends: { input: [{ ...hi, phase: 'commentary', status: 'completed' }] },
    beyondSchema: true,
    ...arriving([{ role: 'user', content: 'Hi' }], [{ role: 'user' }]),
    also: ['input[user].status'],
  },
};

function instructions(role: 'developer' | 'system'): Samples<object> {
  const at = `input[${role}]`;
  return {
    [`${at} (before the first turn)`]: {
      sends: {
        input: [
          {
            role,
            content: [{ type: 'input_text', text: brief }],
            phase: null,
            status: 'completed',
          },
          hi,
        ],
      },
      beyondSchema: true,
      arrives: { messages: [{ role: 'system', content: brief }, { role: 'user' }] },
      on: { messages: { arrives: { system: [{ text: brief }], messages: [{ role: 'user' }] } } },
      also: [`${at}.content`, `${at}.phase`, `${at}.status`],
    },
    [`${at} (later on, upstream that takes it)`]: {
      sends: { input: [hi, yes, { role, content: brief }, hi] },
      behind: 'deepseek/deepseek-v4',
      arrives: {
        messages: [
          { role: 'user' },
          { role: 'assistant' },
          { role: 'system', content: brief },
          { role: 'user' },
        ],
      },
      on: {
        messages: {
          behind: 'anthropic/claude-opus-4-8',
          arrives: {
            messages: [
              { role: 'user' },
              { role: 'assistant' },
              { role: 'system', content: [{ text: brief }] },
              { role: 'user' },
            ],
          },
        },
      },
    },
    [`${at} (later on, other upstreams)`]: {
      sends: { input: [hi, yes, { role, content: brief }] },
      behind: 'mistral/mistral-large-latest',
      arrives: {
        messages: [
          { role: 'user' },
          { role: 'assistant' },
          { role: 'user', content: `<system>\n${brief}\n</system>` },
        ],
      },
      on: {
        messages: {
          arrives: {
            messages: [
              { role: 'user' },
              { role: 'assistant' },
              { role: 'user', content: [{ text: `<system>${brief}</system>` }] },
            ],
          },
        },
      },
    },
  };
}

/** A finished turn of the model, and what is left of it there. */
function answered(
  item: object,
  chat: JsonObject,
  messages: readonly JsonObject[],
): Pick<Sample<object>, 'sends' | 'arrives' | 'on'> {
  return {
    sends: { input: [hi, item, hi] },
    ...arriving(
      [{ role: 'user' }, { role: 'assistant', ...chat }, { role: 'user' }],
      [{ role: 'user' }, { role: 'assistant', content: messages }, { role: 'user' }],
    ),
  };
}

const said = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' } as const;
const assistant = 'input[assistant]';
const answers: Samples<object> = {
  [`${assistant}.content[output_text].text`]: {
    ...answered(
      {
        ...said,
        phase: 'final_answer',
        content: [
          {
            type: 'output_text',
            text: 'Yes.',
            annotations: [
              {
                type: 'url_citation',
                url: 'https://example.com',
                title: 'T',
                start_index: 0,
                end_index: 3,
              },
            ],
            logprobs: [],
          },
        ],
      },
      { content: 'Yes.' },
      [{ type: 'text', text: 'Yes.' }],
    ),
    also: [
      `${assistant}.content[output_text].annotations`,
      `${assistant}.content[output_text].logprobs`,
      `${assistant}.phase`,
      `${assistant}.id`,
      `${assistant}.status`,
    ],
  },
  [`${assistant}.content[refusal].refusal`]: answered(
    { ...said, content: [{ type: 'refusal', refusal: 'No.' }] },
    { refusal: 'No.' },
    [{ type: 'text', text: 'No.' }],
  ),
  [`${assistant}.content[input_text]`]: {
    ...answered(
      { role: 'assistant', content: [{ type: 'input_text', text: 'Yes.' }] },
      { content: 'Yes.' },
      [{ text: 'Yes.' }],
    ),
    beyondSchema: true,
  },
  [`${assistant}.content[input_image]`]: {
    sends: {
      input: [
        hi,
        { role: 'assistant', content: [{ type: 'input_image', image_url: dataUrl }] },
        hi,
      ],
    },
    beyondSchema: true,
  },
  [`${assistant}.content[input_file]`]: {
    sends: {
      input: [hi, { role: 'assistant', content: [{ type: 'input_file', file_data: pdfUrl }] }, hi],
    },
    beyondSchema: true,
  },
};

interface Call {
  readonly call: object;
  readonly output: object;
  readonly more?: Sent;
}

/** A call of the client with its output; there, a call of a function with a text. */
function called(
  { call, output, more = {} }: Call,
  {
    name,
    input,
    result,
    noted,
  }: { name: string; input: JsonObject; result: string; noted?: readonly string[] },
): Pick<Sample<object>, 'sends' | 'arrives' | 'on' | 'noted'> {
  const both = arriving(
    [
      { role: 'user' },
      {
        role: 'assistant',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name, arguments: JSON.stringify(input) } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: result },
    ],
    [
      { role: 'user' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name, input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: result }] },
    ],
  );
  const told = noted === undefined ? {} : { noted };
  return {
    sends: { input: [hi, { call_id: 'c1', ...call }, { call_id: 'c1', ...output }], ...more },
    ...both,
    ...told,
    on: { messages: { ...both.on?.messages, ...told } },
  };
}

const call = { type: 'function_call', name: 'weather', arguments: '{"city":"Oslo"}' } as const;
const output = { type: 'function_call_output', output: 'Sunny.' } as const;
const sunny = { name: 'weather', input: { city: 'Oslo' }, result: 'Sunny.' } as const;
const direct = { caller: { type: 'direct' } } as const;

/** The output as parts: the messages behind it at both dialects. */
function shown(part: object, chat: readonly JsonObject[], content: Json): Sample<object> {
  const whole = called({ call, output: { ...output, output: [part] } }, sunny);
  return {
    sends: whole.sends,
    ...arriving(
      [{ role: 'user' }, { role: 'assistant' }, ...chat],
      [
        { role: 'user' },
        { role: 'assistant' },
        { role: 'user', content: [{ type: 'tool_result', content }] },
      ],
    ),
  };
}

const functions: Samples<object> = {
  'input[function_call].call_id': {
    ...called(
      {
        call: { ...call, id: 'fc_1', status: 'completed', ...direct },
        output: { ...output, id: 'fco_1', status: 'completed', name: 'weather', ...direct },
      },
      sunny,
    ),
    also: [
      'input[function_call].name',
      'input[function_call].arguments',
      'input[function_call].id',
      'input[function_call].status',
      'input[function_call].caller',
      'input[function_call_output] (with call_id)',
      'input[function_call_output].call_id',
      'input[function_call_output].output (a text)',
      'input[function_call_output].name',
      'input[function_call_output].id',
      'input[function_call_output].status (completed, incomplete)',
      'input[function_call_output].caller',
    ],
  },
  'input[function_call].namespace': {
    ...called(
      {
        call: { ...call, namespace: 'sky' },
        output: { ...output, namespace: 'sky' },
        more: {
          tools: [{ type: 'namespace', name: 'sky', description: 'Sky.', tools: [weather] }],
        },
      },
      { ...sunny, name: 'sky__weather' },
    ),
    also: ['input[function_call_output].namespace'],
  },
  'input[function_call].async': {
    ...called({ call: { ...call, async: true }, output }, sunny),
    beyondSchema: true,
  },
  'input[function_call_output] (without call_id)': {
    sends: { input: [hi, { type: 'function_call_output', name: 'weather', output: 'Sunny.' }] },
    beyondSchema: true,
  },
  'input[function_call_output].output[input_text]': shown(
    { type: 'input_text', text: 'Sunny.' },
    [{ role: 'tool', content: 'Sunny.' }],
    'Sunny.',
  ),
  'input[function_call_output].output[input_image]': shown(
    { type: 'input_image', image_url: dataUrl, detail: 'original' },
    [
      { role: 'tool', content: '[image 1 attached below]' },
      {
        role: 'user',
        content: [{ type: 'text' }, { type: 'image_url', image_url: { url: dataUrl } }],
      },
    ],
    [{ type: 'image', source: { data: png } }],
  ),
  'input[function_call_output].output[input_file]': shown(
    { type: 'input_file', file_data: pdfUrl, filename: 'a.pdf' },
    [{ role: 'tool' }, { role: 'user', content: [{ type: 'text' }, { type: 'file' }] }],
    [{ type: 'document', source: { data: pdf } }],
  ),
};

const customCall = { type: 'custom_tool_call', name: 'shell', input: 'ls' } as const;
const customOutput = { type: 'custom_tool_call_output', output: 'a b' } as const;
const listed = { name: 'shell', input: { input: 'ls' }, result: 'a b' } as const;
const shellTool = { tools: [{ type: 'custom', name: 'shell' }] } as const;
const customs: Samples<object> = {
  'input[custom_tool_call].call_id': {
    ...called(
      {
        call: { ...customCall, id: 'ctc_1', ...direct },
        output: { ...customOutput, id: 'ctco_1', ...direct },
        more: { tools: [...shellTool.tools] },
      },
      listed,
    ),
    also: [
      'input[custom_tool_call].name',
      'input[custom_tool_call].input',
      'input[custom_tool_call].id',
      'input[custom_tool_call].caller',
      'input[custom_tool_call_output]',
    ],
  },
  'input[custom_tool_call].namespace': called(
    {
      call: { ...customCall, namespace: 'box' },
      output: customOutput,
      more: {
        tools: [
          {
            type: 'namespace',
            name: 'box',
            description: 'Box.',
            tools: [{ type: 'custom', name: 'shell' }],
          },
        ],
      },
    },
    { ...listed, name: 'box__shell' },
  ),
  'input[custom_tool_call].async': {
    ...called(
      {
        call: { ...customCall, async: true },
        output: customOutput,
        more: { tools: [...shellTool.tools] },
      },
      listed,
    ),
    beyondSchema: true,
  },
};

const typed: Samples<object> = {
  'input[tool_search_call] (of the client)': {
    ...called(
      {
        call: { type: 'tool_search_call', execution: 'client', arguments: { query: 'sky' } },
        output: { type: 'tool_search_output', execution: 'client', tools: [weather] },
        more: { tools: [{ type: 'tool_search', execution: 'client' }] },
      },
      { name: 'tool_search', input: { query: 'sky' }, result: 'Tools found:\n- weather' },
    ),
    also: ['input[tool_search_output] (of the client)'],
  },
  'input[local_shell_call]': {
    ...called(
      {
        call: {
          type: 'local_shell_call',
          id: 'lsh_1',
          status: 'completed',
          action: { type: 'exec', command: ['ls'], env: {} },
        },
        output: { type: 'local_shell_call_output', id: 'c1', output: 'a b' },
        more: { tools: [{ type: 'local_shell' }] },
      },
      {
        name: 'local_shell',
        input: { command: ['ls'], env: {} },
        result: 'a b',
        noted: ['tools[local_shell]'],
      },
    ),
    also: ['input[local_shell_call_output]'],
    beyondSchema: true,
  },
  'input[shell_call]': {
    ...called(
      {
        call: { type: 'shell_call', action: { commands: ['ls'] } },
        output: {
          type: 'shell_call_output',
          output: [{ stdout: 'a b', stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
        },
        more: { tools: [{ type: 'shell' }] },
      },
      {
        name: 'shell',
        input: { commands: ['ls'] },
        result: 'a b\n[exit code 0]',
        noted: ['tools[shell]'],
      },
    ),
    also: ['input[shell_call_output]'],
  },
  'input[apply_patch_call]': {
    ...called(
      {
        call: {
          type: 'apply_patch_call',
          status: 'completed',
          operation: { type: 'delete_file', path: 'a' },
        },
        output: { type: 'apply_patch_call_output', status: 'completed', output: 'Done.' },
        more: { tools: [{ type: 'apply_patch' }] },
      },
      {
        name: 'apply_patch',
        input: { operation: { type: 'delete_file', path: 'a' } },
        result: 'Done.',
        noted: ['tools[apply_patch]'],
      },
    ),
    also: ['input[apply_patch_call_output]'],
  },
};

/** What a tool of the service did in an earlier turn: told as text. */
function hosted(item: object, text: string): Sample<object> {
  return {
    sends: { input: [hi, item, hi] },
    ...arriving(
      [{ role: 'user' }, { role: 'assistant', content: text }, { role: 'user' }],
      [{ role: 'user' }, { role: 'assistant', content: [{ text }] }, { role: 'user' }],
    ),
  };
}

const others: Samples<object> = {
  'input[tool_search_call] (of the service)': {
    sends: {
      input: [
        hi,
        { type: 'tool_search_call', execution: 'server', call_id: null, arguments: {} },
        { type: 'tool_search_output', execution: 'server', call_id: null, tools: [weather] },
        hi,
      ],
    },
    arrives: { tools: [{ function: { name: 'weather' } }] },
    on: { messages: { arrives: { tools: [{ name: 'weather' }] } } },
    also: ['input[tool_search_output] (of the service)'],
  },
  'input[additional_tools].tools': {
    sends: {
      input: [{ type: 'additional_tools', role: 'developer', id: 'at_1', tools: [weather] }, hi],
    },
    arrives: { tools: [{ function: { name: 'weather' } }], messages: [{ role: 'user' }] },
    on: { messages: { arrives: { tools: [{ name: 'weather' }], messages: [{ role: 'user' }] } } },
    also: ['input[additional_tools].id'],
  },
  'input[web_search_call]': hosted(
    {
      id: 'ws_1',
      type: 'web_search_call',
      status: 'completed',
      action: {
        type: 'search',
        query: 'cats',
        sources: [{ type: 'url', url: 'https://example.com' }],
      },
    },
    '[web_search "cats" → https://example.com]',
  ),
  'input[file_search_call]': hosted(
    { id: 'fs_1', type: 'file_search_call', status: 'completed', queries: ['cats'] },
    '[file_search_call {"queries":["cats"]}]',
  ),
  'input[code_interpreter_call]': hosted(
    {
      id: 'ci_1',
      type: 'code_interpreter_call',
      status: 'completed',
      code: '1+1',
      container_id: 'c',
      outputs: null,
    },
    '[code_interpreter_call {"code":"1+1","container_id":"c","outputs":null}]',
  ),
  'input[image_generation_call]': hosted(
    { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: png },
    '[image_generation_call: an image was made]',
  ),
  'input[mcp_list_tools]': hosted(
    { id: 'mcpl_1', type: 'mcp_list_tools', server_label: 'm', tools: [] },
    '[mcp_list_tools {"server_label":"m","tools":[]}]',
  ),
  'input[mcp_call]': hosted(
    {
      id: 'mcp_1',
      type: 'mcp_call',
      server_label: 'm',
      name: 'find',
      arguments: '{}',
      output: 'Found.',
    },
    '[mcp_call {"server_label":"m","name":"find","arguments":"{}","output":"Found."}]',
  ),
  ...Object.fromEntries(
    [
      { type: 'configuration_update', reasoning: { effort: 'low' } },
      { type: 'compaction', encrypted_content: 'e' },
      { type: 'compaction_trigger' },
      { type: 'program', id: 'p', call_id: 'c1', code: '1', fingerprint: 'f' },
      { type: 'program_output', id: 'p', call_id: 'c1', result: '1', status: 'completed' },
      { type: 'mcp_approval_request', id: 'm', arguments: '{}', name: 'find', server_label: 'm' },
      { type: 'mcp_approval_response', approval_request_id: 'm', approve: true },
      {
        type: 'computer_call',
        id: 'cu_1',
        call_id: 'c1',
        status: 'completed',
        pending_safety_checks: [],
        action: { type: 'screenshot' },
      },
      {
        type: 'computer_call_output',
        call_id: 'c1',
        output: { type: 'computer_screenshot', image_url: dataUrl },
      },
    ].map((item) => [
      `input[${item.type}]`,
      { sends: { input: [hi, item] }, beyondSchema: true } satisfies Sample<object>,
    ]),
  ),
};

const reasoned = {
  id: 'rs_1',
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: 'Hm.' }],
  status: 'completed',
} as const;
const reasoning: Samples<object> = {
  'input[reasoning] (encrypted by its own service, or sealed for another provider)': {
    sends: { input: [hi, { ...reasoned, encrypted_content: 'b2Zvd24=' }, yes, hi] },
    ...arriving(
      [{ role: 'user' }, { role: 'assistant', content: 'Yes.' }, { role: 'user' }],
      [{ role: 'user' }, { role: 'assistant', content: [{ text: 'Yes.' }] }, { role: 'user' }],
    ),
  },
  'input[reasoning] (neither)': {
    sends: { input: [hi, reasoned, yes, hi] },
    behind: 'deepseek/deepseek-v4-pro',
    ...arriving(
      [
        { role: 'user' },
        { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.' },
        { role: 'user' },
      ],
      [{ role: 'user' }, { role: 'assistant', content: [{ text: 'Yes.' }] }, { role: 'user' }],
    ),
  },
};

export const responsesItemSamples: Samples<object> = {
  ...parts,
  ...instructions('developer'),
  ...instructions('system'),
  ...answers,
  ...functions,
  ...customs,
  ...typed,
  ...others,
  ...reasoning,
};
