/** Requests as clients of all dialects send them, each with something that not every messages server takes. */
import type { JsonObject } from '../../src/json/value.ts';
import type { ClientDialect } from '../support/dialects.ts';

export interface MessagesShape {
  readonly name: string;
  readonly dialect: ClientDialect;
  /** Without its model. */
  readonly body: JsonObject;
  /** An image in a turn: servers that cannot be shown it are not asked. */
  readonly image?: 'base64' | 'url';
}

const user = { role: 'user', content: 'What time is it?' } as const;
const schema = {
  type: 'object',
  properties: { zone: { type: 'string' } },
  required: ['zone'],
  additionalProperties: false,
} as const;
const tool = { name: 'get_time', description: 'Tells it.', input_schema: schema } as const;
const chatTool = {
  type: 'function',
  function: { name: 'get_time', description: 'Tells it.', parameters: schema },
} as const;
const responsesTool = {
  type: 'function',
  name: 'get_time',
  description: 'Tells it.',
  parameters: schema,
  strict: false,
} as const;
const call = {
  type: 'tool_use',
  id: 'toolu_01',
  name: 'get_time',
  input: { zone: 'UTC' },
} as const;
const result = { type: 'tool_result', tool_use_id: 'toolu_01', content: 'noon' } as const;
const data =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } } as const;
const linked = {
  type: 'image',
  source: { type: 'url', url: 'https://example.com/a.png' },
} as const;
const mark = { type: 'ephemeral' } as const;
const format = { type: 'json_schema', schema } as const;

function messages(
  name: string,
  body: JsonObject,
  more: Pick<MessagesShape, 'image'> = {},
): MessagesShape {
  return {
    name,
    dialect: 'messages',
    body: { max_tokens: 4000, messages: [user], ...body },
    ...more,
  };
}

function chat(name: string, body: JsonObject): MessagesShape {
  return { name, dialect: 'chat', body: { messages: [user], ...body } };
}

function responses(
  name: string,
  body: JsonObject,
  more: Pick<MessagesShape, 'image'> = {},
): MessagesShape {
  return { name, dialect: 'responses', body: { input: [user], ...body }, ...more };
}

function shown(block: JsonObject): JsonObject {
  return { messages: [{ role: 'user', content: [{ type: 'text', text: 'See.' }, block] }] };
}

function responsesShown(image_url: string): JsonObject {
  const content = [
    { type: 'input_text', text: 'See.' },
    { type: 'input_image', image_url, detail: 'auto' },
  ];
  return { input: [{ role: 'user', content }] };
}

function answered(...content: readonly JsonObject[]): JsonObject {
  return {
    tools: [tool],
    messages: [
      user,
      { role: 'assistant', content: [call] },
      { role: 'user', content: [...content] },
    ],
  };
}

