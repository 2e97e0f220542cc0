import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { originalToolName, sentToolName } from '../../../src/dialects/shared/tool-names.ts';
import { answered, eventsOf, refusedAt, streamed, translate } from './translating.ts';

const user = { role: 'user', content: 'hi' };
const schema = { type: 'object', properties: { a: { type: 'string' } } };
const tool = (name: string, more: JsonObject = {}): JsonObject => ({
  name,
  input_schema: schema,
  ...more,
});
const fn = (name: string, more: JsonObject = {}): JsonObject => ({
  type: 'function',
  function: { name, parameters: schema, ...more },
});
const ask = (more: JsonObject): JsonObject => ({ messages: [user], ...more });
const namesOf = (tools: Json | undefined): readonly Json[] =>
  Array.isArray(tools)
    ? tools.map((each) => (isObject(each['function']) ? each['function']['name'] : each['name']))
    : [];

/** A chat answer with these calls. */
const chatAnswer = (...calls: readonly JsonObject[]): JsonObject => ({
  id: 'c',
  choices: [{ index: 0, message: { role: 'assistant', tool_calls: calls }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 2 },
});
const chatCall = (name: string, args = '{}', id = 'call_0'): JsonObject => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const chatChunk = (delta: JsonObject, finish: string | null = null): JsonObject => ({
  id: 'c',
  choices: [{ index: 0, delta, finish_reason: finish }],
});

describe('B7 names', () => {
  const long = `mcp__server__${'x'.repeat(77)}`;
  const request = ask({ tools: [tool(long)], tool_choice: { type: 'tool', name: long } });

  test('B7 a 90-character name is short upstream and itself in documents and streams', () => {
    assert.equal(long.length, 90);
    const translated = translate('messages', request);
    const [short] = namesOf(translated.body['tools']);
    assert.ok(typeof short === 'string' && short.length <= 64);
    const document = answered('messages', translated, chatAnswer(chatCall(short)));
    assert.match(JSON.stringify(document['content']), new RegExp(`"name":"${long}"`));
    const stream = streamed('messages', translated, [
      chatChunk({ tool_calls: [{ index: 0, ...chatCall(short) }] }, 'tool_calls'),
    ]);
    assert.match(stream, new RegExp(`"name":"${long}"`));
    assert.ok(!stream.includes(short));
  });

  test('B7 a real tool called like the short form stays itself', () => {
    const [short] = namesOf(translate('messages', request).body['tools']);
    assert.ok(typeof short === 'string');
    for (const names of [
      [long, short],
      [short, long],
    ]) {
      const translated = translate('messages', ask({ tools: names.map((name) => tool(name)) }));
      const sent = namesOf(translated.body['tools']);
      assert.equal(new Set(sent).size, 2);
      const back = answered(
        'messages',
        translated,
        chatAnswer(...sent.map((name, i) => chatCall(String(name), '{}', `call_${i}`))),
      );
      assert.deepEqual(namesOf(back['content']), names);
    }
    assert.equal(originalToolName(sentToolName(long, 64, []), [{ name: long }]), long);
  });

  test('B7 the other way: dots, in tools, choice and history alike', () => {
    const translated = translate('chat', {
      messages: [
        user,
        { role: 'assistant', content: null, tool_calls: [chatCall('a.b', '{}', 'x')] },
        { role: 'tool', tool_call_id: 'x', content: 'r' },
      ],
      tools: [fn('a.b')],
      tool_choice: { type: 'function', function: { name: 'a.b' } },
    });
    const [sent] = namesOf(translated.body['tools']);
    assert.match(String(sent), /^[a-zA-Z0-9_-]+$/);
    assert.equal(JSON.stringify(translated.body).split(`"name":"${String(sent)}"`).length, 4);
  });
});

describe('§1.5, §2.2 tools', () => {
  test('§2.2 fields that only the messages API knows are omitted in silence', () => {
    const more = {
      eager_input_streaming: true,
      input_examples: [{ a: 'x' }],
      allowed_callers: ['direct'],
    };
    const { body, notes } = translate('messages', ask({ tools: [tool('f', more)] }));
    assert.deepEqual(body['tools'], [fn('f')]);
    assert.deepEqual(notes, []);
  });

  test('clients.md §2.7 deferred tools are all offered, what stands for them goes', () => {
    const { body, notes } = translate(
      'messages',
      ask({
        tools: [
          tool('WebFetch', { defer_loading: true }),
          { name: 'DeferredToolPlaceholder', defer_loading: true },
          { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
          tool('Bash'),
        ],
      }),
    );
    assert.deepEqual(namesOf(body['tools']), ['WebFetch', 'Bash']);
    assert.deepEqual(notes, ['changed tools']);
  });

  test('clients.md §2.7 a placeholder with a schema is one as well', () => {
    const placeholder = tool('DeferredToolPlaceholder', { defer_loading: true });
    const { body } = translate('messages', ask({ tools: [placeholder, tool('Bash')] }));
    assert.deepEqual(namesOf(body['tools']), ['Bash']);
  });

  test('clients.md §2.7 a reference to a tool is text that names it', () => {
    const { body } = translate('messages', {
      messages: [
        user,
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'S', input: {} }] },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 't',
              content: [{ type: 'tool_reference', tool_name: 'WebFetch' }],
            },
          ],
        },
      ],
      tools: [tool('S'), tool('WebFetch', { defer_loading: true })],
    });
    assert.match(JSON.stringify(body['messages']), /The tool \\"WebFetch\\" is available\./);
    assert.deepEqual(namesOf(body['tools']), ['S', 'WebFetch']);
  });

  test('tools that come and go in mid-conversation: told in place, offered as in the end', () => {
    const change = (type: string, what: JsonObject): JsonObject => ({
      role: 'system',
      content: [{ type, tool: what }],
    });
    const conversation = {
      messages: [
        user,
        change('tool_addition', { type: 'tool_definition', definition: tool('late') }),
        change('tool_removal', { type: 'tool_reference', name: 'old' }),
        { role: 'assistant', content: 'ok' },
        user,
      ],
      tools: [tool('old'), tool('kept')],
    };
    const { body, notes } = translate('messages', conversation, { systemAnywhere: true });
    assert.deepEqual(namesOf(body['tools']), ['kept', 'late']);
    assert.deepEqual(body['messages'], [
      { role: 'user', content: 'hi' },
      { role: 'system', content: 'The tool "late" is available from here on.' },
      { role: 'system', content: 'The tool "old" is not available any more.' },
      { role: 'assistant', content: 'ok' },
      { role: 'user', content: 'hi' },
    ]);
    assert.deepEqual(notes, ['changed messages.1.content.0', 'changed messages.2.content.0']);
  });

  test('B8 the schemas of a server with rules: noted once a tool, annotations in silence', () => {
    const own = { type: 'object', properties: { $id: { type: 'string' } } };
    const tools = [
      { name: 'a', input_schema: { $schema: 'x', ...own, patternProperties: { x: {} } } },
      { name: 'b', input_schema: { $schema: 'x', ...own } },
    ];
    const { body, notes } = translate('messages', ask({ tools }), { schemaRules: 'openapi' });
    assert.deepEqual(notes, ['changed tools.0.input_schema']);
    assert.ok(!JSON.stringify(body).includes('$schema'));
    assert.match(JSON.stringify(body), /"properties":\{"\$id"/);
    const untouched = translate('messages', ask({ tools }));
    assert.match(JSON.stringify(untouched.body), /"\$schema":"x".*"patternProperties"/);
    assert.deepEqual(untouched.notes, []);
  });

  test('§1.5 every key of parameters arrives, a missing type is added', () => {
    const parameters = {
      properties: { a: { $ref: '#/$defs/A' } },
      $defs: { A: { anyOf: [{ const: 1 }] } },
      additionalProperties: false,
    };
    const { body } = translate('chat', ask({ tools: [fn('f', { parameters })] }));
    assert.deepEqual(body['tools'], [
      { name: 'f', input_schema: { ...parameters, type: 'object' } },
    ]);
    const bare = translate('chat', ask({ tools: [{ type: 'function', function: { name: 'f' } }] }));
    assert.deepEqual(bare.body['tools'], [
      { name: 'f', input_schema: { type: 'object', properties: {} } },
    ]);
  });

  for (const [type, path] of [
    ['computer_20250124', 'tools.0.type'],
    ['browser_toolset_20260801', 'tools.0.type'],
    ['web_fetch_20250910', 'tools.0.type'],
    ['code_execution_20250825', 'tools.0.type'],
    ['advisor_20260301', 'tools.0.type'],
    ['mcp_toolset', 'tools.0.type'],
    ['web_search_20250305', 'tools.0.type'],
  ] as const) {
    test(`§2.2 REJECT ${type}, by its place`, () => {
      assert.equal(refusedAt('messages', ask({ tools: [{ type, name: 'x' }] })), path);
    });
  }

  for (const type of ['bash_20250124', 'text_editor_20250728', 'memory_20250818']) {
    test(`§2.2 ${type} is a function with its published schema`, () => {
      const { body, notes } = translate('messages', ask({ tools: [{ type, name: 'x' }] }));
      assert.match(
        JSON.stringify(body['tools']),
        /"parameters":\{"type":"object","properties":\{"c/,
      );
      assert.deepEqual(notes, ['changed tools.0.type']);
    });
  }

  const editors: readonly (readonly [type: string, commands: string, inserted: string])[] = [
    ['text_editor_20241022', 'view create str_replace insert undo_edit', 'new_str'],
    ['text_editor_20250124', 'view create str_replace insert undo_edit', 'new_str'],
    ['text_editor_20250429', 'view create str_replace insert', 'insert_text'],
    ['text_editor_20250728', 'view create str_replace insert', 'insert_text'],
    ['text_editor_20991231', 'view create str_replace insert', 'insert_text'],
    ['memory_20250818', 'view create str_replace insert delete rename', 'insert_text'],
  ];
  for (const [type, commands, inserted] of editors) {
    test(`D8 ${type} has the commands and members of its version`, () => {
      const { body } = translate('messages', ask({ tools: [{ type, name: 'x' }] }));
      const [tool] = body['tools'] as readonly JsonObject[];
      const { parameters } = (tool?.['function'] ?? {}) as { parameters?: JsonObject };
      const properties = (parameters?.['properties'] ?? {}) as { [name: string]: JsonObject };
      assert.deepEqual(properties['command']?.['enum'], commands.split(' '));
      assert.equal('insert_text' in properties, inserted === 'insert_text');
      const takesInserted = String(properties[inserted]?.['description'] ?? '').endsWith('insert.');
      assert.ok(type.startsWith('memory') || takesInserted, `insert takes ${inserted}`);
    });
  }

  test('§1.5 a history with calls and no tools: only where the server insists', () => {
    const messages = [
      user,
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'r' }] },
    ];
    assert.equal('tools' in translate('messages', { messages }).body, false);
    const { body, notes } = translate('messages', { messages }, { historyNeedsTools: true });
    const parameters = { type: 'object', properties: {} };
    assert.deepEqual(body['tools'], [{ type: 'function', function: { name: 'f', parameters } }]);
    // The place of the first call: a note names what was sent (D11).
    assert.deepEqual(notes, ['changed messages.1.content.0']);
    const chat = {
      messages: [
        user,
        { role: 'assistant', tool_calls: [chatCall('f', '{}', 't')] },
        { role: 'tool', tool_call_id: 't', content: 'r' },
      ],
    };
    assert.deepEqual(translate('chat', chat, { historyNeedsTools: true }).body['tools'], [
      { name: 'f', input_schema: parameters },
    ]);
  });

  test('duplicate names are refused on both endpoints', () => {
    assert.equal(refusedAt('messages', ask({ tools: [tool('f'), tool('f')] })), 'tools.1.name');
    assert.equal(refusedAt('chat', ask({ tools: [fn('f'), fn('f')] })), 'tools.1.function.name');
    assert.equal(
      refusedAt('chat', ask({ tools: [fn('f')], functions: [{ name: 'f' }] })),
      'functions.0.name',
    );
  });
});

