/** Content blocks of a messages request, on the way to a chat upstream (translation.md §3.5, §3.8, §6). */
import type { Beta } from '@anthropic-ai/sdk/resources/beta/beta';
import type * as Stable from '@anthropic-ai/sdk/resources/messages/messages';
import {
  approx,
  byCase,
  exact,
  holder,
  ignore,
  near,
  reject,
  warn,
  whole,
  type Variants,
} from './decision.ts';

type Block = Beta.BetaContentBlockParam | Stable.ContentBlockParam;
type ResultBlock =
  | Exclude<NonNullable<Beta.BetaToolResultBlockParam['content']>, string>[number]
  | Exclude<NonNullable<Stable.ToolResultBlockParam['content']>, string>[number];

/** Its own fields are decided at the top level. */
export const cacheMark = whole(
  near('cache_control or prompt_cache_breakpoint', 'where the upstream knows marks; else ignored'),
);
const asText = (how: string) => whole(approx('text part', how));
const fileId = reject("ids belong to one provider's file store");

const text = {
  ...exact('text part'),
  in: {
    text: exact('text'),
    cache_control: cacheMark,
    citations: ignore('the text stays, without its source'),
  },
} as const;

const image = {
  ...exact('image_url part'),
  in: {
    source: {
      ...exact('image_url.url'),
      one: {
        base64: { ...exact('data URL'), in: { data: exact('url'), media_type: exact('url') } },
        url: { ...exact('url'), in: { url: exact('url') } },
        file: fileId,
      },
    },
    cache_control: cacheMark,
    transformations: {
      ...holder,
      in: {
        oversized_image: byCase({
          downsize: ignore('the default'),
          error: warn('the model decides what is too large'),
        }),
      },
    },
  },
} as const;

const document = {
  ...exact('file part or text part'),
  in: {
    source: {
      ...exact('file part or text part'),
      one: {
        base64: {
          ...exact('file part'),
          in: { data: exact('file.file_data'), media_type: exact('file.file_data') },
        },
        text: {
          ...near('text part', 'under a line with its title and context'),
          in: { data: exact('text'), media_type: exact('') },
        },
        content: {
          ...approx('text and image parts', 'its blocks, in order'),
          in: { content: whole(exact('text and image parts')) },
        },
        url: reject('chat files cannot be addresses'),
        file: fileId,
      },
    },
    cache_control: cacheMark,
    citations: {
      ...holder,
      in: {
        enabled: byCase({
          false: ignore('the default'),
          true: warn('the model does not cite documents'),
        }),
      },
    },
    context: byCase({
      'of a text': near('text part', 'in the line above the text'),
      'of a PDF': warn('a file has only a name'),
    }),
    title: exact('file.filename', 'or the line above the text'),
  },
} as const;

const searchResult = asText('title, source and texts');

export const toolResultContent = {
  text,
  image: {
    ...near('image_url part', 'in a user message after the results; the tool message points there'),
    whole: true,
  },
  search_result: searchResult,
  document: { ...near('file part or text', 'as images'), whole: true },
  tool_reference: asText('names the tool'),
  browser_state: reject('it belongs to the browser toolset'),
} as const satisfies Variants<ResultBlock>;

const caller = {
  ...holder,
  one: {
    direct: ignore('the default'),
    code_execution_20250825: ignore('the caller does not change the call'),
    code_execution_20260120: ignore('the caller does not change the call'),
  },
} as const;

export const messagesBlocks = {
  text,
  image,
  document,
  search_result: searchResult,
  thinking: {
    ...byCase({
      'written by a model like the one behind': exact('reasoning_content or reasoning_details'),
      'written by another model': warn('reasoning is not shown to other models'),
    }),
    whole: true,
  },
  redacted_thinking: {
    ...byCase({
      'written by a model like the one behind': exact('reasoning_details'),
      'written by another model': warn('only its own provider can read it'),
    }),
    whole: true,
  },
  tool_use: {
    ...exact('tool_calls'),
    in: {
      id: exact('tool_calls[].id'),
      name: exact('tool_calls[].function.name', 'shortened deterministically above 64 characters'),
      input: exact('tool_calls[].function.arguments'),
      cache_control: cacheMark,
      caller,
      toolset_name: warn('it belongs to the browser and computer toolsets'),
    },
  },
  tool_result: {
    ...exact('tool message', 'before everything else of its turn'),
    in: {
      tool_use_id: exact('tool_call_id'),
      content: { ...exact('content'), one: toolResultContent },
      is_error: byCase({
        false: ignore('the default'),
        true: near('content', 'begins with `Error: `'),
      }),
      cache_control: cacheMark,
      toolset_name: warn('it belongs to the browser and computer toolsets'),
    },
  },
  server_tool_use: asText('with its result'),
  web_search_tool_result: asText('query, titles and addresses'),
  web_fetch_tool_result: asText('what was read'),
  advisor_tool_result: asText('what was said'),
  code_execution_tool_result: asText('what was printed'),
  bash_code_execution_tool_result: asText('what was printed'),
  text_editor_code_execution_tool_result: asText('what was found'),
  tool_search_tool_result: asText('the tools that were found'),
  mcp_tool_use: asText('with its result'),
  mcp_tool_result: asText('what was answered'),
  container_upload: warn('containers are not continued'),
  compaction: asText('the summary'),
  tool_addition: asText('and in tools: all tools are offered from the start'),
  tool_removal: asText('and out of tools, if it is not added again'),
  mcp_tool_listing: reject('no MCP server is called'),
  fallback: warn('it names the model that wrote a part'),
} as const satisfies Variants<Block>;
