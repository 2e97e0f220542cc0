import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation } from '../../../src/core/conversation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { readCountHead } from '../../../src/dialects/anthropic-messages/request/read.ts';
import { readCountRequest } from '../../../src/dialects/anthropic-messages/request/read.ts';
import { noted, refusalOf } from './answer-context.ts';
import { read, user } from './reading-requests.ts';

describe('system', () => {
  test('A12 a text, or blocks that stay apart with their marks', () => {
    assert.deepEqual(read({ system: 'Be kind.' }).system, [{ type: 'text', text: 'Be kind.' }]);
    const system = [
      { type: 'text', text: 'One.' },
      { type: 'text', text: 'Two.', cache_control: { type: 'ephemeral', ttl: '1h' } },
    ];
    assert.deepEqual(read({ system }).system, [
      { type: 'text', text: 'One.' },
      { type: 'text', text: 'Two.', cacheUntilHere: { ttl: '1h' } },
    ]);
    assert.deepEqual(read({ system: '' }).system, []);
  });

  test('A6 the billing line that changes with each request is omitted', () => {
    const system = [
      { type: 'text', text: 'x-anthropic-billing-header: cc_version=2; cch=abc;' },
      { type: 'text', text: 'You are an agent.' },
    ];
    assert.deepEqual(read({ system }).system, [{ type: 'text', text: 'You are an agent.' }]);
  });

  test('A1 A2 a system message in mid-conversation stays at its place', () => {
    const messages = [user, { role: 'system', content: 'Note.' }, { role: 'user', content: 'Go' }];
    const { system, turns } = read({ system: 'Top.', messages });
    assert.deepEqual(system, [{ type: 'text', text: 'Top.' }]);
    assert.deepEqual(
      turns.map(({ role, parts: [first] }) => [role, first]),
      [
        ['user', { type: 'text', text: 'Hi' }],
        ['system', { type: 'text', text: 'Note.' }],
        ['user', { type: 'text', text: 'Go' }],
      ],
    );
  });
});

describe('turns', () => {
  const assistant = {
    role: 'assistant',
    content: ['a', 'b'].map((id) => ({ type: 'tool_use', id, name: 'f', input: {} })),
  };
  const result = (id: string): JsonObject => ({ type: 'tool_result', tool_use_id: id });
  const text = (words: string): JsonObject => ({ type: 'text', text: words });

  function shapes(messages: readonly JsonObject[]): readonly string[] {
    return read({ messages: [user, assistant, ...messages] }).turns.map(
      ({ role, parts: all }) =>
        `${role}: ${all
          .map((part) =>
            part.type === 'text' ? part.text : 'callId' in part ? part.callId : part.type,
          )
          .join(' ')}`,
    );
  }

  test('B5 results of one turn come together, text behind them', () => {
    assert.deepEqual(
      shapes([
        { role: 'user', content: [result('a'), text('first')] },
        { role: 'user', content: [result('b'), text('second')] },
        { role: 'user', content: 'third' },
      ]),
      ['user: Hi', 'assistant: tool-call tool-call', 'user: a b first second', 'user: third'],
    );
  });

  test('A3 a system message goes behind the results it stood before', () => {
    assert.deepEqual(
      shapes([
        { role: 'system', content: 'Note.' },
        { role: 'user', content: [result('a'), result('b'), text('go')] },
      ]),
      ['user: Hi', 'assistant: tool-call tool-call', 'user: a b', 'system: Note.', 'user: go'],
    );
  });

  test('clients 2.2 a system message behind the results stays last', () => {
    assert.deepEqual(
      shapes([
        { role: 'user', content: [result('a'), result('b')] },
        { role: 'system', content: 'Note.' },
      ]),
      ['user: Hi', 'assistant: tool-call tool-call', 'user: a b', 'system: Note.'],
    );
  });

  test('messages without content leave no turn; unknown members are noted', () => {
    const notes = new NoteList();
    const messages = [user, { role: 'assistant', content: [], output_config: { effort: 'low' } }];
    assert.equal(read({ messages }, notes).turns.length, 1);
    assert.deepEqual(noted(notes), ['messages.1.output_config lost']);
    assert.match(
      refusalOf(() => read({ messages: [{ role: 'user', content: '' }] })),
      /^messages: /,
    );
  });
});

describe('tools', () => {
  test('client tools, their own fields, native tools', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 };
    const tools = [
      { name: 'f', description: 'does', input_schema: schema, strict: true },
      {
        type: 'custom',
        name: 'g',
        input_schema: schema,
        eager_input_streaming: true,
        cache_control: { type: 'ephemeral' },
      },
      search,
    ];
    assert.deepEqual(read({ tools }).tools, [
      { name: 'f', description: 'does', schema, strict: true },
      {
        name: 'g',
        schema,
        cacheUntilHere: {},
        extras: { 'anthropic-messages': { eager_input_streaming: true } },
      },
      {
        name: 'web_search',
        schema: {},
        native: { dialect: 'anthropic-messages', value: search },
      },
    ]);
  });

  test('clients 2.7 deferred tools are offered, their placeholder and the search are not', () => {
    const notes = new NoteList();
    const tools = [
      { name: 'DeferredToolPlaceholder', defer_loading: true },
      { name: 'WebFetch', input_schema: { type: 'object' }, defer_loading: true },
      { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
    ];
    assert.deepEqual(read({ tools }, notes).tools, [
      { name: 'WebFetch', schema: { type: 'object' } },
    ]);
    assert.deepEqual(noted(notes), ['tools changed']);
  });

  test('choices', () => {
    const tools = [{ name: 'f', input_schema: {} }];
    const rows: readonly (readonly [JsonObject, Partial<Conversation>])[] = [
      [{ type: 'auto' }, { toolChoice: { type: 'auto' } }],
      [{ type: 'any' }, { toolChoice: { type: 'required' } }],
      [{ type: 'none' }, { toolChoice: { type: 'none' } }],
      [{ type: 'tool', name: 'f' }, { toolChoice: { type: 'tool', name: 'f' } }],
      [
        { type: 'auto', disable_parallel_tool_use: true },
        { toolChoice: { type: 'auto' }, parallelTools: false },
      ],
      [{ type: 'auto', disable_parallel_tool_use: false }, { toolChoice: { type: 'auto' } }],
    ];
    for (const [choice, expected] of rows) {
      const { toolChoice, parallelTools } = read({ tools, tool_choice: choice });
      assert.deepEqual(
        {
          ...(toolChoice === undefined ? {} : { toolChoice }),
          ...(parallelTools === undefined ? {} : { parallelTools }),
        },
        expected,
      );
    }
  });
});

