/** Responses requests, one for each kind of tool and each field of one, and for the choice among them. */
import type { ResponseCreateParamsBase, Tool } from 'openai/resources/responses/responses';
import { objectSchema, type Sample, type Samples } from './sample.ts';

type Sent = Partial<ResponseCreateParamsBase>;
type FunctionTool = Extract<Tool, { type: 'function' }>;
type CustomTool = Extract<Tool, { type: 'custom' }>;

const weather: FunctionTool = {
  type: 'function',
  name: 'weather',
  parameters: objectSchema,
  strict: false,
};
const openai = 'openai/gpt-4.1';
const known = {
  type: 'function',
  function: { name: 'weather', parameters: objectSchema },
} as const;
const knownThere = { name: 'weather', input_schema: objectSchema } as const;
const grammar = { type: 'grammar', syntax: 'lark', definition: 'start: "a"' } as const;
const ruled = 'The input must match this lark grammar:\nstart: "a"';

function tool(more: Partial<FunctionTool>): Sent {
  return { tools: [{ ...weather, ...more }] };
}

function custom(more: Partial<CustomTool>): Sent {
  return { tools: [{ type: 'custom', name: 'shell', ...more }] };
}

/** The same tool at both foreign dialects, as a function. */
function asFunction(name: string): Pick<Sample<Sent>, 'arrives' | 'on'> {
  return {
    arrives: { tools: [{ type: 'function', function: { name } }] },
    on: { messages: { arrives: { tools: [{ name }] } } },
  };
}

