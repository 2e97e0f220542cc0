import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { answer, calls, hi, messagesOf, result, says, text, use } from './conversation-pieces.ts';
import { refusedAt, translate, type From } from './translating.ts';

describe('§3.3, B3 empty content', () => {
  const rows: readonly (readonly [
    what: string,
    from: From,
    messages: readonly JsonObject[],
    expected: readonly JsonObject[],
  ])[] = [
    [
      'an assistant with calls and nothing to say',
      'chat',
      [hi, { ...calls('a'), content: '' }, answer('a', '')],
      [says('user', text('hi')), says('assistant', use('a')), says('user', result('a'))],
    ],
    [
      'the same with an empty part',
      'chat',
      [hi, { ...calls('a'), content: [text(' ')] }, answer('a', 'r')],
      [says('user', text('hi')), says('assistant', use('a')), says('user', result('a', 'r'))],
    ],
    [
      'blank parts beside others, and messages that are blank',
      'chat',
      [says('user', text(' '), text('x')), { role: 'assistant', content: '\n' }, hi],
      [says('user', text('x'), text('hi'))],
    ],
    [
      'an assistant with calls only',
      'messages',
      [hi, says('assistant', text('\n'), use('a')), says('user', result('a'))],
      [hi, calls('a'), answer('a', '')],
    ],
    [
      'blank parts beside others, and messages that are blank',
      'messages',
      [says('user', text(' '), text('x')), says('assistant', text(' ')), says('user', text('y'))],
      [
        { role: 'user', content: 'x' },
        { role: 'user', content: 'y' },
      ],
    ],
    [
      'white space between blocks of one text stays',
      'messages',
      [hi, says('assistant', text('a'), text('\n\n'), text('b')), hi],
      [hi, { role: 'assistant', content: 'a\n\nb' }, hi],
    ],
  ];
  for (const [what, from, messages, expected] of rows) {
    test(`B3 ${from}: ${what}`, () => assert.deepEqual(messagesOf(from, messages), expected));
  }

  for (const [from, content] of [
    ['chat', ''],
    ['chat', ' '],
    ['messages', ' '],
    ['messages', ''],
  ] as const) {
    test(`B3 REJECT ${from}: nothing but ${JSON.stringify(content)}`, () =>
      assert.equal(refusedAt(from, { messages: [{ role: 'user', content }] }), 'messages'));
  }
});

describe('§3.2 instructions in mid-conversation', () => {
  const history = [
    hi,
    says('assistant', use('a')),
    { role: 'system', content: 'Rule.' },
    says('user', result('a', 'r'), text('go')),
  ];

  test('A3 never between a call and its result', () => {
    assert.deepEqual(messagesOf('messages', history, { systemAnywhere: true }).slice(2), [
      answer('a', 'r'),
      { role: 'system', content: 'Rule.' },
      { role: 'user', content: 'go' },
    ]);
  });

  test('A3 tagged in a user turn where the model takes none', () => {
    assert.deepEqual(messagesOf('messages', history, { systemAnywhere: false }).slice(2), [
      answer('a', 'r'),
      says('user', text('<system>\nRule.\n</system>'), text('go')),
    ]);
    assert.deepEqual(
      messagesOf('chat', [hi, { role: 'developer', content: 'Rule.' }, hi], {
        systemAnywhere: false,
      }),
      [says('user', text('hi'), text('<system>Rule.</system>'), text('hi'))],
    );
  });

  test('§3.2 a name is noted', () => {
    const { notes } = translate('chat', {
      messages: [
        { role: 'system', content: 'x', name: 'n' },
        { ...hi, name: 'u' },
      ],
    });
    assert.deepEqual(notes, ['lost messages.0.name', 'lost messages.1.name']);
  });
});
