/** Messages requests, one for each kind of block and each field of one. */
import type {
  BetaContentBlockParam,
  BetaMessageParam,
  MessageCreateParamsBase,
} from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type { JsonObject } from '../../src/json/value.ts';
import { pdf, png, type Sample, type Samples } from './sample.ts';

type Sent = Partial<MessageCreateParamsBase>;

const user: BetaMessageParam = { role: 'user', content: 'Hi' };
const mark = { type: 'ephemeral' } as const;
const marks = 'openrouter/a/model';
const opus = 'anthropic/claude-opus-4-8';
const at = 'messages[].content';
const dataUrl = `data:image/png;base64,${png}`;

/** One user message of the blocks, and the parts that it becomes. */
function asked(
  blocks: readonly BetaContentBlockParam[],
  ...parts: readonly JsonObject[]
): Pick<Sample<Sent>, 'sends' | 'arrives'> {
  return {
    sends: { messages: [{ role: 'user', content: [...blocks] }] },
    arrives: { messages: [{ role: 'user', content: parts }] },
  };
}

const image = (more: object): BetaContentBlockParam => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: png },
  ...more,
});
const document = (more: object): BetaContentBlockParam => ({
  type: 'document',
  source: { type: 'base64', media_type: 'application/pdf', data: pdf },
  ...more,
});
const pdfPart = { type: 'file', file: { file_data: `data:application/pdf;base64,${pdf}` } };
const question: BetaContentBlockParam = { type: 'text', text: 'Why?' };
const why = { type: 'text', text: 'Why?' };

