import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Part } from '../../../src/core/conversation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { assistant, call, image, imagePart, pdf, result, user, write } from './turn-builders.ts';

describe('tool results', () => {
  test('B5 split results come together, in order, before any text', () => {
    assert.deepEqual(
      write({
        turns: [
          user('q'),
          assistant(call('a'), call('b')),
          user(result('a', 'ra'), 'text'),
          user(result('b', 'rb')),
        ],
      }).slice(2),
      [
        { role: 'tool', tool_call_id: 'a', content: 'ra' },
        { role: 'tool', tool_call_id: 'b', content: 'rb' },
        { role: 'user', content: 'text' },
      ],
    );
  });

  test('B4 one message however many parts, and none at all', () => {
    const turns = [assistant(call('a'), call('b')), user(result('a', 'x', 'y'), result('b'))];
    assert.deepEqual(write({ turns }).slice(1), [
      { role: 'tool', tool_call_id: 'a', content: 'x\ny' },
      { role: 'tool', tool_call_id: 'b', content: '' },
    ]);
  });

  test('a failed call says so, once', () => {
    const failed = (...parts: readonly string[]) => ({ ...result('a', ...parts), failed: true });
    const content = (part: Part) =>
      write({ turns: [assistant(call('a')), user(part)] }).at(-1)?.['content'];
    assert.equal(content(failed('no such file')), 'Error: no such file');
    assert.equal(content(failed('Error: no such file')), 'Error: no such file');
    assert.equal(content(failed()), 'Error: ');
  });

  test('B2 images follow in one user message behind the whole group', () => {
    const turns = [
      assistant(call('a'), call('b')),
      user(result('a', 'shot', image), result('b', image, pdf), 'and?'),
    ];
    assert.deepEqual(write({ turns }).slice(1), [
      { role: 'tool', tool_call_id: 'a', content: 'shot\n[image 1 attached below]' },
      {
        role: 'tool',
        tool_call_id: 'b',
        content: '[image 2 attached below]\n[document 1 attached below]',
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Image 1 from tool result a:' },
          imagePart,
          { type: 'text', text: 'Image 2 from tool result b:' },
          imagePart,
          { type: 'text', text: 'Document 1 from tool result b:' },
          {
            type: 'file',
            file: {
              filename: 'document.pdf',
              file_data: 'data:application/pdf;base64,JVBERi0=',
            },
          },
          { type: 'text', text: 'and?' },
        ],
      },
    ]);
  });

  test('§3.8 upstreams that take images in results, and ones without vision', () => {
    const turns = [assistant(call('a')), user(result('a', 'shot', image))];
    assert.deepEqual(write({ turns }, { toolResultMedia: true }).at(-1)?.['content'], [
      { type: 'text', text: 'shot' },
      imagePart,
    ]);
    const notes = new NoteList();
    const blind = write({ turns }, { imageInput: 'none' }, notes);
    assert.equal(blind.at(-1)?.['content'], 'shot\n[image omitted: model has no vision]');
    assert.deepEqual(
      notes.all.map((note) => note.path),
      ['messages.1.content.0.content.1'],
    );
  });

  test('B6 ids that come again, and ids that are not allowed', () => {
    const turns = [
      assistant(call('call_0')),
      user(result('call_0', '1')),
      assistant(call('call_0')),
      user(result('call_0', '2')),
      assistant(call('search:0')),
      user(result('search:0', '3')),
    ];
    for (const traits of [{}, { nineCharacterToolIds: true }]) {
      const written = write({ turns }, traits);
      const calls = written.flatMap((message) =>
        Array.isArray(message['tool_calls']) ? [message['tool_calls'][0].id] : [],
      );
      const results = written.flatMap((message) =>
        message['role'] === 'tool' ? [message['tool_call_id']] : [],
      );
      assert.deepEqual(results, calls);
      assert.equal(new Set(calls).size, 3);
      const rule = 'nineCharacterToolIds' in traits ? /^[a-zA-Z0-9]{9}$/ : /^[a-zA-Z0-9_-]{1,64}$/;
      for (const id of calls) assert.match(id, rule);
      assert.deepEqual(write({ turns }, traits), written, 'the same bytes each time');
    }
  });

  test('G1 a mark on a result', () => {
    const marked = { ...result('a', 'r'), cacheUntilHere: {} };
    const turns = [assistant(call('a')), user(marked)];
    assert.deepEqual(write({ turns }, { cacheMarks: true }).at(-1)?.['content'], [
      { type: 'text', text: 'r', cache_control: { type: 'ephemeral' } },
    ]);
    assert.equal(write({ turns }).at(-1)?.['content'], 'r');
  });
});
