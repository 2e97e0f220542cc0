/** Messages requests, one for each field of tool calls and their results. */
import type {
  BetaContentBlockParam,
  BetaMessageParam,
  BetaToolResultBlockParam,
  MessageCreateParamsBase,
} from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type { JsonObject } from '../../src/json/value.ts';
import { objectSchema, pdf, png, type Samples } from './sample.ts';

type Sent = Partial<MessageCreateParamsBase>;

const user: BetaMessageParam = { role: 'user', content: 'Hi' };
const question: BetaContentBlockParam = { type: 'text', text: 'Why?' };
const mark = { type: 'ephemeral' } as const;
const marks = 'openrouter/a/model';
const at = 'messages[].content';
const dataUrl = `data:image/png;base64,${png}`;
const pdfPart = { type: 'file', file: { file_data: `data:application/pdf;base64,${pdf}` } };

type ToolUse = Extract<BetaContentBlockParam, { type: 'tool_use' }>;

/** A call and its result. */
function called(
  use: Partial<ToolUse>,
  result: Partial<BetaToolResultBlockParam>,
  ...more: readonly BetaContentBlockParam[]
): Sent {
  return {
    tools: [{ name: 'weather', input_schema: { ...objectSchema, required: ['city'] } }],
    messages: [
      user,
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' }, ...use },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: 'Sunny.', ...result },
          ...more,
        ],
      },
    ],
  };
}

const call = {
  role: 'assistant',
  tool_calls: [
    {
      id: 'toolu_1',
      type: 'function',
      function: { name: 'weather', arguments: '{"city":"Oslo"}' },
    },
  ],
};

function told(...messages: readonly JsonObject[]): JsonObject {
  return { messages: [{ role: 'user' }, call, ...messages] };
}

const sunny = { role: 'tool', tool_call_id: 'toolu_1', content: 'Sunny.' };
const usage = `${at}[tool_use]`;
const result = `${at}[tool_result]`;

export const messagesCallSamples: Samples<Sent> = {
  [`${usage}.id`]: {
    sends: called({ caller: { type: 'direct' } }, { is_error: false }, question),
    arrives: told(sunny, { role: 'user' }),
    also: [
      `${usage}.name`,
      `${usage}.input`,
      `${usage}.caller[direct]`,
      `${result}.tool_use_id`,
      `${result}.is_error (false)`,
    ],
  },
  [`${usage}.cache_control`]: {
    sends: called({ cache_control: mark }, {}),
    arrives: told(sunny),
  },
  [`${usage}.caller[code_execution_20250825]`]: {
    sends: called({ caller: { type: 'code_execution_20250825', tool_id: 't' } }, {}),
    arrives: told(sunny),
  },
  [`${usage}.caller[code_execution_20260120]`]: {
    sends: called({ caller: { type: 'code_execution_20260120', tool_id: 't' } }, {}),
    arrives: told(sunny),
  },
  [`${usage}.toolset_name`]: {
    sends: called({ toolset_name: 'browser' }, {}),
    arrives: told(sunny),
  },
  [`${result}.toolset_name`]: {
    sends: called({}, { toolset_name: 'browser' }),
    arrives: told(sunny),
  },
  [`${result}.is_error (true)`]: {
    sends: called({}, { is_error: true }),
    arrives: told({ ...sunny, content: 'Error: Sunny.' }),
  },
  [`${result}.cache_control`]: {
    sends: called({}, { cache_control: mark }),
    behind: marks,
    arrives: told({
      ...sunny,
      content: [{ type: 'text', text: 'Sunny.', cache_control: mark }],
    }),
  },
  [`${result}.content[text].text`]: {
    sends: called({}, { content: [{ type: 'text', text: 'Sunny.', cache_control: mark }] }),
    behind: marks,
    arrives: told({ role: 'tool', content: [{ text: 'Sunny.', cache_control: mark }] }),
    also: [`${result}.content[text].cache_control`],
  },
  [`${result}.content[text].citations`]: {
    sends: called(
      {},
      {
        content: [
          {
            type: 'text',
            text: 'Sunny.',
            citations: [
              {
                type: 'search_result_location',
                cited_text: 'S',
                search_result_index: 0,
                source: 'https://example.com',
                title: null,
                start_block_index: 0,
                end_block_index: 1,
              },
            ],
          },
        ],
      },
    ),
    arrives: told(sunny),
  },
  [`${result}.content[image]`]: {
    sends: called(
      {},
      {
        content: [
          { type: 'text', text: 'Sunny.' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
        ],
      },
    ),
    arrives: told(
      { role: 'tool', content: 'Sunny.\n[image 1 attached below]' },
      {
        role: 'user',
        content: [{ type: 'text' }, { type: 'image_url', image_url: { url: dataUrl } }],
      },
    ),
  },
  [`${result}.content[document]`]: {
    sends: called(
      {},
      {
        content: [
          {
            type: 'document',
            source: { type: 'base64', media_type: 'application/pdf', data: pdf },
          },
        ],
      },
    ),
    arrives: told({ role: 'tool' }, { role: 'user', content: [{ type: 'text' }, pdfPart] }),
  },
  [`${result}.content[search_result]`]: {
    sends: called(
      {},
      {
        content: [
          {
            type: 'search_result',
            source: 'https://example.com',
            title: 'Example',
            content: [{ type: 'text', text: 'Words.' }],
          },
        ],
      },
    ),
    arrives: told({ role: 'tool' }),
  },
  [`${result}.content[tool_reference]`]: {
    sends: called({}, { content: [{ type: 'tool_reference', tool_name: 'weather' }] }),
    arrives: told({ role: 'tool' }),
  },
  [`${result}.content[browser_state]`]: {
    sends: called(
      {},
      {
        content: [
          {
            type: 'browser_state',
            tabs: [{ tab_id: '1', title: 'T', url: 'https://example.com' }],
          },
        ],
      },
    ),
  },
};
