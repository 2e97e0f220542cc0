/** Requests as clients send them, each with something that not every vendor takes. */
import type { JsonObject } from '../../src/json/value.ts';
import type { Dialect } from '../support/reading.ts';

export interface Shape {
  readonly name: string;
  readonly dialect: Dialect;
  /** Without its model. */
  readonly body: JsonObject;
  /** Holds an image in this form: a vendor that cannot be shown one is not asked. */
  readonly image?: 'base64' | 'url';
}

const user = { role: 'user', content: 'What time is it?' } as const;
const schema = {
  type: 'object',
  properties: { zone: { type: 'string' } },
  required: ['zone'],
  additionalProperties: false,
} as const;
const names = ['get_time', 'get_date'] as const;
const chatTools = names.map((name) => ({
  type: 'function',
  function: { name, description: 'Tells it.', parameters: schema },
}));
const strictTools = chatTools.map((tool) => ({
  ...tool,
  function: { ...tool.function, strict: true },
}));
const messagesTools = names.map((name) => ({
  name,
  description: 'Tells it.',
  input_schema: schema,
}));
/** Ids as OpenAI, Anthropic, engines and others write them. */
const ids = ['call_Ab3De5Gh7Jk9Mn1Pq3St5Uv7', 'chatcmpl-tool-0123456789abcdef0123456789abcdef'];
const chatCalls = names.map((name, i) => ({
  id: ids[i] ?? '',
  type: 'function',
  function: { name, arguments: '{"zone":"UTC"}' },
}));
const chatResults = names.map((name, i) => ({
  role: 'tool',
  tool_call_id: ids[i] ?? '',
  name,
  content: 'noon',
}));
const toolIds = ['toolu_01A7b9C2d4E6f8G0h1J3k5L7', 'toolu_01Z9y8X7w6V5u4T3s2R1q0P9'];
const toolUses = names.map((name, i) => ({
  type: 'tool_use',
  id: toolIds[i] ?? '',
  name,
  input: { zone: 'UTC' },
}));
const toolResults = toolIds.map((tool_use_id) => ({
  type: 'tool_result',
  tool_use_id,
  content: 'noon',
}));
const longId = `call_${'a1B2'.repeat(10)}`;
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const address = 'https://example.com/a.png';
const outputSchema = { name: 'answer', schema, strict: true } as const;
const ephemeral = { type: 'ephemeral' } as const;

function chat(name: string, body: JsonObject, more: Pick<Shape, 'image'> = {}): Shape {
  return {
    name,
    dialect: 'chat',
    body: { messages: [user], ...body },
    ...more,
  };
}

function messages(name: string, body: JsonObject, more: Pick<Shape, 'image'> = {}): Shape {
  return {
    name,
    dialect: 'messages',
    body: { max_tokens: 1000, messages: [user], ...body },
    ...more,
  };
}

function shown(image_url: JsonObject | string): JsonObject {
  const parts = [
    { type: 'text', text: 'What is this?' },
    { type: 'image_url', image_url },
  ];
  return { messages: [{ role: 'user', content: parts }] };
}

