import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation } from '../../../src/core/conversation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { spellPath } from '../../../src/dialects/openai-chat/fields.ts';

const user = { role: 'user', content: 'hi' };

function read(more: JsonObject, notes = new NoteList()): Conversation {
  return openaiChatClient.readRequest({ model: 'm', messages: [user], ...more }, notes);
}

function turns(...messages: readonly JsonObject[]) {
  return read({ messages }).turns;
}

function parts(content: unknown, more: JsonObject = {}) {
  const message: JsonObject = { role: 'user', ...more };
  return turns({ ...message, content: Array.isArray(content) ? content : String(content) })[0]
    ?.parts;
}

/** The path of the refusal. */
function refused(more: JsonObject): string {
  try {
    read(more);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    assert.equal(error.code, 'invalid_request');
    return spellPath(error.path ?? []);
  }
  return assert.fail(`should be refused: ${JSON.stringify(more)}`);
}

function call(id: string, name = 'f', args = '{}'): JsonObject {
  return { id, type: 'function', function: { name, arguments: args } };
}

function result(id: string, content = `result ${id}`): JsonObject {
  return { role: 'tool', tool_call_id: id, content };
}

describe('turns', () => {
  test('the leading run is the system prompt, a part per part; later ones stay in place', () => {
    const conversation = read({
      messages: [
        { role: 'system', content: 'one' },
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'two', cache_control: { type: 'ephemeral' } },
            { type: 'text', text: 'three', prompt_cache_breakpoint: { mode: 'explicit' } },
          ],
        },
        user,
        { role: 'system', content: 'late' },
        { role: 'assistant', content: 'ok' },
      ],
    });
    assert.deepEqual(conversation.system, [
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two', cacheUntilHere: {} },
      { type: 'text', text: 'three', cacheUntilHere: {} },
    ]);
    assert.deepEqual(
      conversation.turns.map((turn) => turn.role),
      ['user', 'system', 'assistant'],
    );
  });

  test('neighbours of one role are one turn, unless their names differ', () => {
    const read = turns(
      user,
      { role: 'user', content: 'again' },
      { role: 'user', content: 'other', name: 'eve' },
      { role: 'assistant', content: 'a' },
      { role: 'assistant', content: 'b' },
    );
    assert.deepEqual(
      read.map((turn) => [turn.role, turn.parts.length, turn.name]),
      [
        ['user', 2, undefined],
        ['user', 1, 'eve'],
        ['assistant', 2, undefined],
      ],
    );
  });

  test('B5 results come first in one user turn, in call order, with the text behind', () => {
    const read = turns(
      user,
      { role: 'assistant', content: null, tool_calls: [call('a'), call('b'), call('c')] },
      result('c'),
      result('a'),
      result('b'),
      { role: 'user', content: 'and?' },
    );
    assert.deepEqual(
      read[2]?.parts.map((part) => (part.type === 'tool-result' ? part.callId : part.type)),
      ['a', 'b', 'c', 'text'],
    );
    assert.equal(read.length, 3);
  });

  test('B3 an assistant turn with calls has no empty text', () => {
    for (const content of ['', null, [{ type: 'text', text: '' }]]) {
      const [assistant] = turns(
        { role: 'assistant', content, tool_calls: [call('a')] },
        result('a'),
      );
      assert.deepEqual(assistant?.parts, [
        { type: 'tool-call', id: 'a', name: 'f', argumentsJson: '{}' },
      ]);
    }
  });

  test('B3 a message with nothing in it is omitted and its neighbours are one turn', () => {
    const read = turns(user, { role: 'assistant', content: '' }, { role: 'user', content: 'x' });
    assert.equal(read.length, 1);
    assert.equal(read[0]?.parts.length, 2);
  });

  test('B55 arguments are kept as the model wrote them', () => {
    for (const args of ['', '{"x": tru', '[1]', '{"big":12345678901234567890}']) {
      const [assistant] = turns(
        { role: 'assistant', tool_calls: [call('a', 'f', args)] },
        result('a'),
      );
      assert.equal(
        assistant?.parts[0]?.type === 'tool-call' && assistant.parts[0].argumentsJson,
        args,
      );
    }
  });

  test('custom calls, thought signatures and cache marks of calls and results', () => {
    const extra_content = { google: { thought_signature: 's' } };
    const read = turns(
      {
        role: 'assistant',
        tool_calls: [
          { id: 'a', type: 'custom', custom: { name: 'c', input: 'free "text"' } },
          { ...call('b'), extra_content, cache_control: { type: 'ephemeral' } },
        ],
      },
      { ...result('a'), cache_control: { type: 'ephemeral' } },
      result('b', ''),
    );
    assert.deepEqual(read[0]?.parts, [
      { type: 'tool-call', id: 'a', name: 'c', argumentsJson: '{"input":"free \\"text\\""}' },
      {
        type: 'tool-call',
        id: 'b',
        name: 'f',
        argumentsJson: '{}',
        cacheUntilHere: {},
        extras: { 'openai-chat': { extra_content } },
      },
    ]);
    assert.deepEqual(read[1]?.parts, [
      {
        type: 'tool-result',
        callId: 'a',
        parts: [{ type: 'text', text: 'result a' }],
        failed: false,
        cacheUntilHere: {},
      },
      { type: 'tool-result', callId: 'b', parts: [], failed: false },
    ]);
  });

  test('deprecated function_call and function messages are calls and results', () => {
    const read = turns(
      user,
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"x":1}' } },
      { role: 'function', name: 'f', content: '5' },
    );
    assert.deepEqual(read.slice(1), [
      {
        role: 'assistant',
        parts: [{ type: 'tool-call', id: 'function_call_1', name: 'f', argumentsJson: '{"x":1}' }],
      },
      {
        role: 'user',
        parts: [
          {
            type: 'tool-result',
            callId: 'function_call_1',
            parts: [{ type: 'text', text: '5' }],
            failed: false,
          },
        ],
      },
    ]);
    assert.equal(
      refused({ messages: [user, { role: 'function', name: 'f', content: '5' }] }),
      'messages[1]',
    );
  });

  test('refusals of earlier answers', () => {
    const [assistant] = turns({ role: 'assistant', content: null, refusal: 'no' });
    assert.deepEqual(assistant?.parts, [{ type: 'refusal', text: 'no' }]);
    assert.equal(
      refused({ messages: [{ role: 'assistant', audio: { id: 'x' } }] }),
      'messages[0].audio',
    );
  });

  test('members that no model knows are noted once', () => {
    const notes = new NoteList();
    const odd = { role: 'user', content: 'x', odd: 1, refusal: null, annotations: [] };
    read({ messages: [odd, odd] }, notes);
    assert.deepEqual(
      notes.all.map((note) => [note.path, note.what]),
      [['messages.0.odd', 'lost']],
    );
  });

  test('prompt_cache_retention 24h lengthens the marks', () => {
    const content = [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }];
    const { turns } = read({
      messages: [{ role: 'user', content }],
      prompt_cache_retention: '24h',
    });
    assert.deepEqual(turns[0]?.parts[0]?.cacheUntilHere, { ttl: '1h' });
  });

  test('a mark on the whole message is one on its last part', () => {
    assert.deepEqual(parts('x', { cache_control: { type: 'ephemeral', ttl: '1h' } }), [
      { type: 'text', text: 'x', cacheUntilHere: { ttl: '1h' } },
    ]);
  });
});