describe('options', () => {
  test('sampling, stop sequences and the end user', () => {
    const { sampling, endUser } = read({
      temperature: 0,
      top_p: 0.5,
      top_k: 3,
      stop_sequences: ['a', '\n'],
      metadata: { user_id: 'me' },
    });
    assert.deepEqual(sampling, {
      maxOutputTokens: 10,
      temperature: 0,
      topP: 0.5,
      topK: 3,
      stop: ['a', '\n'],
    });
    assert.equal(endUser, 'me');
  });

  const adaptive = { thinking: { type: 'adaptive' } };
  const thinking: readonly (readonly [JsonObject, Conversation['reasoning']])[] = [
    [{}, undefined],
    [{ thinking: { type: 'disabled' } }, { effort: 'none' }],
    [{ thinking: { type: 'enabled', budget_tokens: 2048 } }, { budgetTokens: 2048 }],
    [
      { thinking: { type: 'adaptive', display: 'omitted' }, output_config: { effort: 'xhigh' } },
      { effort: 'xhigh', adaptive: true, hidden: true },
    ],
    [{ output_config: { effort: 'low' } }, { effort: 'low' }],
  ];
  const setting = (effort: string | null): JsonObject => ({
    role: 'system',
    output_config: { effort },
  });
  const told: readonly (readonly [JsonObject, Conversation['reasoning']])[] = [
    [{ messages: [user, setting('low')] }, { effort: 'low' }],
    [{ messages: [user, setting('low'), user, setting('max'), user] }, { effort: 'max' }],
    [{ messages: [user, setting('max'), { ...user, ...setting(null) }] }, { effort: 'max' }],
    [
      { messages: [user, setting('low')], output_config: { effort: 'high' }, ...adaptive },
      { effort: 'low', adaptive: true },
    ],
    [{ messages: [user, { ...user, ...setting('low'), role: 'user' }] }, undefined],
  ];
  for (const [changes, expected] of [...thinking, ...told]) {
    test(`B14 ${JSON.stringify(changes)}`, () => {
      assert.deepEqual(read(changes).reasoning, expected);
    });
  }

  test('B14 A4 what else an instruction sets is noted, and an effort that is not known', () => {
    const notes = new NoteList();
    const config = { effort: 'extreme', shiny: 1, dull: null };
    const earlier = { role: 'system', content: 'x', output_config: { effort: 'low' } };
    const messages = [user, earlier, { role: 'system', content: 'x', output_config: config }];
    assert.deepEqual(read({ messages }, notes).reasoning, { effort: 'low' });
    assert.deepEqual(noted(notes).toSorted(), [
      'messages.2.output_config.effort lost',
      'messages.2.output_config.shiny lost',
    ]);
  });

  test('structured output in both spellings', () => {
    const format = { type: 'json_schema', schema: { type: 'object' } };
    const expected = { type: 'json', schema: { type: 'object' } };
    assert.deepEqual(read({ output_config: { format } }).output, expected);
    assert.deepEqual(read({ output_format: format }).output, expected);
    assert.deepEqual(read({}).output, { type: 'text' });
  });

  test('A4 fields without a canonical slot keep their names', () => {
    const { extras } = read({
      service_tier: 'auto',
      brand_new: 1,
      absent: null,
      output_config: { effort: 'low', task_budget: { type: 'tokens', total: 5 } },
      metadata: { user_id: 'me', team: 'x' },
    });
    assert.deepEqual(extras, {
      'anthropic-messages': {
        service_tier: 'auto',
        brand_new: 1,
        output_config: { task_budget: { type: 'tokens', total: 5 } },
        metadata: { team: 'x' },
      },
    });
  });

  test('B42 §2.1 a cap of 0 is read: the path answers it', () => {
    assert.equal(read({ max_tokens: 0 }).sampling.maxOutputTokens, 0);
  });
});

describe('token counts', () => {
  test('A7 no max_tokens is needed, and what would be refused does not count', () => {
    const notes = new NoteList();
    const body = {
      model: 'm',
      system: 'Be kind.',
      messages: [{ role: 'user', content: [{ type: 'hologram' }, { type: 'text', text: 'Hi' }] }],
      tools: [{ name: 'f', input_schema: {} }],
    };
    const { system, turns, tools, sampling } = readCountRequest(body, notes);
    assert.equal(system.length, 1);
    assert.deepEqual(turns, [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]);
    assert.equal(tools.length, 1);
    assert.deepEqual(sampling, {});
    assert.deepEqual(noted(notes), ['messages.0.content.0.type lost']);
  });

  test('a body that no provider could take is refused', () => {
    const count = (body: JsonObject) => refusalOf(() => readCountHead(body));
    assert.equal(count({ model: 'm' }), 'messages: Field required');
  });
});
