import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Json, JsonObject } from '../../../src/json/value.ts';
import {
  answer,
  calls,
  hi,
  messagesOf,
  pdf,
  pdfData,
  pdfPart,
  png,
  pngPart,
  result,
  says,
  text,
  use,
} from './conversation-pieces.ts';
import { refusedAt, translate, type From } from './translating.ts';

describe('§3.7 tool results', () => {
  test('B5 messages → chat: call order, then what else was said', () => {
    assert.deepEqual(
      messagesOf('messages', [
        hi,
        says('assistant', use('a'), use('b')),
        says('user', result('b', 'rb'), text('mid')),
        says('user', result('a', 'ra'), text('end')),
      ]).slice(2),
      [answer('a', 'ra'), answer('b', 'rb'), says('user', text('mid'), text('end'))],
    );
  });

  test('B5 chat → messages: one user turn, in call order, text behind', () => {
    assert.deepEqual(
      messagesOf('chat', [hi, calls('a', 'b'), answer('b', 'rb'), answer('a', 'ra'), hi]).slice(2),
      [says('user', result('a', 'ra'), result('b', 'rb'), text('hi'))],
    );
  });

  test('B4 one result an id, however many parts', () => {
    assert.deepEqual(
      messagesOf('messages', [
        hi,
        says('assistant', use('a')),
        says(
          'user',
          result('a', [
            text('1'),
            text('2'),
            { ...pdf, source: { type: 'text', media_type: 'text/plain', data: '3' } },
          ]),
        ),
      ]).at(-1),
      answer('a', '1\n2\n3'),
    );
    assert.deepEqual(
      messagesOf('chat', [hi, calls('a'), answer('a', [text('1'), text('2')])]).at(-1),
      says('user', result('a', [text('1'), text('2')])),
    );
  });

  const refusals: readonly (readonly [string, From, readonly JsonObject[], string])[] = [
    ['a result is missing', 'chat', [hi, calls('a'), hi], 'messages.1'],
    ['a result is missing', 'messages', [hi, says('assistant', use('a')), hi], 'messages.1'],
    ['a result without a call', 'chat', [hi, answer('a', 'x')], 'messages.1.tool_call_id'],
    [
      'a result without a call',
      'messages',
      [hi, says('user', result('a'))],
      'messages.1.content.0',
    ],
    [
      'a user message among the results',
      'chat',
      [hi, calls('a', 'b'), answer('a', 'x'), hi, answer('b', 'y')],
      'messages.1',
    ],
    [
      'two results of one call',
      'messages',
      [hi, says('assistant', use('a')), says('user', result('a'), result('a'))],
      'messages.2.content.1',
    ],
    [
      'an id used twice',
      'messages',
      [hi, says('assistant', use('a'), use('a')), says('user', result('a'))],
      'messages.1.content.1.id',
    ],
  ];
  for (const [what, from, messages, path] of refusals) {
    test(`§3.7 REJECT ${from}: ${what}`, () => assert.equal(refusedAt(from, { messages }), path));
  }

  test('§3.7 a failed call says so in words', () => {
    const said = (content?: Json) =>
      messagesOf('messages', [
        hi,
        says('assistant', use('a')),
        says('user', result('a', content, { is_error: true })),
      ]).at(-1)?.['content'];
    assert.equal(said('no file'), 'Error: no file');
    assert.equal(said('Error: no file'), 'Error: no file');
    assert.equal(said(), 'Error: ');
  });
});

describe('§3.8 media in tool results', () => {
  const shot = [
    hi,
    says('assistant', use('a'), use('b')),
    says('user', result('a', [text('see'), png]), result('b', [png, pdf]), text('and?')),
  ];

  test('B2 attached in one user message behind the whole group', () => {
    assert.deepEqual(messagesOf('messages', shot).slice(2), [
      answer('a', 'see\n[image 1 attached below]'),
      answer('b', '[image 2 attached below]\n[document 1 attached below]'),
      says(
        'user',
        text('Image 1 from tool result a:'),
        pngPart,
        text('Image 2 from tool result b:'),
        pngPart,
        text('Document 1 from tool result b:'),
        pdfPart(),
        text('and?'),
      ),
    ]);
  });

  test('B2 native where the server takes them', () => {
    assert.deepEqual(
      messagesOf('messages', shot, { toolResultMedia: true })[2],
      answer('a', [text('see'), pngPart]),
    );
  });

  test('B2 placeholders without vision, noted, never a refusal', () => {
    const { body, notes } = translate(
      'messages',
      { messages: shot },
      { imageInput: 'none', fileInput: false },
    );
    assert.ok(!JSON.stringify(body).includes('AAAA') && !JSON.stringify(body).includes(pdfData));
    assert.deepEqual(notes.length, 3);
    const written = body['messages'];
    assert.ok(Array.isArray(written));
    assert.deepEqual(written[2], answer('a', 'see\n[image omitted: model has no vision]'));
  });

  test('B2 an address that the server cannot fetch is a placeholder too', () => {
    const url = { type: 'image', source: { type: 'url', url: 'https://x.example/i.png' } };
    const history = [hi, says('assistant', use('a')), says('user', result('a', [url]))];
    const { notes } = translate('messages', { messages: history }, { imageInput: 'base64' });
    assert.deepEqual(notes, ['lost messages.2.content.0.content.0']);
  });

  test('B2 chat → messages: images and files of tool messages are blocks of the result', () => {
    assert.deepEqual(
      messagesOf('chat', [
        hi,
        calls('a'),
        answer('a', [text('see'), pngPart, pdfPart('x.pdf')]),
      ]).at(-1),
      says('user', result('a', [text('see'), png, { ...pdf, title: 'x.pdf' }])),
    );
    const blind = translate(
      'chat',
      { messages: [hi, calls('a'), answer('a', [pngPart])] },
      { imageInput: 'none' },
    );
    assert.match(JSON.stringify(blind.body), /image omitted/);
    assert.equal(blind.notes.length, 1);
  });
});
