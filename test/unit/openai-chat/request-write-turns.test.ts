import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MediaPart, Part } from '../../../src/core/conversation.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { NoteList } from '../../../src/core/notes.ts';
import type { UpstreamTraits } from '../../../src/core/traits.ts';
import {
  assistant,
  call,
  callMessage,
  image,
  imagePart,
  opaque,
  pdf,
  result,
  system,
  text,
  user,
  write,
} from './turn-builders.ts';

describe('instructions', () => {
  test('one leading message; parts joined by a blank line', () => {
    assert.deepEqual(write({ system: [text('one'), text('two')], turns: [user('hi')] }), [
      { role: 'system', content: 'one\n\ntwo' },
      { role: 'user', content: 'hi' },
    ]);
    const [first] = write(
      { system: [text('one')], turns: [user('hi')] },
      { systemRole: 'developer' },
    );
    assert.deepEqual(first, { role: 'developer', content: 'one' });
  });

  test('G1 cache marks keep the parts apart where they are understood', () => {
    const marked: Part = { type: 'text', text: 'one', cacheUntilHere: {} };
    const [first] = write(
      { system: [marked, text('two')], turns: [user('hi')] },
      { cacheMarks: true },
    );
    assert.deepEqual(first?.['content'], [
      { type: 'text', text: 'one', cache_control: { type: 'ephemeral' } },
      { type: 'text', text: 'two' },
    ]);
  });

  test('A6 the billing header of Claude Code is omitted', () => {
    const header = text('x-anthropic-billing-header: cc_version=2; cch=abcde;');
    assert.deepEqual(write({ system: [header, text('one')], turns: [user('hi')] })[0], {
      role: 'system',
      content: 'one',
    });
  });

  test('A1 A2 later instructions stay in place and leave the prefix alone', () => {
    const before = [user('hi'), assistant('ok'), user('more')];
    const anywhere = { systemAnywhere: true };
    const prefix = write({ turns: before }, anywhere);
    const grown = write({ turns: [...before, system('reminder')] }, anywhere);
    assert.deepEqual(grown, [...prefix, { role: 'system', content: 'reminder' }]);
  });

  test('A3 without such instructions: tagged text in a user turn, behind the tool results', () => {
    const traits = { systemAnywhere: false };
    const tagged = '<system>\nreminder\n</system>';
    assert.deepEqual(
      write({ turns: [assistant(call('a')), system('reminder'), user(result('a', 'r'))] }, traits),
      [
        { role: 'assistant', content: null, tool_calls: [callMessage('a')] },
        { role: 'tool', tool_call_id: 'a', content: 'r' },
        { role: 'user', content: tagged },
      ],
    );
    const later = [user('hi'), assistant('ok'), user('so'), system('reminder'), user('go')];
    assert.deepEqual(write({ turns: later }, traits).slice(2), [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'so' },
          { type: 'text', text: tagged },
          { type: 'text', text: 'go' },
        ],
      },
    ]);
  });

  test('C1 before the first answer they stand in front, in one message, and stay there', () => {
    const traits = { systemAnywhere: false };
    const begun = [user('hi'), system('reminder')];
    const front = { role: 'system', content: 'one\n\nreminder' };
    const whole = write({ system: [text('one')], turns: begun }, traits);
    assert.deepEqual(whole, [front, { role: 'user', content: 'hi' }]);
    const grown = [...begun, assistant('ok'), user('go')];
    assert.deepEqual(write({ system: [text('one')], turns: grown }, traits).slice(0, 2), whole);
  });

  test('A3 with such instructions they do not part a call from its result either', () => {
    const turns = [assistant(call('a')), system('x'), user(result('a', 'r'), 'go')];
    const roles = write({ turns }, { systemAnywhere: true }).map((message) => message['role']);
    assert.deepEqual(roles, ['assistant', 'tool', 'system', 'user']);
  });
});

