/** Chat requests, one for each field and case of assistant turns and tool results. */
import type {
  ChatCompletionCreateParamsBase,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions/completions';
import type { JsonObject } from '../../src/json/value.ts';
import { legacyFunctions, objectSchema, png, type Sample, type Samples } from './sample.ts';

type Sent = Partial<ChatCompletionCreateParamsBase>;

const user: ChatCompletionMessageParam = { role: 'user', content: 'Hi' };
const mark = { mode: 'explicit', ttl: '30m' } as const;
const marked = { type: 'ephemeral' } as const;

/** The blocks of the only user message. */
function block(...blocks: readonly JsonObject[]): JsonObject {
  return { messages: [{ role: 'user', content: blocks }] };
}

function assistant(
  said: Partial<Extract<ChatCompletionMessageParam, { role: 'assistant' }>>,
  ...blocks: readonly JsonObject[]
): Pick<Sample<Sent>, 'sends' | 'arrives'> {
  return {
    sends: { messages: [user, { role: 'assistant', content: null, ...said }, user] },
    arrives: {
      messages: [{ role: 'user' }, { role: 'assistant', content: blocks }, { role: 'user' }],
    },
  };
}

/** A call with its result, and what arrives of them. */
function call(
  sent: { readonly name: string; readonly arguments: string },
  input: JsonObject,
): Pick<Sample<Sent>, 'sends' | 'arrives'> {
  return {
    sends: {
      messages: [
        user,
        {
          role: 'assistant',
          tool_calls: [{ id: 'call_1', type: 'function', function: sent }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'Sunny.' },
      ],
      tools: [{ type: 'function', function: { name: 'weather', parameters: objectSchema } }],
    },
    arrives: {
      messages: [
        { role: 'user' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'call_1', name: 'weather', input }],
        },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'Sunny.' }],
        },
      ],
    },
  };
}

const callAt = 'messages[assistant].tool_calls[function]';
const turns: Samples<Sent> = {
  'messages[assistant].content[text].text (some text)': {
    ...assistant(
      { content: [{ type: 'text', text: 'Yes.', prompt_cache_breakpoint: mark }] },
      { type: 'text', text: 'Yes.', cache_control: marked },
    ),
    also: ['messages[assistant].content[text].prompt_cache_breakpoint'],
  },
  'messages[assistant].content[text].text (white space only)': assistant(
    {
      content: [
        { type: 'text', text: 'Yes.' },
        { type: 'text', text: '\n' },
      ],
    },
    { text: 'Yes.' },
  ),
  'messages[assistant].content[refusal].refusal': assistant(
    { content: [{ type: 'refusal', refusal: 'No.' }] },
    { type: 'text', text: 'No.' },
  ),
  'messages[assistant].refusal': assistant({ refusal: 'No.' }, { type: 'text', text: 'No.' }),
  'messages[assistant].audio': { sends: assistant({ audio: { id: 'audio-1' } }).sends },
  'messages[assistant].name': {
    sends: assistant({ content: 'Yes.', name: 'Bot' }).sends,
  },
  'messages[assistant].function_call.name': {
    sends: {
      messages: [
        user,
        {
          role: 'assistant',
          content: null,
          function_call: { name: 'weather', arguments: '{"city":"Oslo"}' },
        },
        { role: 'function', name: 'weather', content: 'Sunny.' },
      ],
      functions: [{ name: 'weather' }],
    },
    relayedTo: legacyFunctions,
    arrives: {
      messages: [
        { role: 'user' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', name: 'weather', input: { city: 'Oslo' } }],
        },
        { role: 'user', content: [{ type: 'tool_result', content: 'Sunny.' }] },
      ],
    },
    also: [
      'messages[assistant].function_call.arguments',
      'messages[function].content',
      'messages[function].name',
    ],
  },
  [`${callAt}.id`]: {
    ...call({ name: 'weather', arguments: '{"city":"Oslo"}' }, { city: 'Oslo' }),
    also: [
      `${callAt}.function.name`,
      `${callAt}.function.arguments (a JSON object)`,
      'messages[tool].tool_call_id',
      'messages[tool].content',
    ],
  },
  [`${callAt}.function.arguments (blank)`]: call({ name: 'weather', arguments: '' }, {}),
  [`${callAt}.function.arguments (another JSON value)`]: {
    ...call({ name: 'weather', arguments: '[1]' }, { value: [1] }),
    named: callAt,
  },
  [`${callAt}.function.arguments (no JSON)`]: {
    ...call({ name: 'weather', arguments: '{"city":' }, { _raw: '{"city":' }),
    named: callAt,
  },
  'messages[assistant].tool_calls[custom].id': {
    sends: {
      messages: [
        user,
        {
          role: 'assistant',
          tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'shell', input: 'ls' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'a b' },
      ],
      tools: [{ type: 'custom', custom: { name: 'shell' } }],
    },
    arrives: {
      messages: [
        { role: 'user' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'call_1', name: 'shell', input: { input: 'ls' } }],
        },
        { role: 'user' },
      ],
    },
    also: [
      'messages[assistant].tool_calls[custom].custom.name',
      'messages[assistant].tool_calls[custom].custom.input',
    ],
  },
};