describe('reasoning of earlier turns', () => {
  const rows: readonly (readonly [string, JsonObject, unknown])[] = [
    ['reasoning_content', { reasoning_content: 'r' }, [{ text: 'r' }]],
    ['reasoning', { reasoning: 'r' }, [{ text: 'r' }]],
    [
      'signature beside it',
      { reasoning_content: 'r', reasoning_signature: 's' },
      [{ text: 'r', signature: 's' }],
    ],
    [
      'reasoning_details win, in order',
      {
        reasoning_content: 'a\n\nb',
        reasoning_details: [
          {
            type: 'reasoning.text',
            text: 'a',
            signature: 's1',
            format: 'anthropic-claude-v1',
            index: 0,
          },
          { type: 'reasoning.encrypted', data: 'blob', format: 'anthropic-claude-v1', index: 1 },
          { type: 'reasoning.text', text: 'b', signature: 's2', index: 2 },
        ],
      },
      [
        { text: 'a', signature: 's1' },
        { text: '', encrypted: 'blob' },
        { text: 'b', signature: 's2' },
      ],
    ],
    [
      'increments of one index are one block',
      {
        reasoning_details: [
          { type: 'reasoning.text', text: 'a', index: 0 },
          { type: 'reasoning.text', text: 'b', index: 0 },
          { type: 'reasoning.text', signature: 's', index: 0 },
        ],
      },
      [{ text: 'ab', signature: 's' }],
    ],
    [
      'thinking_blocks',
      {
        thinking_blocks: [
          { type: 'thinking', thinking: 'a', signature: 's' },
          { type: 'redacted_thinking', data: 'blob' },
        ],
      },
      [
        { text: 'a', signature: 's' },
        { text: '', encrypted: 'blob' },
      ],
    ],
    [
      'D2 empty text with a signature',
      { reasoning_details: [{ type: 'reasoning.text', text: '', signature: 's', index: 0 }] },
      [{ text: '', signature: 's' }],
    ],
    [
      'a foreign format is remembered',
      {
        reasoning_details: [
          { type: 'reasoning.summary', summary: 'x', id: 'rs', format: 'openai-responses-v1' },
        ],
      },
      [
        {
          text: 'x',
          extras: { 'openai-chat': { format: 'openai-responses-v1', id: 'rs', summary: true } },
        },
      ],
    ],
  ];
  for (const [name, fields, expected] of rows) {
    test(`D1 ${name}`, () => {
      const [assistant] = turns({ role: 'assistant', content: 'ok', ...fields });
      const reasoning = assistant?.parts.filter((part) => part.type === 'reasoning') ?? [];
      assert.deepEqual(
        reasoning.map(({ type: _type, ...rest }) => rest),
        expected,
      );
      assert.equal(assistant?.parts.at(-1)?.type, 'text');
    });
  }
});