describe('assistant turns', () => {
  test('texts are one string, calls follow, arguments are never empty', () => {
    assert.deepEqual(
      write({
        turns: [
          user('q'),
          assistant('a', 'b', call('x', ''), call('y', '{"z":1}')),
          user(result('x'), result('y')),
        ],
      })[1],
      {
        role: 'assistant',
        content: 'ab',
        tool_calls: [callMessage('x'), callMessage('y', '{"z":1}')],
      },
    );
  });

  test('D7 reasoning never becomes text', () => {
    const thinking: Part = { type: 'reasoning', text: 'secret', signature: 's' };
    const turns = [
      user('q'),
      assistant(thinking, 'a'),
      user('q2'),
      assistant(thinking),
      user('q3'),
    ];
    assert.ok(!JSON.stringify(write({ turns })).includes('secret'));
    assert.deepEqual(write({ turns })[3], { role: 'assistant', content: '' });
  });

  test('D6 servers that want reasoning back get it on every assistant message', () => {
    const thinking = (words: string): Part => ({ type: 'reasoning', text: words });
    const turns = [
      user('q'),
      assistant(thinking('a'), thinking('b'), 'x'),
      user('q'),
      assistant('y'),
      user('q'),
    ];
    const written = write({ turns }, { reasoningReplay: true, reasoningFiller: ' ' });
    assert.deepEqual(
      written.filter((message) => message['role'] === 'assistant'),
      [
        { role: 'assistant', content: 'x', reasoning_content: 'a\n\nb' },
        { role: 'assistant', content: 'y', reasoning_content: ' ' },
      ],
    );
  });

  test('an empty turn is omitted, a refusal is kept', () => {
    const turns = [
      user('q'),
      assistant(''),
      user('q2'),
      assistant({ type: 'refusal', text: 'no' }),
      user('q3'),
    ];
    assert.deepEqual(
      write({ turns }).map((message) => message['role']),
      ['user', 'user', 'assistant', 'user'],
    );
    assert.deepEqual(write({ turns })[2], { role: 'assistant', content: null, refusal: 'no' });
  });

  test('D1 servers that seal reasoning get it back as they sent it', () => {
    const sealed: readonly Part[] = [
      { type: 'reasoning', text: 'a', signature: 's' },
      {
        type: 'reasoning',
        text: '',
        encrypted: 'blob',
        extras: { 'openai-chat': { id: 'rs' } },
      },
      { type: 'reasoning', text: 'unsealed' },
    ];
    const turns = [user('q'), assistant(...sealed, 'x'), user('q2')];
    const format = { reasoningFormat: 'anthropic-claude-v1' };
    const [, told] = write({ turns }, { reasoningDetails: true, ...format });
    assert.deepEqual(told?.['reasoning_details'], [
      {
        type: 'reasoning.text',
        text: 'a',
        signature: 's',
        format: 'anthropic-claude-v1',
        index: 0,
      },
      {
        type: 'reasoning.encrypted',
        data: 'blob',
        id: 'rs',
        format: 'anthropic-claude-v1',
        index: 1,
      },
    ]);
  });

  test('D7 what another maker’s model sealed is dropped, with a note', () => {
    const turns = [user('q'), assistant({ type: 'reasoning', text: 'a', signature: 's' }, 'x')];
    const notes = new NoteList();
    const traits = { reasoningDetails: true, reasoningFormat: 'google-gemini-v1', prefill: true };
    const [, told] = write({ turns }, traits, notes);
    assert.deepEqual(told, { role: 'assistant', content: 'x' });
    assert.deepEqual(
      notes.all.map(({ path, what }) => [path, what]),
      [['messages.1', 'lost']],
    );
  });

  test('a last assistant turn is noted where it is not continued', () => {
    const notes = new NoteList();
    write({ turns: [user('q'), assistant('The answer is')] }, {}, notes);
    assert.deepEqual(
      notes.all.map((note) => note.path),
      ['messages.1'],
    );
    const silent = new NoteList();
    write({ turns: [user('q'), assistant('The answer is')] }, { prefill: true }, silent);
    assert.deepEqual(silent.all, []);
  });
});

describe('user turns', () => {
  function refused(part: Part, traits: Partial<UpstreamTraits>): string {
    try {
      write({ turns: [user('x', part)] }, traits);
    } catch (error) {
      assert.ok(error instanceof GatewayError);
      return (error.path ?? []).join('.');
    }
    return assert.fail('should be refused');
  }

  const address: MediaPart = { ...image, mediaType: '', source: { url: 'https://a.example/x' } };

  test('text, images and documents', () => {
    const note: MediaPart = {
      type: 'media',
      kind: 'document',
      mediaType: 'text/plain',
      source: { text: 'body' },
      name: 'Notes',
    };
    assert.deepEqual(write({ turns: [user('x', image, address, pdf, note)] })[0]?.['content'], [
      { type: 'text', text: 'x' },
      imagePart,
      { type: 'image_url', image_url: { url: 'https://a.example/x' } },
      {
        type: 'file',
        file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
      },
      { type: 'text', text: 'Notes\n\nbody' },
    ]);
  });

  test('REJECT what the upstream cannot be shown, with its place', () => {
    assert.equal(refused(image, { imageInput: 'none' }), 'messages.0.content.1');
    assert.equal(refused(address, { imageInput: 'base64' }), 'messages.0.content.1');
    assert.equal(refused(pdf, { fileInput: false }), 'messages.0.content.1');
    const remote: MediaPart = { ...pdf, source: { url: 'https://a.example/x.pdf' } };
    assert.equal(refused(remote, {}), 'messages.0.content.1');
  });

  test('what has no form is dropped and noted', () => {
    const notes = new NoteList();
    const written = write(
      { turns: [user('x', opaque({ type: 'container_upload', file_id: 'f' }))] },
      {},
      notes,
    );
    assert.deepEqual(written, [{ role: 'user', content: 'x' }]);
    assert.deepEqual(
      notes.all.map((note) => note.path),
      ['messages.0.content.1'],
    );
  });

  test('G2 a grown conversation keeps the bytes of its beginning', () => {
    const turns = [user('q', image), assistant(call('t:1')), user(result('t:1', 'r', image), 'go')];
    const first = JSON.stringify(write({ turns }));
    const grown = JSON.stringify(write({ turns: [...turns, assistant('a'), user('q2')] }));
    assert.ok(grown.startsWith(first.slice(0, -1)));
  });
});
