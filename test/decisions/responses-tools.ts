/** Tools of a responses request and the choice among them, on the way to a chat upstream. */
import type { ResponseCreateParamsBase, Tool } from 'openai/resources/responses/responses';
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

const runsNothing = reject('nothing would run it');
const asFunction = whole(approx('tools[function].function', 'with its published schema'));
const later = byCase({
  false: ignore('the default'),
  true: approx('tools', 'all are offered at once'),
});
/** Optional beside other tools: clients such as Codex always offer them. */
const optional = byCase({
  "beside the client's own tools": warn('the model has none'),
  alone: reject('the model has none'),
});
const search = {
  ...byCase({
    'provider or route with server_tools': approx('tools', 'the web search of the provider'),
    "beside the client's own tools": warn('the search there needs server_tools'),
    alone: reject('the search there needs server_tools'),
  }),
  whole: true,
} as const;
const grammar = {
  ...byCase({
    'upstream that knows grammars': exact('tools[custom].custom.format.grammar'),
    'other upstreams': approx('tools[function].function.description', 'asked for, not enforced'),
  }),
  whole: true,
} as const;
const common = {
  allowed_callers: ignore('nothing else calls it'),
  async: warn('each call waits for its result'),
  defer_loading: later,
} as const;

export const responsesTools = {
  function: {
    ...exact('tools[function]'),
    in: {
      name: exact('tools[function].function.name'),
      description: exact('tools[function].function.description'),
      parameters: byCase({
        'schema of an object': exact('tools[function].function.parameters'),
        absent: exact('tools[function].function.parameters', 'an object without properties'),
      }),
      strict: byCase({
        true: exact('tools[function].function.strict'),
        'false, null': ignore('the default there'),
      }),
      output_schema: ignore('a hint'),
      ...common,
    },
  },
  custom: {
    ...exact('tools'),
    in: {
      name: byCase({
        'upstream that knows free texts': exact('tools[custom].custom.name'),
        'other upstreams': near('tools[function].function.name', 'a function with one text'),
      }),
      description: exact('tools[custom].custom.description'),
      format: { ...exact('tools'), one: { text: ignore('the default'), grammar } },
      ...common,
    },
  },
  namespace: {
    ...exact('tools'),
    in: {
      name: exact('tools[function].function.name', 'in front of the names of its tools'),
      description: exact(
        'tools[function].function.description',
        'in front of the descriptions of its tools',
      ),
      tools: whole(exact('tools[function]', 'as the same tools outside of it')),
    },
  },
  tool_search: {
    ...byCase({
      'run by the client': exact('tools[function]', 'a function'),
      'run by the service': approx('tools', 'all are offered at once'),
    }),
    whole: true,
  },
  local_shell: asFunction,
  apply_patch: asFunction,
  shell: {
    ...byCase({
      'of the client': approx('tools[function].function', 'with its published schema'),
      'in a container': reject('there is no container'),
    }),
    whole: true,
  },
  web_search: search,
  web_search_2025_08_26: search,
  web_search_preview: search,
  web_search_preview_2025_03_11: search,
  image_generation: optional,
  code_interpreter: optional,
  file_search: runsNothing,
  computer: runsNothing,
  computer_use_preview: runsNothing,
  mcp: runsNothing,
  programmatic_tool_calling: runsNothing,
} as const satisfies Variants<Tool>;

type Choice = Extract<NonNullable<ResponseCreateParamsBase['tool_choice']>, object>;

/** Forced tools of the service: what has no such tool cannot be made to call it. */
export const responsesToolChoice = {
  function: { ...exact('tool_choice'), in: { name: exact('tool_choice.function.name') } },
  custom: {
    ...exact('tool_choice'),
    in: {
      name: byCase({
        'upstream that knows free texts': exact('tool_choice.custom.name'),
        'other upstreams': exact('tool_choice.function.name'),
      }),
    },
  },
  allowed_tools: {
    ...approx(
      'tools, tool_choice',
      'the others are left out where the upstream knows no such choice',
    ),
    in: {
      mode: exact('tool_choice'),
      tools: exact('tools'),
    },
  },
  apply_patch: whole(exact('tool_choice.function.name')),
  shell: whole(exact('tool_choice.function.name')),
  mcp: runsNothing,
  programmatic_tool_calling: runsNothing,
  file_search: runsNothing,
  web_search_preview: reject('the search there needs server_tools'),
  web_search_preview_2025_03_11: reject('the search there needs server_tools'),
  computer: runsNothing,
  computer_use_preview: runsNothing,
  computer_use: runsNothing,
  image_generation: runsNothing,
  code_interpreter: runsNothing,
} as const satisfies Variants<Choice>;