export const messagesShapes: readonly MessagesShape[] = [
  messages('plain', {}),
  messages('streamed', { stream: true }),
  messages('temperature and top_p', { temperature: 0.3, top_p: 0.9 }),
  messages('sampling at its defaults', { temperature: 1, top_p: 1 }),
  messages('top_k', { top_k: 40 }),
  messages('a budget of thinking', { thinking: { type: 'enabled', budget_tokens: 2000 } }),
  messages('a budget and sampling', {
    thinking: { type: 'enabled', budget_tokens: 2000 },
    temperature: 0.5,
    top_k: 5,
  }),
  messages('adaptive thinking', { thinking: { type: 'adaptive' } }),
  messages('adaptive thinking with an effort', {
    thinking: { type: 'adaptive', display: 'omitted' },
    output_config: { effort: 'xhigh' },
  }),
  messages('an effort alone', { output_config: { effort: 'max' } }),
  messages('thinking switched off', { thinking: { type: 'disabled' } }),
  messages('thinking switched off at the highest effort', {
    thinking: { type: 'disabled' },
    output_config: { effort: 'max' },
  }),
  messages('thinking off between calls', { thinking: { type: 'between_tools' } }),
  messages('a demanded tool', {
    tools: [tool],
    tool_choice: { type: 'tool', name: 'get_time', disable_parallel_tool_use: true },
  }),
  messages('a demanded tool beside thinking', {
    tools: [tool],
    tool_choice: { type: 'any' },
    thinking: { type: 'enabled', budget_tokens: 2000 },
  }),
  messages('no tool at all', { tools: [tool], tool_choice: { type: 'none' } }),
  messages('a prefill', { messages: [user, { role: 'assistant', content: 'It is' }] }),
  messages('a prefill beside thinking', {
    messages: [user, { role: 'assistant', content: [{ type: 'text', text: 'It is' }] }],
    thinking: { type: 'enabled', budget_tokens: 2000 },
  }),
  messages('an instruction behind the user', {
    system: 'Be brief.',
    messages: [user, { role: 'system', content: 'Use UTC.' }],
  }),
  messages('an instruction between a call and its result', {
    tools: [tool],
    messages: [
      user,
      { role: 'assistant', content: [call] },
      { role: 'system', content: [{ type: 'text', text: 'Use UTC.' }] },
      { role: 'user', content: [result] },
    ],
  }),
  messages('an open tool turn without thinking', {
    ...answered(result),
    thinking: { type: 'enabled', budget_tokens: 2000 },
  }),
  messages('an open tool turn without thinking, adaptive', {
    ...answered(result),
    thinking: { type: 'adaptive' },
  }),
  messages('a schema', { output_config: { format }, system: 'Be brief.' }),
  messages('a schema in the older spelling', {
    output_format: format,
    system: [{ type: 'text', text: 'Be brief.' }],
  }),
  messages('strict tools', { tools: [{ ...tool, strict: true }] }),
  messages('tools that the client runs for Anthropic', {
    tools: [
      { type: 'bash_20250124', name: 'bash' },
      { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
      tool,
    ],
  }),
  messages('a web search beside tools', {
    tools: [{ type: 'web_search_20250305', name: 'web_search' }, tool],
  }),
  messages('what server tools found, and encrypted thoughts', {
    messages: [
      user,
      {
        role: 'assistant',
        content: [
          { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4a' },
          { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'time' } },
          {
            type: 'web_search_tool_result',
            tool_use_id: 's',
            content: [
              {
                type: 'web_search_result',
                title: 'Time',
                url: 'https://time.example/now',
                encrypted_content: 'x',
              },
            ],
          },
          { type: 'text', text: 'Noon.' },
        ],
      },
      user,
    ],
  }),
  messages('a screenshot in a result', answered({ ...result, content: [image] })),
  messages('an image', shown(image), { image: 'base64' }),
  messages('an image by its address', shown(linked), { image: 'url' }),
  messages(
    'a document of text',
    shown({
      type: 'document',
      title: 'Notes',
      source: { type: 'text', media_type: 'text/plain', data: 'It is noon.' },
    }),
  ),
  messages('marks of caches', {
    system: [{ type: 'text', text: 'Be brief.', cache_control: mark }],
    tools: [{ ...tool, cache_control: mark }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: mark }] }],
  }),
  messages('tiers and managed context', {
    service_tier: 'standard_only',
    context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
    metadata: { user_id: 'u' },
  }),
  messages('stop sequences', { stop_sequences: ['END', '\n\n'] }),
  messages('a high cap', { max_tokens: 200_000 }),
  chat('sampling', { temperature: 0.3, top_p: 0.9, seed: 7 }),
  chat('an effort', { reasoning_effort: 'high', max_completion_tokens: 200_000 }),
  chat('no effort', { reasoning_effort: 'none' }),
  chat('some tool', { tools: [chatTool], tool_choice: 'required', reasoning_effort: 'low' }),
  chat('a schema', {
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
  }),
  chat('a later instruction', {
    messages: [
      user,
      { role: 'assistant', content: 'Noon.' },
      { role: 'developer', content: 'UTC.' },
      user,
    ],
  }),
  chat('a prefill', { messages: [user, { role: 'assistant', content: 'It is' }], stop: ['\n'] }),
  responses('a text', { input: 'What time is it?', instructions: 'Be brief.', stream: true }),
  responses('sampling and a cap', { temperature: 0.3, top_p: 0.9, max_output_tokens: 200_000 }),
  responses('an effort and a summary', { reasoning: { effort: 'xhigh', summary: 'auto' } }),
  responses('no effort', { reasoning: { effort: 'none' } }),
  responses('some tool of many kinds', {
    tools: [
      responsesTool,
      { type: 'custom', name: 'note', format: { type: 'text' } },
      { type: 'namespace', name: 'clock', description: 'Time.', tools: [responsesTool] },
      { type: 'web_search' },
    ],
    tool_choice: 'required',
    parallel_tool_calls: false,
    reasoning: { effort: 'low' },
  }),
  responses('a schema', { text: { format: { type: 'json_schema', name: 'a', schema } } }),
  responses('a later instruction', {
    input: [
      user,
      { role: 'assistant', content: 'Noon.' },
      { role: 'developer', content: 'UTC.' },
      user,
    ],
  }),
  responses('calls beside each other, text between, and a later user before the results', {
    tools: [responsesTool],
    input: [
      user,
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'of another service' },
      { type: 'function_call', call_id: 'c1', name: 'get_time', arguments: '{}' },
      { role: 'assistant', content: 'I look.' },
      { type: 'function_call', call_id: 'c2', name: 'get_time', arguments: '{}' },
      user,
      { type: 'function_call_output', call_id: 'c2', output: 'noon' },
      {
        type: 'function_call_output',
        call_id: 'c1',
        output: [{ type: 'input_text', text: 'noon' }],
      },
    ],
  }),
  responses('a prefill', { input: [user, { role: 'assistant', content: 'It is' }] }),
  responses('an image', responsesShown(`data:image/png;base64,${data}`), { image: 'base64' }),
  responses('an image by its address', responsesShown('https://example.com/a.png'), {
    image: 'url',
  }),
];
