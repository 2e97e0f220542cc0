import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { answered, eventsOf, refusedAt, streamed, translate } from './translating.ts';

const user = { role: 'user', content: 'hi' };
const search: JsonObject = { type: 'web_search_20250305', name: 'web_search' };
const client: JsonObject = { name: 'f', input_schema: { type: 'object', properties: {} } };
const forced = { type: 'tool', name: 'web_search' };
const ask = (more: JsonObject): JsonObject => ({ messages: [user], ...more });
const place = { city: 'Bern', country: 'CH' };

describe('A10 web search of messages clients', () => {
  test('A10 alone, or demanded: refused by its place, never an empty function', () => {
    for (const more of [
      { tools: [search] },
      { tools: [search], tool_choice: forced },
      { tools: [search], tool_choice: { type: 'any' } },
      { tools: [client, search], tool_choice: forced },
    ]) {
      const path = more.tools.length === 2 ? 'tools.1.type' : 'tools.0.type';
      assert.equal(refusedAt('messages', ask(more)), path);
      // The operator's word does not give a search to a model that has none.
      assert.equal(refusedAt('messages', ask(more), { serverTools: true }), path);
      // A model that has one does not use it without the operator's word.
      assert.equal(refusedAt('messages', ask(more), { webSearch: 'options' }), path);
    }
  });

  test('A10 beside other tools it is omitted, and that is said', () => {
    const { body, notes } = translate('messages', ask({ tools: [client, search] }));
    assert.equal(JSON.stringify(body).includes('web_search'), false);
    assert.deepEqual(notes, ['lost tools.1.type']);
  });

  const rows: readonly (readonly [
    what: string,
    webSearch: 'options' | 'plugin',
    tool: JsonObject,
    members: JsonObject,
    notes: readonly string[],
  ])[] = [
    [
      'options of the search models',
      'options',
      { ...search, user_location: { type: 'approximate', ...place } },
      { web_search_options: { user_location: { type: 'approximate', approximate: place } } },
      ['changed tools.0.type'],
    ],
    [
      'options without a place',
      'options',
      search,
      { web_search_options: {} },
      ['changed tools.0.type'],
    ],
    [
      'a plugin, with what it cannot be told',
      'plugin',
      { ...search, max_uses: 3, allowed_domains: ['x.example'], user_location: place },
      { plugins: [{ id: 'web' }] },
      [
        'lost tools.0.max_uses',
        'lost tools.0.allowed_domains',
        'lost tools.0.user_location',
        'changed tools.0.type',
      ],
    ],
  ];
  for (const [what, webSearch, tool, members, notes] of rows) {
    test(`A10 server_tools: ${what}`, () => {
      const traits = { serverTools: true, webSearch };
      const written = translate('messages', ask({ tools: [tool], tool_choice: forced }), traits);
      const { model: _model, messages: _messages, max_tokens: _cap, ...rest } = written.body;
      assert.deepEqual(rest, members, 'neither tools nor tool_choice');
      assert.deepEqual(written.notes, notes);
    });
  }
});