const media: Samples<Sent> = {
  [`${at}[text].text`]: {
    ...asked([{ ...question, cache_control: mark }], { ...why, cache_control: mark }),
    behind: marks,
    also: [`${at}[text].cache_control`],
  },
  [`${at}[text].citations`]: {
    sends: {
      messages: [
        user,
        {
          role: 'assistant',
          content: [
            {
              type: 'text',
              text: 'Yes.',
              citations: [
                {
                  type: 'web_search_result_location',
                  cited_text: 'Yes',
                  encrypted_index: 'e',
                  title: null,
                  url: 'https://example.com',
                },
              ],
            },
          ],
        },
        user,
      ],
    },
    arrives: {
      messages: [{ role: 'user' }, { role: 'assistant', content: 'Yes.' }, { role: 'user' }],
    },
  },
  [`${at}[image].source[base64].data`]: {
    ...asked(
      [image({ cache_control: mark }), question],
      {
        type: 'image_url',
        image_url: { url: dataUrl },
      },
      why,
    ),
    also: [`${at}[image].source[base64].media_type`, `${at}[image].cache_control`],
  },
  [`${at}[image].source[url].url`]: asked(
    [{ type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }],
    { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
  ),
  [`${at}[image].source[file]`]: {
    sends: asked([{ type: 'image', source: { type: 'file', file_id: 'f' } }]).sends,
  },
  [`${at}[image].transformations.oversized_image (downsize)`]: asked(
    [image({ transformations: { oversized_image: 'downsize' } })],
    { type: 'image_url' },
  ),
  [`${at}[image].transformations.oversized_image (error)`]: asked(
    [image({ transformations: { oversized_image: 'error' } })],
    { type: 'image_url' },
  ),
  [`${at}[document].source[base64].data`]: {
    ...asked([document({ title: 'a.pdf', cache_control: mark, citations: { enabled: false } })], {
      ...pdfPart,
      file: { ...pdfPart.file, filename: 'a.pdf' },
    }),
    also: [
      `${at}[document].source[base64].media_type`,
      `${at}[document].title`,
      `${at}[document].cache_control`,
      `${at}[document].citations.enabled (false)`,
    ],
  },
  [`${at}[document].citations.enabled (true)`]: asked(
    [document({ citations: { enabled: true } })],
    pdfPart,
  ),
  [`${at}[document].context (of a PDF)`]: asked([document({ context: 'A letter.' })], pdfPart),
  [`${at}[document].source[text].data`]: {
    ...asked(
      [
        {
          type: 'document',
          source: { type: 'text', media_type: 'text/plain', data: 'Words.' },
          title: 'a.txt',
          context: 'A letter.',
        },
        question,
      ],
      { type: 'text', text: 'a.txt — A letter.\n\nWords.' },
      why,
    ),
    also: [`${at}[document].source[text].media_type`, `${at}[document].context (of a text)`],
  },
  [`${at}[document].source[content].content`]: {
    ...asked(
      [
        {
          type: 'document',
          source: {
            type: 'content',
            content: [
              { type: 'text', text: 'Words.' },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
            ],
          },
        },
      ],
      { type: 'text', text: 'Words.' },
      { type: 'image_url' },
    ),
    noted: [`${at}[document]`],
  },
  [`${at}[document].source[url]`]: {
    sends: asked([{ type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }])
      .sends,
  },
  [`${at}[document].source[file]`]: {
    sends: asked([{ type: 'document', source: { type: 'file', file_id: 'f' } }]).sends,
  },
  [`${at}[search_result]`]: {
    sends: asked([
      {
        type: 'search_result',
        source: 'https://example.com',
        title: 'Example',
        content: [{ type: 'text', text: 'Words.' }],
        citations: { enabled: true },
      },
      question,
    ]).sends,
  },
  [`${at}[container_upload]`]: {
    sends: asked([{ type: 'container_upload', file_id: 'f' }, question]).sends,
    arrives: { messages: [{ role: 'user', content: 'Why?' }] },
  },
};

/** A turn of the assistant that is answered by the user. */
function answered(
  blocks: readonly BetaContentBlockParam[],
  written: JsonObject,
): Pick<Sample<Sent>, 'sends' | 'arrives'> {
  return {
    sends: { messages: [user, { role: 'assistant', content: [...blocks] }, user] },
    arrives: {
      messages: [{ role: 'user' }, { role: 'assistant', ...written }, { role: 'user' }],
    },
  };
}

const said: BetaContentBlockParam = { type: 'text', text: 'Yes.' };
const serverUse = (
  name:
    | 'web_search'
    | 'web_fetch'
    | 'advisor'
    | 'code_execution'
    | 'bash_code_execution'
    | 'text_editor_code_execution'
    | 'tool_search_tool_bm25',
): BetaContentBlockParam => ({
  type: 'server_tool_use',
  id: 'srvtoolu_1',
  name,
  input: { query: 'cats' },
});

/** Blocks of server tools of earlier turns: nothing of them is a call, and the text says what was found. */
function shown(...blocks: readonly BetaContentBlockParam[]): Sample<Sent> {
  return { sends: { messages: [user, { role: 'assistant', content: [...blocks, said] }, user] } };
}

const turns: Samples<Sent> = {
  [`${at}[thinking] (written by another model)`]: {
    ...answered([{ type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmVk' }, said], {
      content: 'Yes.',
    }),
    named: 'messages[assistant]',
  },
  [`${at}[redacted_thinking] (written by another model)`]: {
    ...answered([{ type: 'redacted_thinking', data: 'ZGF0YQ==' }, said], { content: 'Yes.' }),
    named: 'messages[assistant]',
  },
  [`${at}[server_tool_use]`]: {
    ...shown(serverUse('web_search'), {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: [
        {
          type: 'web_search_result',
          title: 'Cats',
          url: 'https://example.com/cats',
          encrypted_content: 'e',
        },
      ],
    }),
    named: `${at}[web_search_tool_result]`,
    also: [`${at}[web_search_tool_result]`],
  },
  [`${at}[web_fetch_tool_result]`]: shown(serverUse('web_fetch'), {
    type: 'web_fetch_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: {
      type: 'web_fetch_result',
      url: 'https://example.com',
      content: {
        type: 'document',
        source: { type: 'text', media_type: 'text/plain', data: 'Words.' },
      },
    },
  }),
  [`${at}[advisor_tool_result]`]: shown(serverUse('advisor'), {
    type: 'advisor_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: { type: 'advisor_result', text: 'Think.' },
  }),
  [`${at}[code_execution_tool_result]`]: shown(serverUse('code_execution'), {
    type: 'code_execution_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: {
      type: 'code_execution_result',
      content: [],
      return_code: 0,
      stderr: '',
      stdout: '42',
    },
  }),
  [`${at}[bash_code_execution_tool_result]`]: shown(serverUse('bash_code_execution'), {
    type: 'bash_code_execution_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: {
      type: 'bash_code_execution_result',
      content: [],
      return_code: 0,
      stderr: '',
      stdout: '42',
    },
  }),
  [`${at}[text_editor_code_execution_tool_result]`]: shown(
    serverUse('text_editor_code_execution'),
    {
      type: 'text_editor_code_execution_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: {
        type: 'text_editor_code_execution_view_result',
        content: 'Words.',
        file_type: 'text',
      },
    },
  ),
  [`${at}[tool_search_tool_result]`]: shown(serverUse('tool_search_tool_bm25'), {
    type: 'tool_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: {
      type: 'tool_search_tool_search_result',
      tool_references: [{ type: 'tool_reference', tool_name: 'weather' }],
    },
  }),
  [`${at}[mcp_tool_use]`]: {
    ...shown(
      { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'find', server_name: 'm', input: { q: 1 } },
      { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', content: 'Found.' },
    ),
    named: `${at}[mcp_tool_result]`,
    also: [`${at}[mcp_tool_result]`],
  },
  [`${at}[mcp_tool_listing]`]: shown({
    type: 'mcp_tool_listing',
    mcp_server_name: 'm',
    tools: [{ name: 'find', input_schema: {} }],
  }),
  [`${at}[compaction]`]: shown({ type: 'compaction', content: 'They said hi.' }),
  [`${at}[fallback]`]: answered(
    [
      { type: 'fallback', from: { model: 'claude-opus-4-8' }, to: { model: 'claude-sonnet-4-5' } },
      said,
    ],
    { content: 'Yes.' },
  ),
  [`${at}[tool_addition]`]: shown({
    type: 'tool_addition',
    tool: { type: 'tool_reference', name: 'weather' },
  }),
  [`${at}[tool_removal]`]: shown({
    type: 'tool_removal',
    tool: { type: 'tool_reference', name: 'weather' },
  }),
};