const own: Samples<Sent> = {
  'tools[function].name': {
    sends: tool({ description: 'Tells.', strict: true }),
    arrives: {
      tools: [
        {
          type: 'function',
          function: {
            name: 'weather',
            description: 'Tells.',
            parameters: objectSchema,
            strict: true,
          },
        },
      ],
    },
    on: {
      messages: {
        arrives: {
          tools: [
            { name: 'weather', description: 'Tells.', input_schema: objectSchema, strict: true },
          ],
        },
      },
    },
    also: [
      'tools[function].description',
      'tools[function].parameters (schema of an object)',
      'tools[function].strict (true)',
    ],
  },
  'tools[function].parameters (absent)': {
    sends: tool({ parameters: null }),
    arrives: { tools: [{ function: { parameters: { type: 'object', properties: {} } } }] },
    on: {
      messages: { arrives: { tools: [{ input_schema: { type: 'object', properties: {} } }] } },
    },
    named: 'tools[function]',
  },
  'tools[function].strict (false, null)': {
    sends: tool({
      output_schema: objectSchema,
      allowed_callers: ['direct'],
      defer_loading: false,
    }),
    arrives: { tools: [known] },
    on: { messages: { arrives: { tools: [knownThere] } } },
    also: [
      'tools[function].output_schema',
      'tools[function].allowed_callers',
      'tools[function].defer_loading (false)',
    ],
  },
  'tools[function].async': { sends: tool({ async: true }), beyondSchema: true },
  'tools[function].defer_loading (true)': {
    sends: tool({ defer_loading: true }),
    arrives: { tools: [known] },
    on: { messages: { arrives: { tools: [knownThere] } } },
    named: 'tools',
  },
  'tools[custom].name (upstream that knows free texts)': {
    sends: custom({ description: 'Runs.', format: { type: 'text' } }),
    behind: openai,
    arrives: { tools: [{ type: 'custom', custom: { name: 'shell', description: 'Runs.' } }] },
    on: { messages: { arrives: { tools: [{ name: 'shell', description: 'Runs.' }] } } },
    also: ['tools[custom].description', 'tools[custom].format[text]'],
  },
  'tools[custom].name (other upstreams)': {
    sends: custom({ allowed_callers: ['direct'], defer_loading: false }),
    arrives: {
      tools: [
        { type: 'function', function: { name: 'shell', parameters: { required: ['input'] } } },
      ],
    },
    on: {
      messages: { arrives: { tools: [{ name: 'shell', input_schema: { required: ['input'] } }] } },
    },
    also: ['tools[custom].allowed_callers', 'tools[custom].defer_loading (false)'],
  },
  'tools[custom].format[grammar] (upstream that knows grammars)': {
    sends: custom({ format: grammar }),
    behind: openai,
    arrives: {
      tools: [
        {
          type: 'custom',
          custom: {
            name: 'shell',
            format: {
              type: 'grammar',
              grammar: { syntax: 'lark', definition: 'start: "a"' },
            },
          },
        },
      ],
    },
    on: { messages: { arrives: { tools: [{ name: 'shell', description: ruled }] } } },
  },
  'tools[custom].format[grammar] (other upstreams)': {
    sends: custom({ format: grammar }),
    arrives: { tools: [{ function: { name: 'shell', description: ruled } }] },
    on: { messages: { arrives: { tools: [{ name: 'shell', description: ruled }] } } },
  },
  'tools[custom].async': { sends: custom({ async: true }), beyondSchema: true },
  'tools[custom].defer_loading (true)': {
    sends: custom({ defer_loading: true }),
    named: 'tools',
  },
  'tools[namespace].name': {
    sends: {
      tools: [
        {
          type: 'namespace',
          name: 'sky',
          description: 'Of the sky.',
          tools: [{ ...weather, description: 'Tells.' }],
        },
      ],
    },
    arrives: {
      tools: [
        {
          function: {
            name: 'sky__weather',
            description: 'Of the sky.\nTells.',
            parameters: objectSchema,
          },
        },
      ],
    },
    on: {
      messages: {
        arrives: {
          tools: [
            {
              name: 'sky__weather',
              description: 'Of the sky.\nTells.',
              input_schema: objectSchema,
            },
          ],
        },
      },
    },
    also: ['tools[namespace].description', 'tools[namespace].tools'],
  },
  'tools[tool_search] (run by the client)': {
    sends: {
      tools: [
        {
          type: 'tool_search',
          execution: 'client',
          description: 'Finds.',
          parameters: objectSchema,
        },
      ],
    },
    arrives: {
      tools: [
        { function: { name: 'tool_search', description: 'Finds.', parameters: objectSchema } },
      ],
    },
    on: {
      messages: { arrives: { tools: [{ name: 'tool_search', input_schema: objectSchema }] } },
    },
  },
  'tools[tool_search] (run by the service)': {
    sends: { tools: [{ ...weather, defer_loading: true }, { type: 'tool_search' }] },
    arrives: { tools: [known] },
    on: { messages: { arrives: { tools: [knownThere] } } },
    named: 'tools',
  },
  'tools[local_shell]': {
    sends: { tools: [{ type: 'local_shell' }] },
    ...asFunction('local_shell'),
  },
  'tools[apply_patch]': {
    sends: { tools: [{ type: 'apply_patch' }] },
    ...asFunction('apply_patch'),
  },
  'tools[shell] (of the client)': { sends: { tools: [{ type: 'shell' }] }, ...asFunction('shell') },
  'tools[shell] (in a container)': {
    sends: { tools: [weather, { type: 'shell', environment: { type: 'container_auto' } }] },
  },
};

const searches: readonly Tool[] = [
  { type: 'web_search' },
  { type: 'web_search_2025_08_26' },
  { type: 'web_search_preview' },
  { type: 'web_search_preview_2025_03_11' },
];

/** Tools that the service runs, and that a client may offer beside its own. */
const optional: readonly Tool[] = [
  { type: 'image_generation' },
  { type: 'code_interpreter', container: { type: 'auto' } },
];

const serverRun: readonly Tool[] = [
  { type: 'file_search', vector_store_ids: ['v'] },
  { type: 'computer' },
  { type: 'computer_use_preview', display_height: 600, display_width: 800, environment: 'linux' },
  { type: 'mcp', server_label: 'm', server_url: 'https://example.com' },
  { type: 'programmatic_tool_calling' },
];

function ofEach(
  tools: readonly Tool[],
  when: string,
  sample: (tool: Tool) => Sample<Sent>,
): Samples<Sent> {
  return Object.fromEntries(tools.map((each) => [`tools[${each.type}]${when}`, sample(each)]));
}