describe('media', () => {
  const image = (url: string) => ({ type: 'image_url', image_url: { url } });
  const file = (more: JsonObject) => ({ type: 'file', file: more });
  const rows: readonly (readonly [string, JsonObject, unknown])[] = [
    [
      'png',
      image('data:image/png;base64,iVBORw0KGgo='),
      { kind: 'image', mediaType: 'image/png', source: { base64: 'iVBORw0KGgo=' } },
    ],
    [
      'jpg is jpeg',
      image('data:image/jpg;base64,AAAA'),
      { kind: 'image', mediaType: 'image/jpeg', source: { base64: 'AAAA' } },
    ],
    [
      'address',
      image('https://a.example/x.png'),
      { kind: 'image', mediaType: '', source: { url: 'https://a.example/x.png' } },
    ],
    [
      'bare string',
      { type: 'image_url', image_url: 'https://a.example/x.png' },
      { kind: 'image', mediaType: '', source: { url: 'https://a.example/x.png' } },
    ],
    [
      'PDF as image',
      image('data:application/pdf;base64,JVBERi0='),
      { kind: 'document', mediaType: 'application/pdf', source: { base64: 'JVBERi0=' } },
    ],
    [
      'PDF file',
      file({ filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' }),
      {
        kind: 'document',
        mediaType: 'application/pdf',
        source: { base64: 'JVBERi0=' },
        name: 'a.pdf',
      },
    ],
    [
      'audio',
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      { kind: 'audio', mediaType: 'audio/mp3', source: { base64: 'AAAA' } },
    ],
    [
      'bare base64 by its first bytes',
      file({ file_data: 'JVBERi0=' }),
      { kind: 'document', mediaType: 'application/pdf', source: { base64: 'JVBERi0=' } },
    ],
    [
      'text by its name',
      file({ filename: 'n.md', file_data: 'aGVsbG8=' }),
      { kind: 'document', mediaType: 'text/markdown', source: { text: 'hello' }, name: 'n.md' },
    ],
  ];
  for (const [name, part, expected] of rows) {
    test(`${name}`, () =>
      assert.deepEqual(parts([part]), [{ type: 'media', ...Object(expected) }]));
  }

  const refusals: readonly (readonly [string, JsonObject, string])[] = [
    ['B59 SVG', image('data:image/svg+xml;base64,AAAA'), 'image_url.url'],
    ['file id', file({ file_id: 'file-1' }), 'file.file_id'],
    ['unknown file', file({ filename: 'a.zip', file_data: 'AAAA' }), 'file.file_data'],
    ['no data', file({}), 'file.file_data'],
    ['B53 unknown type', { type: 'hologram' }, 'type'],
  ];
  for (const [name, part, path] of refusals) {
    test(`REJECT ${name}`, () => {
      const messages = [{ role: 'user', content: [{ type: 'text', text: 'x' }, part] }];
      assert.equal(refused({ messages }), `messages[0].content[1].${path}`);
    });
  }

  test('images in tool messages, against the letter but common', () => {
    const read = turns(
      { role: 'assistant', tool_calls: [call('a')] },
      {
        role: 'tool',
        tool_call_id: 'a',
        content: [{ type: 'text', text: 'see' }, image('data:image/png;base64,AAAA')],
      },
    );
    const [part] = read[1]?.parts ?? [];
    assert.deepEqual(part?.type === 'tool-result' && part.parts.map((inner) => inner.type), [
      'text',
      'media',
    ]);
  });
});
