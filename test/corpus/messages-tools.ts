/** Messages requests, one for each kind of tool and each field of one. */
import type {
  BetaTool,
  BetaToolUnion,
  MessageCreateParamsBase,
} from '@anthropic-ai/sdk/resources/beta/messages/messages';
import { objectSchema, type Sample, type Samples } from './sample.ts';

type Sent = Partial<MessageCreateParamsBase>;

const weather: BetaTool = {
  name: 'weather',
  input_schema: { ...objectSchema, required: ['city'] },
};

function clientTool(more: Partial<BetaTool>): Sent {
  return { tools: [{ ...weather, ...more }] };
}

/** Kinds that become functions. */
const clientRun: readonly BetaToolUnion[] = [
  { type: 'bash_20241022', name: 'bash' },
  { type: 'bash_20250124', name: 'bash' },
  { type: 'text_editor_20241022', name: 'str_replace_editor' },
  { type: 'text_editor_20250124', name: 'str_replace_editor' },
  { type: 'text_editor_20250429', name: 'str_replace_based_edit_tool' },
  { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 100 },
  { type: 'memory_20250818', name: 'memory' },
];

const webSearches: readonly BetaToolUnion[] = [
  { type: 'web_search_20250305', name: 'web_search', max_uses: 2 },
  { type: 'web_search_20260209', name: 'web_search', allowed_domains: ['example.com'] },
  { type: 'web_search_20260318', name: 'web_search', response_inclusion: 'full' },
];

const toolSearches: readonly BetaToolUnion[] = [
  { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' },
  { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
  { type: 'tool_search_tool_bm25', name: 'tool_search_tool_bm25' },
  { type: 'tool_search_tool_regex', name: 'tool_search_tool_regex' },
];

/** Kinds that nobody would run. */
const serverRun: readonly BetaToolUnion[] = [
  { type: 'web_fetch_20250910', name: 'web_fetch' },
  { type: 'web_fetch_20260209', name: 'web_fetch' },
  { type: 'web_fetch_20260309', name: 'web_fetch', use_cache: true },
  { type: 'web_fetch_20260318', name: 'web_fetch' },
  { type: 'code_execution_20250522', name: 'code_execution' },
  { type: 'code_execution_20250825', name: 'code_execution' },
  { type: 'code_execution_20260120', name: 'code_execution' },
  { type: 'code_execution_20260521', name: 'code_execution' },
  { type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-8' },
  { type: 'mcp_toolset', mcp_server_name: 'm' },
  { type: 'computer_20241022', name: 'computer', display_height_px: 600, display_width_px: 800 },
  { type: 'computer_20250124', name: 'computer', display_height_px: 600, display_width_px: 800 },
  { type: 'computer_20251124', name: 'computer', display_height_px: 600, display_width_px: 800 },
  { type: 'computer_toolset_20260801' },
  { type: 'browser_toolset_20260801' },
];

function ofEach(
  tools: readonly BetaToolUnion[],
  sample: (tool: BetaToolUnion) => readonly [when: string, sample: Sample<Sent>],
): Samples<Sent> {
  return Object.fromEntries(
    tools.map((tool) => {
      const [when, made] = sample(tool);
      return [`tools[${tool.type ?? 'custom'}]${when}`, made];
    }),
  );
}

const known = { type: 'function', function: { name: 'weather' } } as const;

const kinds: Samples<Sent> = {
  ...ofEach(clientRun, (tool) => [
    '',
    {
      sends: { tools: [tool] },
      arrives: {
        tools: [{ type: 'function', function: { name: 'name' in tool ? tool.name : '' } }],
      },
    },
  ]),
  ...ofEach(webSearches, (tool) => [
    " (beside the client's own tools)",
    { sends: { tools: [weather, tool] }, arrives: { tools: [known] } },
  ]),
  ...ofEach(webSearches, (tool) => [' (alone)', { sends: { tools: [tool] } }]),
  ...ofEach(webSearches, (tool) => [
    ' (provider or route with server_tools)',
    {
      sends: { tools: [tool] },
      behind: 'generous-chat/a/model',
      arrives: { plugins: [{ id: 'web' }] },
      noted: [`tools[${tool.type ?? 'custom'}]`],
    },
  ]),
  ...ofEach(toolSearches, (tool) => [
    '',
    {
      sends: { tools: [{ ...weather, defer_loading: true }, tool] },
      arrives: { tools: [known] },
      named: 'tools',
    },
  ]),
  ...ofEach(serverRun, (tool) => ['', { sends: { tools: [weather, tool] } }]),
};

const choices: Samples<Sent> = {
  'tool_choice[auto].disable_parallel_tool_use (false)': {
    sends: { tools: [weather], tool_choice: { type: 'auto', disable_parallel_tool_use: false } },
    arrives: { tool_choice: 'auto' },
    absent: ['parallel_tool_calls'],
  },
  'tool_choice[auto].disable_parallel_tool_use (true)': {
    sends: { tools: [weather], tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    arrives: { tool_choice: 'auto', parallel_tool_calls: false },
  },
  'tool_choice[any].disable_parallel_tool_use (false)': {
    sends: { tools: [weather], tool_choice: { type: 'any', disable_parallel_tool_use: false } },
    arrives: { tool_choice: 'required' },
  },
  'tool_choice[any].disable_parallel_tool_use (true)': {
    sends: { tools: [weather], tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    arrives: { tool_choice: 'required', parallel_tool_calls: false },
  },
  'tool_choice[tool].name': {
    sends: {
      tools: [weather],
      tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: false },
    },
    arrives: { tool_choice: known },
    also: ['tool_choice[tool].disable_parallel_tool_use (false)'],
  },
  'tool_choice[tool].disable_parallel_tool_use (true)': {
    sends: {
      tools: [weather],
      tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true },
    },
    arrives: { tool_choice: known, parallel_tool_calls: false },
  },
  'tool_choice[none]': {
    sends: { tools: [weather], tool_choice: { type: 'none' } },
    arrives: { tool_choice: 'none', tools: [known] },
  },
};

export const messagesToolSamples: Samples<Sent> = {
  'tools[custom].name': {
    sends: clientTool({ description: 'Tells.', strict: true, type: 'custom' }),
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
    also: ['tools[custom].description', 'tools[custom].input_schema', 'tools[custom].strict'],
  },
  'tools[custom].cache_control': {
    sends: clientTool({ cache_control: { type: 'ephemeral' } }),
    behind: 'openrouter/a/model',
    arrives: { tools: [{ cache_control: { type: 'ephemeral' } }] },
  },
  'tools[custom].defer_loading (false)': {
    sends: clientTool({ defer_loading: false }),
    arrives: { tools: [known] },
  },
  'tools[custom].defer_loading (true)': {
    sends: clientTool({ defer_loading: true }),
    arrives: { tools: [known] },
    named: 'tools',
  },
  'tools[custom].eager_input_streaming': {
    sends: clientTool({
      eager_input_streaming: true,
      input_examples: [{ city: 'Oslo' }],
      allowed_callers: ['direct'],
    }),
    arrives: { tools: [known] },
    also: ['tools[custom].input_examples', 'tools[custom].allowed_callers'],
  },
  ...kinds,
  ...choices,
};