describe('§1.5 custom and deprecated tools', () => {
  const custom = { type: 'custom', custom: { name: 'sh', description: 'Runs.' } };
  const history = [
    user,
    {
      role: 'assistant',
      tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'sh', input: 'ls "x"\n' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: 'r' },
  ];

  test('a custom tool and its calls go there and back', () => {
    const translated = translate('chat', { messages: history, tools: [custom] });
    assert.match(
      JSON.stringify(translated.body['messages']),
      /"input":\{"input":"ls \\"x\\"\\n"\}/,
    );
    const input = { input: 'echo 1 > "a"\n' };
    const document = answered('chat', translated, {
      id: 'm',
      content: [{ type: 'tool_use', id: 't', name: 'sh', input }],
      stop_reason: 'tool_use',
    });
    assert.match(
      JSON.stringify(document),
      /"custom":\{"name":"sh","input":"echo 1 > \\"a\\"\\n"\}/,
    );
    const json = JSON.stringify(input);
    const stream = streamed('chat', translated, [
      { type: 'message_start', message: { id: 'm', model: 'x', usage: {} } },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'tool_use', id: 't', name: 'sh', input: {} },
      },
      ...[json.slice(0, 7), json.slice(7)].map((partial) => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json: partial },
      })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]);
    assert.match(stream, /"custom":\{"input":"echo 1 > \\"a\\"\\n"\}/);
    assert.match(stream, /"finish_reason":"tool_calls"/);
  });

  test('a grammar is refused', () => {
    const format = { type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } };
    const tools = [{ type: 'custom', custom: { name: 'c', format } }];
    assert.equal(refusedAt('chat', ask({ tools })), 'tools.0.custom.format');
  });

  test('functions are answered as function_call, in documents and streams', () => {
    const translated = translate('chat', {
      messages: [
        user,
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":"1"}' } },
        { role: 'function', name: 'f', content: 'r' },
      ],
      functions: [{ name: 'f', parameters: schema }],
      function_call: { name: 'f' },
    });
    assert.deepEqual(translated.body['tool_choice'], { type: 'tool', name: 'f' });
    const call = { type: 'tool_use', id: 't', name: 'f', input: { a: '2' } };
    const document = answered('chat', translated, {
      id: 'm',
      content: [call],
      stop_reason: 'tool_use',
    });
    assert.match(
      JSON.stringify(document),
      /"function_call":\{"name":"f","arguments":"\{\\"a\\":\\"2\\"\}"\}.*"finish_reason":"function_call"/,
    );
  });

  test('§1.6 allowed_tools offers those only, and says so', () => {
    const allowed = { mode: 'required', tools: [{ type: 'function', function: { name: 'b' } }] };
    const { body, notes } = translate(
      'chat',
      ask({
        tools: [fn('a'), fn('b')],
        tool_choice: { type: 'allowed_tools', allowed_tools: allowed },
      }),
    );
    assert.deepEqual(namesOf(body['tools']), ['b']);
    assert.deepEqual(body['tool_choice'], { type: 'any' });
    assert.deepEqual(notes, ['changed tool_choice']);
  });
});

