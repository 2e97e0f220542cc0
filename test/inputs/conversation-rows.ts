/** Conversations and tools that no provider could take (reliability.md B51–B58). */
import type { JsonObject } from '../../src/json/value.ts';
import type { Dialect } from '../support/reading.ts';
import { field, messagesWith, same, tool, tools, user, without, type BadRow } from './bad-row.ts';

export const conversationRows: readonly BadRow[] = [
  {
    id: 'B51',
    name: 'no messages',
    change: { both: without('messages') },
    status: 400,
    path: { both: 'messages' },
  },
  { id: 'B51', name: 'empty messages', ...field(same('messages'), []) },
  { id: 'B51', name: 'messages is a string', ...field(same('messages'), 'Hello') },
  {
    id: 'B51',
    name: 'null item',
    change: { both: { messages: [user, null] } },
    status: 400,
    path: { both: 'messages.1' },
  },
  {
    id: 'B52',
    name: 'unknown role',
    change: { both: messagesWith({ role: 'wizard', content: 'x' }) },
    status: 400,
    path: { both: 'messages.0.role' },
  },
  {
    id: 'B52',
    name: 'no role',
    change: { both: messagesWith({ content: 'x' }) },
    status: 400,
    path: { both: 'messages.0' },
  },
  {
    id: 'B52',
    name: 'first turn assistant',
    only: 'messages',
    change: { messages: messagesWith({ role: 'assistant', content: 'x' }, user) },
    status: 400,
    path: { messages: 'messages.0' },
  },
  { id: 'B52', name: 'system is a number', ...field({ messages: 'system' }, 5) },
  {
    id: 'B53',
    name: 'content is a number',
    change: { both: messagesWith({ role: 'user', content: 5 }) },
    status: 400,
    path: { both: 'messages.0.content' },
  },
  {
    id: 'B53',
    name: 'no content',
    change: { both: messagesWith({ role: 'user' }) },
    status: 400,
    path: { both: 'messages.0' },
  },
  {
    id: 'B53',
    name: 'nested array',
    change: { both: messagesWith({ role: 'user', content: [[]] }) },
    status: 400,
    path: { both: 'messages.0.content.0' },
  },
  {
    id: 'B53',
    name: 'unknown part type',
    change: {
      both: messagesWith({ role: 'user', content: [{ type: 'hologram', hologram: 'x' }] }),
    },
    mode: 'translate',
    status: 400,
    path: { both: 'messages.0.content.0' },
  },
  {
    id: 'B53',
    name: 'text null',
    change: { both: messagesWith({ role: 'user', content: [{ type: 'text', text: null }] }) },
    status: 400,
    path: { both: 'messages.0.content.0' },
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
    },
    status: 400,
    path: { chat: 'messages.1', messages: 'messages.0' },
  },
  {
    id: 'B54',
    name: 'call without its result',
    change: {
      chat: messagesWith(user, assistantCalls('chat', 'a'), user),
      messages: messagesWith(user, assistantCalls('messages', 'a'), user),
    },
    status: 400,
    path: { both: 'messages' },
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
    },
    status: 400,
    path: { both: 'messages.1' },
  },
];

function assistantCalls(dialect: Dialect, ...ids: readonly string[]): JsonObject {
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
    path: { both: 'tools' },
  },
  {
    id: 'B56',
    name: 'duplicate tool names',
    change: tools((dialect) => [tool(dialect, 'f'), tool(dialect, 'f')]),
    status: 400,
    path: { both: 'tools.1' },
  },
  {
    id: 'B56',
    name: 'a tool name with a space',
    change: tools((dialect) => [tool(dialect, 'my tool')]),
    status: 400,
    path: { both: 'tools.0' },
  },
  {
    id: 'B56',
    name: 'a tool without a name',
    change: {
      chat: { tools: [{ type: 'function', function: {} }] },
      messages: { tools: [{ input_schema: { type: 'object' } }] },
    },
    status: 400,
    path: { both: 'tools.0' },
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
    path: { both: 'tool_choice' },
  },
  {
    id: 'B57',
    name: 'unknown tool_choice',
    change: {
      chat: { tools: [tool('chat', 'f')], tool_choice: 'sometimes' },
      messages: { tools: [tool('messages', 'f')], tool_choice: { type: 'sometimes' } },
    },
    status: 400,
    path: { both: 'tool_choice' },
  },
  {
    id: 'B58',
    name: 'json_schema without a schema',
    change: {
      chat: { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
      messages: { output_config: { format: { type: 'json_schema' } } },
    },
    status: 400,
    path: { chat: 'response_format', messages: 'output_config' },
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

function deepSchema(depth: number): JsonObject {
  let schema: JsonObject = { type: 'string' };
  for (let i = 0; i < depth; i++) schema = { type: 'object', properties: { a: schema } };
  return schema;
}

/** The rows that a well-formed thread of the messages SDK adds: it must be told, not ignored. */
export const statefulRows: readonly BadRow[] = [
  {
    id: 'clients 2.1',
    name: 'a stateful thread',
    notCounted: true,
    only: 'messages',
    change: { messages: { thread: { type: 'create' } } },
    status: 400,
    message: /thread/,
  },
];
