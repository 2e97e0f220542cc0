/** Conversations and tools that no provider could take (reliability.md B51–B58). */
import type { JsonObject } from '../../src/json/value.ts';
import type { ClientDialect } from '../support/dialects.ts';
import { field, messagesWith, same, tool, tools, user, without, type BadRow } from './bad-row.ts';

export const conversationRows: readonly BadRow[] = [
  {
    id: 'B51',
    name: 'no messages',
    change: { all: without('messages') },
    status: 400,
    path: { all: 'messages' },
  },
  { id: 'B51', name: 'empty messages', ...field({ chat: 'messages', messages: 'messages' }, []) },
  { id: 'B51', name: 'empty input', mode: 'translate', ...field({ responses: 'input' }, []) },
  {
    id: 'B51',
    name: 'messages is a string',
    ...field({ chat: 'messages', messages: 'messages' }, 'Hello'),
  },
  { id: 'B51', name: 'input is a number', ...field({ responses: 'input' }, 5) },
  {
    id: 'B51',
    name: 'null item',
    change: { all: { messages: [user, null] } },
    status: 400,
    path: { all: 'messages.1' },
  },
  {
    id: 'B52',
    name: 'unknown role',
    change: { all: messagesWith({ role: 'wizard', content: 'x' }) },
    status: 400,
    path: { all: 'messages.0.role' },
  },
  {
    id: 'B52',
    name: 'no role',
    change: { all: messagesWith({ content: 'x' }) },
    status: 400,
    path: { all: 'messages.0' },
  },
  {
    id: 'B52',
    name: 'first turn assistant',
    change: { messages: messagesWith({ role: 'assistant', content: 'x' }, user) },
    status: 400,
    path: { messages: 'messages.0' },
  },
  {
    id: 'B52',
    name: 'system is a number',
    ...field({ messages: 'system', responses: 'instructions' }, 5),
  },
  {
    id: 'B53',
    name: 'content is a number',
    change: { all: messagesWith({ role: 'user', content: 5 }) },
    status: 400,
    path: { all: 'messages.0.content' },
  },
  {
    id: 'B53',
    name: 'no content',
    change: { all: messagesWith({ role: 'user' }) },
    status: 400,
    path: { all: 'messages.0' },
  },
  {
    id: 'B53',
    name: 'nested array',
    change: { all: messagesWith({ role: 'user', content: [[]] }) },
    status: 400,
    path: { all: 'messages.0.content.0' },
  },
  {
    id: 'B53',
    name: 'unknown part type',
    change: {
      all: messagesWith({ role: 'user', content: [{ type: 'hologram', hologram: 'x' }] }),
    },
    mode: 'translate',
    status: 400,
    path: { all: 'messages.0.content.0' },
  },
  {
    id: 'B53',
    name: 'text null',
    change: { all: messagesWith({ role: 'user', content: [{ type: 'text', text: null }] }) },
    status: 400,
    path: { all: 'messages.0.content.0' },
  },
  {
    id: 'B54',
    name: 'result without its call',
    change: {
      chat: messagesWith(user, { role: 'tool', tool_call_id: 'call_none', content: 'x' }),
      messages: messagesWith({
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'call_none', content: 'x' }],
      }),
      responses: messagesWith(user, outputOf('call_none')),
    },
    status: 400,
    path: { chat: 'messages.1', messages: 'messages.0', responses: 'input' },
  },
  {
    id: 'B54',
    name: 'call without its result',
    change: {
      chat: messagesWith(user, assistantCalls('chat', 'a'), user),
      messages: messagesWith(user, assistantCalls('messages', 'a'), user),
      responses: messagesWith(user, callOf('a'), user),
    },
    status: 400,
    path: { all: 'messages' },
  },
  {
    id: 'B54',
    name: 'the same call id twice in one turn',
    change: {
      chat: messagesWith(user, assistantCalls('chat', 'a', 'a'), {
        role: 'tool',
        tool_call_id: 'a',
        content: 'x',
      }),
      messages: messagesWith(user, assistantCalls('messages', 'a', 'a'), {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'a', content: 'x' }],
      }),
      responses: messagesWith(user, callOf('a'), callOf('a'), outputOf('a')),
    },
    status: 400,
    path: { chat: 'messages.1', messages: 'messages.1', responses: 'input' },
  },
];

