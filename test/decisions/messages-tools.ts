/** Tools of a messages request, on the way to a chat upstream (translation.md §2.2). */
import type { Beta } from '@anthropic-ai/sdk/resources/beta/beta';
import type * as Stable from '@anthropic-ai/sdk/resources/messages/messages';
import { approx, byCase, exact, ignore, reject, warn, whole, type Variants } from './decision.ts';
import { cacheMark } from './messages-blocks.ts';

const clientRun = whole(approx('function tool', 'with its published schema'));
const webSearch = {
  ...byCase({
    'provider or route with server_tools': approx(
      'web_search_options or plugins',
      'the web search of the provider',
    ),
    "beside the client's own tools": warn('the model has no web search'),
    alone: reject('the search there needs server_tools'),
  }),
  whole: true,
} as const;
const serverRun = reject('nothing would run it');
const toolSearch = whole(approx('', 'all are offered at once'));

export const messagesTools = {
  custom: {
    ...exact('function tool'),
    in: {
      name: exact('function.name', 'shortened deterministically above 64 characters'),
      description: exact('function.description'),
      input_schema: exact('function.parameters', 'keywords that the server refuses are removed'),
      strict: exact('function.strict', 'where the schema allows it; else dropped and noted'),
      cache_control: cacheMark,
      defer_loading: byCase({
        false: ignore('the default'),
        true: approx('function tool', 'all are offered at once'),
      }),
      eager_input_streaming: ignore('a hint about speed'),
      input_examples: ignore('a hint'),
      allowed_callers: ignore('the model calls directly'),
    },
  },
  bash_20241022: clientRun,
  bash_20250124: clientRun,
  text_editor_20241022: clientRun,
  text_editor_20250124: clientRun,
  text_editor_20250429: clientRun,
  text_editor_20250728: clientRun,
  memory_20250818: clientRun,
  web_search_20250305: webSearch,
  web_search_20260209: webSearch,
  web_search_20260318: webSearch,
  tool_search_tool_bm25_20251119: toolSearch,
  tool_search_tool_regex_20251119: toolSearch,
  tool_search_tool_bm25: toolSearch,
  tool_search_tool_regex: toolSearch,
  web_fetch_20250910: serverRun,
  web_fetch_20260209: serverRun,
  web_fetch_20260309: serverRun,
  web_fetch_20260318: serverRun,
  code_execution_20250522: serverRun,
  code_execution_20250825: serverRun,
  code_execution_20260120: serverRun,
  code_execution_20260521: serverRun,
  advisor_20260301: serverRun,
  mcp_toolset: serverRun,
  computer_20241022: serverRun,
  computer_20250124: serverRun,
  computer_20251124: serverRun,
  computer_toolset_20260801: serverRun,
  browser_toolset_20260801: serverRun,
} as const satisfies Variants<Beta.BetaToolUnion | Stable.ToolUnion>;

const parallel = byCase({
  false: ignore('the default'),
  true: exact('parallel_tool_calls', 'false'),
});

export const messagesToolChoice = {
  auto: { ...exact('"auto"'), in: { disable_parallel_tool_use: parallel } },
  any: { ...exact('"required"'), in: { disable_parallel_tool_use: parallel } },
  tool: {
    ...exact('{type: "function"}'),
    in: { name: exact('function.name'), disable_parallel_tool_use: parallel },
  },
  none: { ...exact('"none"'), in: {} },
} as const satisfies Variants<Beta.BetaToolChoice>;