function result(
  content: Extract<ChatCompletionMessageParam, { role: 'tool' }>['content'],
  ...blocks: readonly JsonObject[]
): Pick<Sample<Sent>, 'sends' | 'arrives'> {
  const { sends } = call({ name: 'weather', arguments: '{"city":"Oslo"}' }, {});
  const [first = user, second = user] = sends.messages ?? [];
  return {
    sends: {
      ...sends,
      messages: [first, second, { role: 'tool', tool_call_id: 'call_1', content }],
    },
    arrives: {
      messages: [{ role: 'user' }, { role: 'assistant' }, { role: 'user', content: blocks }],
    },
  };
}

const results: Samples<Sent> = {
  'messages[tool].content.text (some text)': {
    ...result([{ type: 'text', text: 'Sunny.', prompt_cache_breakpoint: mark }], {
      type: 'tool_result',
      content: [{ type: 'text', text: 'Sunny.', cache_control: marked }],
    }),
    also: ['messages[tool].content.prompt_cache_breakpoint'],
  },
  'messages[tool].content.text (white space only)': result(
    [
      { type: 'text', text: ' ' },
      { type: 'text', text: 'Sunny.' },
    ],
    { type: 'tool_result' },
  ),
};

const sealed = {
  type: 'reasoning.text',
  text: 'Hm.',
  signature: 'c2lnbmVk',
  format: 'anthropic-claude-v1',
  index: 0,
};
const extended: Samples<object> = {
  'messages[user].content[text].cache_control': {
    sends: {
      messages: [
        {
          role: 'user',
          content: [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } }],
        },
      ],
    },
    arrives: block({ text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } }),
  },
  'messages[user].cache_control': {
    sends: { messages: [{ role: 'user', content: 'Hi', cache_control: { type: 'ephemeral' } }] },
    arrives: block({ text: 'Hi', cache_control: marked }),
  },
  'messages[tool].cache_control': {
    sends: {
      ...result('Sunny.').sends,
      messages: [
        ...(result('Sunny.').sends.messages ?? []).slice(0, 2),
        {
          role: 'tool',
          tool_call_id: 'call_1',
          content: 'Sunny.',
          cache_control: { type: 'ephemeral' },
        },
      ],
    },
    arrives: {
      messages: [
        { role: 'user' },
        { role: 'assistant' },
        { role: 'user', content: [{ type: 'tool_result', cache_control: marked }] },
      ],
    },
  },
  'tools[function].cache_control': {
    sends: {
      tools: [
        {
          type: 'function',
          function: { name: 'weather', parameters: objectSchema },
          cache_control: { type: 'ephemeral' },
        },
      ],
    },
    arrives: { tools: [{ name: 'weather', cache_control: marked }] },
  },
  'messages[tool].content[image_url]': {
    beyondSchema: true,
    relayed: [
      ...(result('Sunny.').sends.messages ?? []).slice(0, 2),
      {
        role: 'tool',
        tool_call_id: 'call_1',
        content: [{ type: 'text', text: '[image attached below]' }],
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Image from tool result call_1:' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
        ],
      },
    ],
    sends: {
      ...result('Sunny.').sends,
      messages: [
        ...(result('Sunny.').sends.messages ?? []).slice(0, 2),
        {
          role: 'tool',
          tool_call_id: 'call_1',
          content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }],
        },
      ],
    },
    arrives: {
      messages: [
        { role: 'user' },
        { role: 'assistant' },
        {
          role: 'user',
          content: [{ type: 'tool_result', content: [{ type: 'image', source: { data: png } }] }],
        },
      ],
    },
  },
  'messages[assistant].reasoning_content': {
    sends: {
      messages: [user, { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.' }, user],
    },
    arrives: {
      messages: [
        { role: 'user' },
        { role: 'assistant', content: [{ text: 'Yes.' }] },
        { role: 'user' },
      ],
    },
  },
  'messages[assistant].reasoning_details': {
    sends: {
      messages: [user, { role: 'assistant', content: 'Yes.', reasoning_details: [sealed] }, user],
    },
    arrives: {
      messages: [
        { role: 'user' },
        {
          role: 'assistant',
          content: [{ type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmVk' }, { text: 'Yes.' }],
        },
        { role: 'user' },
      ],
    },
  },
  'messages[assistant].thinking_blocks': {
    sends: {
      messages: [
        user,
        {
          role: 'assistant',
          content: 'Yes.',
          thinking_blocks: [{ type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmVk' }],
        },
        user,
      ],
    },
    arrives: {
      messages: [
        { role: 'user' },
        {
          role: 'assistant',
          content: [{ type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmVk' }, { text: 'Yes.' }],
        },
        { role: 'user' },
      ],
    },
  },
};

export const chatTurnSamples: Samples<object> = { ...turns, ...results, ...extended };