describe('§1.6, §2.1 one call at most', () => {
  const request = ask({
    tools: [tool('f')],
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  });
  const two = [chatCall('f', '{"a":"1"}', 'x'), chatCall('f', '{"a":"2"}', 'y')];

  test('where the server has no such field, the first call is kept, and that is said', () => {
    const translated = translate('messages', request, { parallelFlag: false });
    assert.deepEqual(translated.notes, ['changed tool_choice.disable_parallel_tool_use']);
    const document = answered('messages', translated, chatAnswer(...two));
    assert.deepEqual(document['content'], [
      { type: 'tool_use', id: 'x', name: 'f', input: { a: '1' }, caller: { type: 'direct' } },
    ]);
    assert.equal(document['stop_reason'], 'tool_use');
    const stream = streamed('messages', translated, [
      chatChunk({ tool_calls: two.map((each, index) => ({ index, ...each })) }, 'tool_calls'),
    ]);
    const starts = eventsOf(stream).filter(({ type }) => type === 'content_block_start');
    assert.equal(starts.length, 1);
    assert.ok(!stream.includes('\\"2\\"'));
  });

  test('without the wish, all calls stay', () => {
    const translated = translate('messages', ask({ tools: [tool('f')] }));
    const document = answered('messages', translated, chatAnswer(...two));
    assert.equal(namesOf(document['content']).length, 2);
  });
});