export const shapes: readonly Shape[] = [
  chat('plain', {}),
  chat('a system message in front', {
    messages: [{ role: 'system', content: 'Be brief.' }, user],
  }),
  chat('two system messages in front', {
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'system', content: 'Be kind.' },
      user,
    ],
  }),
  chat('tools with parallel calls in the history', {
    tools: chatTools,
    messages: [user, { role: 'assistant', content: null, tool_calls: chatCalls }, ...chatResults],
  }),
  chat('the message object of an official SDK in the history', {
    messages: [
      user,
      {
        role: 'assistant',
        content: 'Noon.',
        refusal: null,
        annotations: [],
        audio: null,
      },
      user,
    ],
  }),
  chat('ids of calls that come again', {
    tools: chatTools,
    messages: [0, 1].flatMap(() => [
      user,
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ ...chatCalls[0], id: 'call_0' }],
      },
      { role: 'tool', tool_call_id: 'call_0', content: 'noon' },
    ]),
  }),
  chat('a forced tool', {
    tools: chatTools,
    tool_choice: { type: 'function', function: { name: 'get_time' } },
  }),
  chat('some tool', { tools: chatTools, tool_choice: 'required' }),
  chat('one call at a time', { tools: chatTools, parallel_tool_calls: false }),
  chat('strict schemas of tools', { tools: strictTools }),
  chat('a JSON schema', {
    response_format: { type: 'json_schema', json_schema: outputSchema },
  }),
  chat('a JSON object', {
    messages: [{ role: 'user', content: 'Answer in JSON.' }],
    response_format: { type: 'json_object' },
  }),
  chat('an image', shown({ url: `data:image/png;base64,${pixel}`, detail: 'low' }), {
    image: 'base64',
  }),
  chat('an image by its address', shown({ url: address }), { image: 'url' }),
  chat('the developer role', {
    messages: [{ role: 'developer', content: 'Be brief.' }, user],
  }),
  chat('a system message later', {
    messages: [
      { role: 'system', content: 'Be brief.' },
      user,
      { role: 'assistant', content: 'Noon.' },
      user,
      { role: 'system', content: 'Use UTC.' },
    ],
  }),
  chat('a system message behind the user', {
    messages: [user, { role: 'system', content: 'Use UTC.' }],
  }),
  chat('a developer message later', {
    messages: [user, { role: 'developer', content: 'Use UTC.' }, user],
  }),
  chat('seed, user, n and logprobs', {
    seed: 7,
    user: 'u1',
    n: 1,
    logprobs: true,
    top_logprobs: 2,
  }),
  chat('max_completion_tokens', { max_completion_tokens: 500 }),
  chat('max_tokens', { max_tokens: 500 }),
  chat('reasoning_effort', { reasoning_effort: 'high' }),
  chat('no reasoning', { reasoning_effort: 'none' }),
  chat('thinking', { thinking: { type: 'enabled', budget_tokens: 2000 } }),
  chat('five stop strings', { stop: ['a', 'b', 'c', 'd', 'e'] }),
  chat('one stop string', { stop: 'END' }),
  chat('sampling', { temperature: 0.2, top_p: 0.9 }),
  chat('penalties', { presence_penalty: 0.5, frequency_penalty: 0.5 }),
  chat('prefill', {
    messages: [user, { role: 'assistant', content: 'It is' }],
  }),
  chat('a message of nothing in the history', {
    messages: [user, { role: 'assistant', content: null }, user],
  }),
  chat('cache marks', {
    messages: [
      {
        role: 'system',
        content: [{ type: 'text', text: 'Be brief.', cache_control: ephemeral }],
      },
      { role: 'user', content: 'Hi', cache_control: ephemeral },
    ],
  }),
  chat('metadata', { metadata: { team: 'a' }, store: false }),
  chat('results of tools and then the user', {
    tools: chatTools,
    messages: [
      user,
      { role: 'assistant', content: null, tool_calls: chatCalls },
      ...chatResults,
      user,
    ],
  }),
  chat('a refusal in the history', {
    messages: [user, { role: 'assistant', content: null, refusal: 'No.' }, user],
  }),
  chat('a refusal among the parts of the history', {
    messages: [user, { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }, user],
  }),
  chat('an image in the result of a tool', {
    tools: chatTools,
    messages: [
      user,
      { role: 'assistant', content: null, tool_calls: [chatCalls[0] ?? {}] },
      {
        role: 'tool',
        tool_call_id: ids[0] ?? '',
        content: [
          {
            type: 'image_url',
            image_url: { url: `data:image/png;base64,${pixel}` },
          },
        ],
      },
    ],
  }),
  chat('an id of a call that is long', {
    tools: chatTools,
    messages: [
      user,
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ ...chatCalls[0], id: longId }],
      },
      { role: 'tool', tool_call_id: longId, content: 'noon' },
    ],
  }),
  chat('reasoning that nobody remembers', {
    messages: [
      user,
      {
        role: 'assistant',
        content: 'Noon.',
        reasoning_content: 'Look at the clock.',
        reasoning: 'Look at the clock.',
      },
      user,
    ],
  }),
  chat('thinking among the parts of the history', {
    messages: [
      user,
      {
        role: 'assistant',
        content: [
          {
            type: 'thinking',
            thinking: [{ type: 'text', text: 'Look at the clock.' }],
          },
          { type: 'text', text: 'Noon.' },
        ],
      },
      user,
    ],
  }),
  chat('names of authors', { messages: [{ ...user, name: 'ann' }] }),
  chat('a stream with usage', {
    stream: true,
    stream_options: { include_usage: true },
  }),
  chat('a stream', { stream: true }),
  chat('the deprecated function form', {
    functions: [{ name: 'get_time', parameters: schema }],
    messages: [
      user,
      {
        role: 'assistant',
        content: null,
        function_call: { name: 'get_time', arguments: '{}' },
      },
      { role: 'function', name: 'get_time', content: 'noon' },
    ],
  }),
  messages('plain', { system: 'Be brief.' }),
  messages('tools with parallel calls in the history', {
    tools: messagesTools,
    messages: [
      user,
      { role: 'assistant', content: toolUses },
      {
        role: 'user',
        content: [...toolResults, { type: 'text', text: 'Go on.' }],
      },
    ],
  }),
  messages('a forced tool', {
    tools: messagesTools,
    tool_choice: {
      type: 'tool',
      name: 'get_time',
      disable_parallel_tool_use: true,
    },
  }),
  messages('a JSON schema', {
    output_config: { format: { type: 'json_schema', schema } },
  }),
  messages(
    'an image',
    {
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'image',
              source: { type: 'base64', media_type: 'image/png', data: pixel },
            },
          ],
        },
      ],
    },
    { image: 'base64' },
  ),
  messages('an image in a tool result', {
    tools: messagesTools,
    messages: [
      user,
      { role: 'assistant', content: [toolUses[0] ?? {}] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: toolIds[0] ?? '',
            content: [
              {
                type: 'image',
                source: {
                  type: 'base64',
                  media_type: 'image/png',
                  data: pixel,
                },
              },
            ],
          },
        ],
      },
    ],
  }),
  messages('a system message later', {
    system: 'Be brief.',
    messages: [user, { role: 'system', content: 'Use UTC.' }],
  }),
  messages('thinking', {
    thinking: { type: 'enabled', budget_tokens: 1024 },
    max_tokens: 4000,
  }),
  messages('five stop strings', { stop_sequences: ['a', 'b', 'c', 'd', 'e'] }),
  messages('sampling', { temperature: 0.2, top_k: 5 }),
  messages('prefill', {
    messages: [user, { role: 'assistant', content: 'It is' }],
  }),
  messages('cache marks and metadata', {
    system: [{ type: 'text', text: 'Be brief.', cache_control: ephemeral }],
    metadata: { user_id: 'u1' },
  }),
  messages('a stream', { stream: true }),
];