const instruction: BetaMessageParam = {
  role: 'system',
  content: [{ type: 'text', text: 'Be brief.' }],
};

function instructed(message: BetaMessageParam): Sent {
  return { messages: [user, { role: 'assistant', content: 'Yes.' }, user, message] };
}

const systems: Samples<Sent> = {
  'messages[system] (upstream that takes instructions anywhere)': {
    relayedTo: opus,
    sends: instructed(instruction),
    behind: 'deepseek/deepseek-v4',
    arrives: {
      messages: [
        { role: 'user' },
        { role: 'assistant' },
        { role: 'user' },
        { role: 'system', content: 'Be brief.' },
      ],
    },
  },
  'messages[system] (upstream that does not)': {
    relayedTo: opus,
    sends: instructed(instruction),
    behind: 'mistral/mistral-large-latest',
  },
  'messages[system].clear_at (never)': {
    relayedTo: opus,
    sends: instructed({ role: 'system', content: 'Be brief.', clear_at: 'never' }),
    behind: 'deepseek/deepseek-v4',
  },
  'messages[system].clear_at (next_user_message)': {
    relayedTo: opus,
    sends: instructed({ role: 'system', content: 'Be brief.', clear_at: 'next_user_message' }),
  },
  'messages[system].output_config.effort': {
    relayedTo: opus,
    sends: instructed({ role: 'system', content: 'Be brief.', output_config: { effort: 'low' } }),
    behind: 'openai/gpt-5.2',
    arrives: { reasoning_effort: 'low' },
  },
};

export const messagesBlockSamples: Samples<Sent> = {
  ...media,
  ...turns,
  ...systems,
};
