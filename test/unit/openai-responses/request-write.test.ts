/** Chat and messages requests as a Responses server gets them (wire/responses.md §3.10, §3.11). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Conversation } from '../../../src/core/conversation.ts';
import type { Ask, ClientDialect } from '../../../src/core/dialect.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { responsesTraits, type UpstreamTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { openaiResponsesUpstream } from '../../../src/dialects/openai-responses/upstream.ts';
import type { JsonObject } from '../../../src/json/value.ts';

interface Written {
  readonly body: JsonObject;
  readonly notes: readonly string[];
}

const openai: UpstreamTraits = {
  ...responsesTraits,
  systemAnywhere: true,
  systemRole: 'developer',
  efforts: ['none', 'low', 'medium', 'high'],
  endUserField: 'safety_identifier',
  serviceTiers: true,
  customTools: true,
};

function askOf(traits: UpstreamTraits, stream: boolean): Ask {
  return { model: 'gpt-x', stream, traits, newId: (prefix) => `${prefix}1`, provider: 'openai' };
}

function write(conversation: Conversation, traits = openai, notes = new NoteList()): Written {
  const body = openaiResponsesUpstream.writeRequest(conversation, askOf(traits, false), notes);
  return { body, notes: notes.all.map(({ path }) => path) };
}

function written(client: ClientDialect, body: JsonObject, traits = openai): Written {
  const notes = new NoteList();
  return write(client.readRequest(body, notes), traits, notes);
}

const chat = (body: JsonObject, traits?: UpstreamTraits): Written =>
  written(
    openaiChatClient,
    { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...body },
    traits,
  );
const messages = (body: JsonObject, traits?: UpstreamTraits): Written =>
  written(
    anthropicMessagesClient,
    { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], ...body },
    traits,
  );

test('R-62 nothing is kept at the provider, and reasoning is asked for as it can come back', () => {
  const { body } = chat({ reasoning_effort: 'low', stream: true });
  assert.equal(body['store'], false);
  assert.deepEqual(body['include'], ['reasoning.encrypted_content']);
  assert.deepEqual(body['reasoning'], { effort: 'low', summary: 'auto' });
  assert.deepEqual(chat({ reasoning_effort: 'none' }).body['reasoning'], { effort: 'none' });
  const hidden = messages({ thinking: { type: 'adaptive', display: 'omitted' } });
  assert.deepEqual(hidden.body['reasoning'], { effort: 'high' });
});

test('R-62 `strict` is always said, and true only for a schema that can be enforced', () => {
  const tool = (name: string, more: JsonObject): JsonObject => ({
    type: 'function',
    function: { name, parameters: { type: 'object', properties: {} }, ...more },
  });
  const closed = { type: 'object', properties: {}, additionalProperties: false };
  const { body, notes } = chat({
    tools: [
      tool('a', {}),
      tool('b', { strict: true, parameters: closed }),
      tool('c', { strict: true, parameters: { type: 'object', properties: { x: {} } } }),
    ],
    tool_choice: { type: 'function', function: { name: 'b' } },
    parallel_tool_calls: false,
  });
  assert.deepEqual(body['tools'], [
    { type: 'function', name: 'a', parameters: { type: 'object', properties: {} }, strict: false },
    { type: 'function', name: 'b', parameters: closed, strict: true },
    {
      type: 'function',
      name: 'c',
      parameters: { type: 'object', properties: { x: {} } },
      strict: false,
    },
  ]);
  assert.deepEqual(body['tool_choice'], { type: 'function', name: 'b' });
  assert.equal(body['parallel_tool_calls'], false);
  assert.deepEqual(notes, ['tools.2.function.strict']);
});

test('§3.10 a chat history with calls, results and instructions in between', () => {
  const { body, notes } = chat({
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
      {
        role: 'assistant',
        content: 'Looking.',
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'w', arguments: '{"a":1}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'Sun' },
      { role: 'system', content: 'Answer in French.' },
      { role: 'user', content: 'And tomorrow?' },
    ],
  });
  assert.deepEqual(body['input'], [
    {
      type: 'message',
      role: 'developer',
      content: [{ type: 'input_text', text: 'Be brief.' }],
    },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Weather?' }] },
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Looking.', annotations: [] }],
    },
    { type: 'function_call', call_id: 'call_1', name: 'w', arguments: '{"a":1}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'Sun' },
    {
      type: 'message',
      role: 'developer',
      content: [{ type: 'input_text', text: 'Answer in French.' }],
    },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'And tomorrow?' }] },
  ]);
  assert.deepEqual(notes, []);
});

test('§3.10 each member of a chat request: carried, noted or refused', () => {
  const { body, notes } = chat({
    max_completion_tokens: 50,
    stop: ['a'],
    seed: 1,
    frequency_penalty: 1,
    presence_penalty: 0,
    logit_bias: { 5: 1 },
    prediction: { type: 'content', content: 'x' },
    verbosity: 'low',
    metadata: { a: 'b' },
    service_tier: 'flex',
    safety_identifier: 'u',
    store: true,
    temperature: 0.5,
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'n', schema: { type: 'object', properties: {} }, strict: false },
    },
  });
  const { input: _input, ...rest } = body;
  assert.deepEqual(rest, {
    model: 'gpt-x',
    max_output_tokens: 50,
    temperature: 0.5,
    text: {
      format: {
        type: 'json_schema',
        name: 'n',
        schema: { type: 'object', properties: {} },
        strict: false,
      },
      verbosity: 'low',
    },
    safety_identifier: 'u',
    metadata: { a: 'b' },
    service_tier: 'flex',
    store: false,
    include: ['reasoning.encrypted_content'],
  });
  assert.deepEqual(notes.toSorted(), ['frequency_penalty', 'logit_bias', 'seed', 'store']);
  assert.throws(() => chat({ n: 2 }), GatewayError);
  assert.throws(() => chat({ logprobs: true }), GatewayError);
});

test('§3.10 a cap below the least is raised, with a note', () => {
  const { body, notes } = messages({ max_tokens: 5 });
  assert.equal(body['max_output_tokens'], 16);
  assert.deepEqual(notes, ['max_tokens']);
});

test('R-63 results with images, failures, stop sequences and marks of a messages client', () => {
  const image = { type: 'base64', media_type: 'image/png', data: 'aGk=' };
  const { body, notes } = messages(
    {
      system: [{ type: 'text', text: 'Long.', cache_control: { type: 'ephemeral' } }],
      stop_sequences: ['1', '2', '3', '4', '5'],
      metadata: { user_id: 'u'.repeat(70) },
      messages: [
        { role: 'user', content: 'Look' },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 'toolu_1', name: 'see', input: { a: 1 } },
            { type: 'tool_use', id: 'toolu_2', name: 'see', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [
                { type: 'text', text: 'Seen' },
                { type: 'image', source: image },
              ],
              cache_control: { type: 'ephemeral' },
            },
            { type: 'tool_result', tool_use_id: 'toolu_2', content: 'no file', is_error: true },
          ],
        },
      ],
    },
    { ...openai, cacheBreakpoints: true },
  );
  const breakpoint = { prompt_cache_breakpoint: { mode: 'explicit' } };
  assert.deepEqual(body['input'], [
    {
      type: 'message',
      role: 'developer',
      content: [{ type: 'input_text', text: 'Long.', ...breakpoint }],
    },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Look' }] },
    { type: 'function_call', call_id: 'toolu_1', name: 'see', arguments: '{"a":1}' },
    { type: 'function_call', call_id: 'toolu_2', name: 'see', arguments: '{}' },
    {
      type: 'function_call_output',
      call_id: 'toolu_1',
      output: [
        { type: 'input_text', text: 'Seen' },
        {
          type: 'input_image',
          image_url: 'data:image/png;base64,aGk=',
          detail: 'auto',
          ...breakpoint,
        },
      ],
    },
    { type: 'function_call_output', call_id: 'toolu_2', output: 'Error: no file' },
  ]);
  assert.equal(body['stop'], undefined);
  assert.match(String(body['safety_identifier']), /^[0-9a-f]{64}$/);
  assert.deepEqual(notes, []);
});

test('§8.4 reasoning goes back before what it led to, and to its own provider only', () => {
  const reasoning = (
    provider: string,
    signature: string,
  ): Conversation['turns'][number]['parts'][number] => ({
    type: 'reasoning',
    text: 'Thought',
    signature,
    origin: { provider, dialect: 'openai-responses' },
    extras: { 'openai-responses': { id: 'rs_1' } },
  });
  const call = { type: 'tool-call', id: 'c', name: 'f', argumentsJson: '' } as const;
  const conversation: Conversation = {
    system: [],
    turns: [
      { role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
      {
        role: 'assistant',
        parts: [reasoning('openai', 'mine'), call, reasoning('openai', 'last')],
      },
      { role: 'user', parts: [{ type: 'tool-result', callId: 'c', parts: [], failed: false }] },
      { role: 'assistant', parts: [reasoning('azure', 'foreign'), { type: 'text', text: 'Done' }] },
      { role: 'user', parts: [{ type: 'text', text: 'Thanks' }] },
    ],
    tools: [],
    sampling: {},
    output: { type: 'text' },
    extras: {},
  };
  const { body, notes } = write(conversation);
  assert.deepEqual(body['input'], [
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'Thought' }],
      encrypted_content: 'mine',
    },
    { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c', output: '' },
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Done', annotations: [] }],
    },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Thanks' }] },
  ]);
  assert.deepEqual(notes, ['messages.3.content.0']);
  const without = write(conversation, { ...openai, historyReasoning: false });
  assert.doesNotMatch(JSON.stringify(without.body), /"reasoning"/);
});

test('R-71 a free text is a custom call where the server knows them, else a function', () => {
  const request = {
    tools: [{ type: 'custom', custom: { name: 'sql' } }],
    messages: [
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'sql', input: 'SELECT 1' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: '1' },
    ],
  };
  const { body } = chat(request);
  assert.deepEqual(body['tools'], [{ type: 'custom', name: 'sql' }]);
  assert.deepEqual((body['input'] as JsonObject[]).slice(1), [
    { type: 'custom_tool_call', call_id: 'c1', name: 'sql', input: 'SELECT 1' },
    { type: 'custom_tool_call_output', call_id: 'c1', output: '1' },
  ]);
  const { customTools: _custom, ...plain } = openai;
  const other = chat(request, plain).body;
  assert.equal((other['tools'] as JsonObject[])[0]?.['type'], 'function');
  assert.deepEqual((other['input'] as JsonObject[])[1], {
    type: 'function_call',
    call_id: 'c1',
    name: 'sql',
    arguments: '{"input":"SELECT 1"}',
  });
});

test('§3.5 a search of the provider: sent where the operator allows it, else omitted or refused', () => {
  const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 2 };
  const tool = { name: 'f', input_schema: { type: 'object', properties: {} } };
  const allowed = messages({ tools: [search] }, { ...openai, serverTools: true });
  assert.deepEqual(allowed.body['tools'], [{ type: 'web_search' }]);
  assert.deepEqual(allowed.notes, ['tools.0.max_uses']);
  assert.deepEqual(messages({ tools: [search, tool] }).notes, ['tools.0.type']);
  assert.throws(() => messages({ tools: [search] }), GatewayError);
});

test('G2 the same conversation gives the same bytes', () => {
  const request = { tools: [{ name: 'f', input_schema: { type: 'object' } }], system: 'S' };
  assert.equal(JSON.stringify(messages(request).body), JSON.stringify(messages(request).body));
});