const hosted: Samples<Sent> = {
  ...ofEach([...searches, ...optional], " (beside the client's own tools)", (each) => ({
    sends: { tools: [weather, each] },
    arrives: { tools: [known] },
    on: { messages: { arrives: { tools: [knownThere] } } },
  })),
  ...ofEach([...searches, ...optional], ' (alone)', (each) => ({ sends: { tools: [each] } })),
  ...ofEach(searches, ' (provider or route with server_tools)', (each) => ({
    sends: { tools: [each] },
    behind: 'generous-chat/a/model',
    arrives: { plugins: [{ id: 'web' }] },
    on: {
      messages: {
        behind: 'generous-messages/claude-opus-4-8',
        arrives: { tools: [{ name: 'web_search' }] },
      },
    },
  })),
  ...ofEach(serverRun, '', (each) => ({ sends: { tools: [weather, each] } })),
};

const word = (choice: 'auto' | 'none' | 'required', there: string): Sample<Sent> => ({
  sends: { tools: [weather], tool_choice: choice },
  arrives: { tools: [known], tool_choice: choice },
  on: { messages: { arrives: { tools: [knownThere], tool_choice: { type: there } } } },
});

function forced(type: string, name?: string): Sample<object> {
  const there = name === undefined ? {} : { name };
  return { sends: { tools: [weather], tool_choice: { type, ...there } } };
}

const choices: Samples<object> = {
  'tool_choice (auto)': word('auto', 'auto'),
  'tool_choice (none)': word('none', 'none'),
  'tool_choice (required)': word('required', 'any'),
  'tool_choice[function].name': {
    sends: { tools: [weather], tool_choice: { type: 'function', name: 'weather' } },
    arrives: { tool_choice: { type: 'function', function: { name: 'weather' } } },
    on: { messages: { arrives: { tool_choice: { type: 'tool', name: 'weather' } } } },
  },
  'tool_choice[custom].name (upstream that knows free texts)': {
    sends: { ...custom({}), tool_choice: { type: 'custom', name: 'shell' } },
    behind: openai,
    arrives: { tool_choice: { type: 'custom', custom: { name: 'shell' } } },
    on: { messages: { arrives: { tool_choice: { type: 'tool', name: 'shell' } } } },
  },
  'tool_choice[custom].name (other upstreams)': {
    sends: { ...custom({}), tool_choice: { type: 'custom', name: 'shell' } },
    arrives: { tool_choice: { type: 'function', function: { name: 'shell' } } },
    on: { messages: { arrives: { tool_choice: { type: 'tool', name: 'shell' } } } },
  },
  'tool_choice[allowed_tools].mode': {
    sends: {
      tools: [weather, { ...weather, name: 'time' }],
      tool_choice: {
        type: 'allowed_tools',
        mode: 'required',
        tools: [{ type: 'function', name: 'time' }],
      },
    },
    arrives: {
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: {
          mode: 'required',
          tools: [{ type: 'function', function: { name: 'time' } }],
        },
      },
    },
    on: { messages: { arrives: { tools: [{ name: 'time' }], tool_choice: { type: 'any' } } } },
    also: ['tool_choice[allowed_tools].tools'],
  },
  'tool_choice[apply_patch]': {
    sends: { tools: [{ type: 'apply_patch' }], tool_choice: { type: 'apply_patch' } },
    arrives: { tool_choice: { type: 'function', function: { name: 'apply_patch' } } },
    on: {
      messages: {
        arrives: { tool_choice: { type: 'tool', name: 'apply_patch' } },
        noted: ['tools[apply_patch]'],
      },
    },
    noted: ['tools[apply_patch]'],
  },
  'tool_choice[shell]': {
    sends: { tools: [{ type: 'shell' }], tool_choice: { type: 'shell' } },
    arrives: { tool_choice: { type: 'function', function: { name: 'shell' } } },
    on: {
      messages: {
        arrives: { tool_choice: { type: 'tool', name: 'shell' } },
        noted: ['tools[shell]'],
      },
    },
    noted: ['tools[shell]'],
  },
  ...Object.fromEntries(
    [
      'programmatic_tool_calling',
      'file_search',
      'web_search_preview',
      'web_search_preview_2025_03_11',
      'computer',
      'computer_use_preview',
      'computer_use',
      'image_generation',
      'code_interpreter',
    ].map((type) => [`tool_choice[${type}]`, forced(type)]),
  ),
  'tool_choice[mcp]': {
    sends: { tools: [weather], tool_choice: { type: 'mcp', server_label: 'm' } },
  },
};

export const responsesToolSamples: Samples<object> = { ...own, ...hosted, ...choices };