describe('A10 web_search_options of chat clients', () => {
  const options = {
    search_context_size: 'high',
    user_location: { type: 'approximate', approximate: place },
  };

  test('A10 refused unless the operator lets it', () => {
    assert.equal(refusedAt('chat', ask({ web_search_options: {} })), 'web_search_options');
    const traits = { serverTools: true, webSearch: 'options' } as const;
    assert.equal(refusedAt('chat', ask({ web_search_options: {} }), traits), 'web_search_options');
  });

  test('A10 server_tools: the tool of the messages API', () => {
    const { body, notes } = translate('chat', ask({ web_search_options: options }), {
      serverTools: true,
    });
    assert.deepEqual(body['tools'], [
      {
        type: 'web_search_20250305',
        name: 'web_search',
        user_location: { type: 'approximate', ...place },
      },
    ]);
    assert.equal('tool_choice' in body, false);
    assert.deepEqual(notes, ['lost web_search_options.search_context_size']);
  });

  test('A10 citations come back as annotations, the calls of server tools do not come back', () => {
    const translated = translate('chat', ask({ web_search_options: {} }), { serverTools: true });
    const citation = {
      type: 'web_search_result_location',
      url: 'https://x.example',
      title: 'X',
      cited_text: 'c',
      encrypted_index: 'e',
    };
    const asked = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } };
    const found = { type: 'web_search_tool_result', tool_use_id: 's', content: [] };
    const document = answered('chat', translated, {
      id: 'm',
      content: [asked, found, { type: 'text', text: 'It is so.', citations: [citation] }],
      stop_reason: 'end_turn',
    });
    const choices = document['choices'];
    assert.ok(Array.isArray(choices));
    assert.equal(choices[0].finish_reason, 'stop');
    assert.deepEqual(choices[0].message, {
      role: 'assistant',
      content: 'It is so.',
      refusal: null,
      annotations: [
        {
          type: 'url_citation',
          url_citation: { start_index: 0, end_index: 9, url: 'https://x.example', title: 'X' },
        },
      ],
    });
    const start = (index: number, block: JsonObject): JsonObject => ({
      type: 'content_block_start',
      index,
      content_block: block,
    });
    const delta = (index: number, value: JsonObject): JsonObject => ({
      type: 'content_block_delta',
      index,
      delta: value,
    });
    const stop = (index: number): JsonObject => ({ type: 'content_block_stop', index });
    const stream = streamed('chat', translated, [
      { type: 'message_start', message: { id: 'm', model: 'x', usage: {} } },
      start(0, { ...asked, input: {} }),
      delta(0, { type: 'input_json_delta', partial_json: '{"query":"q"}' }),
      stop(0),
      start(1, found),
      stop(1),
      start(2, { type: 'text', text: '' }),
      delta(2, { type: 'citations_delta', citation }),
      delta(2, { type: 'text_delta', text: 'It is so.' }),
      stop(2),
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]);
    assert.ok(!stream.includes('tool_calls') && !stream.includes('query'));
    assert.match(stream, /"annotations":\[\{"index":0,"type":"url_citation"/);
    assert.match(stream, /"finish_reason":"stop"/);
  });
});

describe('§3.5 what server tools did in earlier turns', () => {
  const asked = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'tea' } };
  const found = {
    type: 'web_search_tool_result',
    tool_use_id: 's',
    content: [
      { type: 'web_search_result', title: 'Tea', url: 'https://t.example', encrypted_content: 'e' },
    ],
  };
  const history = (...blocks: readonly JsonObject[]): JsonObject => ({
    messages: [user, { role: 'assistant', content: blocks }, user],
  });

  test('is reported as text at its place', () => {
    const { body, notes } = translate(
      'messages',
      history({ type: 'text', text: 'Let me see. ' }, asked, found, { type: 'text', text: ' So.' }),
    );
    const messages = body['messages'];
    assert.ok(Array.isArray(messages));
    assert.equal(
      messages[1].content,
      'Let me see. \n\n[web_search "tea" → 1 result: Tea https://t.example]\n\n So.',
    );
    assert.deepEqual(notes, ['changed messages.1.content.2']);
  });

  test('a call without its result is noted', () => {
    const { notes } = translate('messages', history({ type: 'text', text: 'Hm.' }, asked));
    assert.deepEqual(notes, ['lost messages.1.content.1']);
  });

  test('a search for tools is reported as well', () => {
    const { body } = translate(
      'messages',
      history(
        { ...asked, name: 'tool_search_tool_regex', input: { pattern: 'x' } },
        {
          type: 'tool_search_tool_result',
          tool_use_id: 's',
          content: {
            type: 'tool_search_tool_search_result',
            tool_references: [{ type: 'tool_reference', tool_name: 'WebFetch' }],
          },
        },
      ),
    );
    assert.match(JSON.stringify(body), /WebFetch/);
  });
});