/** Items that only a Responses request has (R-42, R-46, R-49; wire/responses.md §3.2, §3.3). */
export const itemRows: readonly BadRow[] = [
  item('an item of an unknown type', { type: 'hologram' }, { mode: 'translate', path: '1.type' }),
  item('a type that is no text', { type: 5 }, { path: '1.type' }),
  item('an image without a place', part({ type: 'input_image' }), { path: '1.content.0' }),
  item('text that is a number', part({ type: 'input_text', text: 5 }), {
    path: '1.content.0.text',
  }),
  item('audio', part({ type: 'input_audio', input_audio: {} }), {
    mode: 'translate',
    path: '1.content.0',
  }),
  item('R-46 a file of another account', part({ type: 'input_file', file_id: 'file_1' }), {
    mode: 'translate',
    path: '1.content.0',
  }),
  item(
    'a call whose arguments are an object',
    { type: 'function_call', call_id: 'a', name: 'f', arguments: {} },
    { path: '1.arguments' },
  ),
  item(
    'a call without a name',
    { type: 'function_call', call_id: 'a', arguments: '{}' },
    { path: '1.name' },
  ),
  item(
    'a call without an id',
    { type: 'function_call', name: 'f', arguments: '{}' },
    { path: '1.call_id' },
  ),
  item('a summary that is no list', { type: 'reasoning', summary: 'x' }, { path: '1.summary' }),
  item('a reference without an id', { type: 'item_reference' }, { path: '1.id' }),
  item('R-19 compaction', { type: 'compaction_trigger' }, { mode: 'translate', path: '1.type' }),
  item(
    'an approval',
    { type: 'mcp_approval_response', approve: true, approval_request_id: 'x' },
    { mode: 'translate', path: '1.type' },
  ),
  ...(['file_search', 'mcp', 'computer_use_preview', 'telepathy'] as const).map((type): BadRow => ({
    id: 'R-49',
    name: `the tool ${type}`,
    mode: 'translate',
    status: 400,
    change: { responses: { tools: [tool('responses', 'f'), { type }] } },
    path: { responses: 'tools.1.type' },
  })),
  ...(['web_search', 'image_generation'] as const).map((type): BadRow => ({
    id: 'R-48',
    name: `${type} alone`,
    mode: 'translate',
    status: 400,
    change: { responses: { tools: [{ type }] } },
    path: { responses: 'tools.0.type' },
  })),
  {
    id: 'R-48',
    name: 'a demanded web search',
    mode: 'translate',
    status: 400,
    change: {
      responses: {
        tools: [tool('responses', 'f'), { type: 'web_search' }],
        tool_choice: { type: 'web_search' },
      },
    },
    path: { responses: 'tools.1.type' },
  },
];

/** A conversation that goes on with this item. */
function item(
  name: string,
  value: JsonObject,
  { path, mode }: { readonly path: string; readonly mode?: 'translate' },
): BadRow {
  return {
    id: 'R-42',
    name,
    status: 400,
    ...(mode === undefined ? {} : { mode }),
    change: { responses: messagesWith(user, value) },
    path: { responses: `input.${path}` },
  };
}

function part(value: JsonObject): JsonObject {
  return { role: 'user', content: [value] };
}

function callOf(id: string): JsonObject {
  return { type: 'function_call', call_id: id, name: 'f', arguments: '{}' };
}

function outputOf(id: string): JsonObject {
  return { type: 'function_call_output', call_id: id, output: 'x' };
}

function assistantCalls(dialect: ClientDialect, ...ids: readonly string[]): JsonObject {
  return dialect === 'chat'
    ? {
        role: 'assistant',
        content: null,
        tool_calls: ids.map((id) => ({
          id,
          type: 'function',
          function: { name: 'f', arguments: '{}' },
        })),
      }
    : {
        role: 'assistant',
        content: ids.map((id) => ({ type: 'tool_use', id, name: 'f', input: {} })),
      };
}

export const toolRows: readonly BadRow[] = [
  {
    id: 'B56',
    name: '1,000 tools',
    change: tools((dialect) => Array.from({ length: 1000 }, (_, i) => tool(dialect, `t${i}`))),
    status: 400,
    path: { all: 'tools' },
  },
  {
    id: 'B56',
    name: 'duplicate tool names',
    change: tools((dialect) => [tool(dialect, 'f'), tool(dialect, 'f')]),
    status: 400,
    path: { all: 'tools.1' },
  },
  {
    id: 'B56',
    name: 'a tool name with a space',
    change: tools((dialect) => [tool(dialect, 'my tool')]),
    status: 400,
    path: { all: 'tools.0' },
  },
  {
    id: 'B56',
    name: 'a tool without a name',
    change: {
      chat: { tools: [{ type: 'function', function: {} }] },
      messages: { tools: [{ input_schema: { type: 'object' } }] },
      responses: { tools: [{ type: 'function', parameters: {} }] },
    },
    status: 400,
    path: { all: 'tools.0' },
  },
  { id: 'B56', name: 'tools is an object', ...field(same('tools'), {}) },
  {
    id: 'B56',
    name: 'a schema of depth 200',
    change: tools((dialect) => [tool(dialect, 'f', deepSchema(200))]),
    status: 413,
  },
  {
    id: 'B57',
    name: 'tool_choice names a missing tool',
    change: {
      chat: (body) => ({
        ...body,
        tools: [tool('chat', 'f')],
        tool_choice: { type: 'function', function: { name: 'g' } },
      }),
      messages: (body) => ({
        ...body,
        tools: [tool('messages', 'f')],
        tool_choice: { type: 'tool', name: 'g' },
      }),
    },
    status: 400,
    path: { all: 'tool_choice' },
  },
  {
    id: 'B57',
    name: 'unknown tool_choice',
    change: {
      chat: { tools: [tool('chat', 'f')], tool_choice: 'sometimes' },
      messages: { tools: [tool('messages', 'f')], tool_choice: { type: 'sometimes' } },
    },
    status: 400,
    path: { all: 'tool_choice' },
  },
  {
    id: 'B58',
    name: 'json_schema without a schema',
    change: {
      chat: { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
      messages: { output_config: { format: { type: 'json_schema' } } },
      responses: { text: { format: { type: 'json_schema', name: 'x' } } },
    },
    status: 400,
    path: { chat: 'response_format', messages: 'output_config', responses: 'text.format' },
  },
  {
    id: 'B58',
    name: 'unknown response format',
    change: {
      chat: { response_format: { type: 'haiku' } },
      messages: { output_config: { format: { type: 'haiku' } } },
    },
    status: 400,
    path: { chat: 'response_format', messages: 'output_config' },
  },
];

/** What a Responses upstream may know and another cannot: told where the request is translated. */
export const foreignRows: readonly BadRow[] = [
  {
    id: 'B52',
    name: 'instructions of several messages',
    mode: 'translate',
    ...field({ responses: 'instructions' }, [user]),
  },
  {
    id: 'B57',
    name: 'tool_choice names a missing tool',
    mode: 'translate',
    status: 400,
    change: {
      responses: {
        tools: [tool('responses', 'f')],
        tool_choice: { type: 'function', name: 'g' },
      },
    },
    path: { responses: 'tool_choice' },
  },
  {
    id: 'B57',
    name: 'unknown tool_choice',
    mode: 'translate',
    status: 400,
    change: { responses: { tools: [tool('responses', 'f')], tool_choice: 'sometimes' } },
    path: { responses: 'tool_choice' },
  },
  {
    id: 'B58',
    name: 'unknown format of the text',
    mode: 'translate',
    status: 400,
    change: { responses: { text: { format: { type: 'haiku' } } } },
    path: { responses: 'text.format' },
  },
];

function deepSchema(depth: number): JsonObject {
  let schema: JsonObject = { type: 'string' };
  for (let i = 0; i < depth; i++) schema = { type: 'object', properties: { a: schema } };
  return schema;
}

/** The rows that a well-formed thread of the messages SDK adds. It must be refused, not ignored. */
export const statefulRows: readonly BadRow[] = [
  {
    id: 'clients 2.1',
    name: 'a stateful thread',
    notCounted: true,
    change: { messages: { thread: { type: 'create' } } },
    status: 400,
    message: /thread/,
  },
  stateful('R-35', 'background', true),
  stateful('R-35', 'conversation', 'conv_1'),
  stateful('R-35', 'conversation', { id: 'conv_1' }),
  stateful('R-28', 'previous_response_id', 'resp_unknown'),
  stateful('R-28', 'previous_response_id', 5),
  stateful('R-28', 'previous_response_id', ''),
  stateful('B48', 'store', 'yes'),
  stateful('B48', 'include', 'reasoning.encrypted_content'),
  stateful('B48', 'reasoning', 'high'),
  { ...stateful('B48', 'reasoning', { effort: 5 }), path: { responses: 'reasoning.effort' } },
  { ...stateful('B48', 'text', 'json'), path: { responses: 'text' } },
  stateful('B48', 'parallel_tool_calls', 'no'),
  stateful('B48', 'truncation', 5),
  stateful('B48', 'stream_options', 5),
];

function stateful(id: string, name: string, value: JsonObject[string]): BadRow {
  const row = field({ responses: name }, value);
  return { id, name: `${name} ${JSON.stringify(value)}`, notCounted: true, ...row };
}