describe('§1.7 the answer of the forced json tool', () => {
  const schema = { type: 'object', properties: { a: { type: 'integer' } } };
  const asChat = ask({
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema } },
  });
  const asMessages = ask({ output_config: { format: { type: 'json_schema', schema } } });
  const none = { responseFormat: 'none' } as const;

  test('is the content of a chat document and stream, finish stop', () => {
    const translated = translate('chat', asChat, none);
    const document = answered('chat', translated, {
      id: 'm',
      content: [{ type: 'tool_use', id: 't', name: 'json', input: { a: 1 } }],
      stop_reason: 'tool_use',
    });
    assert.deepEqual(document['choices'], [
      {
        index: 0,
        message: { role: 'assistant', content: '{"a":1}', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ]);
    const stream = streamed('chat', translated, [
      { type: 'message_start', message: { id: 'm', model: 'x', usage: {} } },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'tool_use', id: 't', name: 'json', input: {} },
      },
      ...['{"a"', ':1}'].map((partial) => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json: partial },
      })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]);
    assert.match(stream, /"content":"\{\\"a\\""/);
    assert.ok(!stream.includes('tool_calls'));
    assert.match(stream, /"finish_reason":"stop"/);
  });

  test('is the text of a message document and stream, end_turn', () => {
    const translated = translate('messages', asMessages, none);
    const call = { id: 'c', type: 'function', function: { name: 'json', arguments: '{"a":1}' } };
    const document = answered('messages', translated, {
      id: 'c',
      choices: [{ index: 0, message: { tool_calls: [call] }, finish_reason: 'tool_calls' }],
    });
    assert.deepEqual(document['content'], [{ type: 'text', text: '{"a":1}' }]);
    assert.equal(document['stop_reason'], 'end_turn');
    const stream = streamed('messages', translated, [
      {
        id: 'c',
        choices: [
          { index: 0, delta: { tool_calls: [{ index: 0, ...call }] }, finish_reason: 'tool_calls' },
        ],
      },
    ]);
    const deltas = eventsOf(stream).filter(({ type }) => type === 'content_block_delta');
    assert.deepEqual(
      deltas.map(({ delta }) => delta),
      [{ type: 'text_delta', text: '{"a":1}' }],
    );
    assert.match(stream, /"stop_reason":"end_turn"/);
  });

  test('a tool of the client called json stays a call', () => {
    const tools = [{ name: 'json', input_schema: schema }];
    const translated = translate('messages', ask({ tools }));
    const call = { id: 'c', type: 'function', function: { name: 'json', arguments: '{}' } };
    const document = answered('messages', translated, {
      id: 'c',
      choices: [{ index: 0, message: { tool_calls: [call] }, finish_reason: 'tool_calls' }],
    });
    assert.equal(document['stop_reason'], 'tool_use');
  });
});

describe('D10 blocks that are told in words stand apart from the text beside them', () => {
  const found = {
    type: 'web_search_tool_result',
    tool_use_id: 's',
    content: [{ type: 'web_search_result', title: 'T', url: 'u' }],
  };
  const asked = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } };
  const text = (value: string): JsonObject => ({ type: 'text', text: value });
  const told = '[web_search "q" \u2192 1 result: T u]';
  const rows: readonly (readonly [string, readonly JsonObject[], string])[] = [
    ['pieces of one text are joined as ever', [text('an'), text('swer')], 'answer'],
    ['a compaction', [{ type: 'compaction', content: 'summary' }, text('ans')], 'summary\n\nans'],
    [
      'what a server tool found',
      [text('Let me look.'), asked, found, text('It '), text('is.')],
      `Let me look.\n\n${told}\n\nIt is.`,
    ],
    ['two findings', [asked, found, asked, found], `${told}\n\n${told}`],
    [
      'a change of the tools',
      [text('ans'), { type: 'tool_removal', tool: { name: 'f' } }],
      'ans\n\nThe tool "f" is not available any more.',
    ],
    ['nothing but a compaction', [{ type: 'compaction', content: 'summary' }], 'summary'],
  ];
  for (const [what, content, expected] of rows) {
    for (const long of [false, true]) {
      test(`D10 ${what}${long ? ', long' : ''}`, () => {
        const filler = Array.from({ length: 3000 }, () => text(''));
        const messages = [
          user,
          { role: 'assistant', content: long ? [...content, ...filler] : content },
          user,
        ];
        const { body } = translate('messages', { messages });
        const [, assistant] = body['messages'] as readonly JsonObject[];
        assert.equal(assistant?.['content'], expected);
      });
    }
  }
});
