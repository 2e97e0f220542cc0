/** The drawer of a call shows every part of a stored request and answer as a conversation, for each endpoint (issue 24.3). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CallContent, LoggedBody } from '../../../dashboard/src/api/content.ts';
import {
  conversationOf,
  type Conversation,
} from '../../../dashboard/src/pages/calls/conversation/read.ts';
import { requestBody } from '../../../dashboard/src/pages/playground/formats/request.ts';
import { noSettings, type Turn } from '../../../dashboard/src/pages/playground/formats/turns.ts';
import { replay, type Generation } from '../../../src/core/generation.ts';
import { mergedEvents } from '../../../src/features/content-log/logged-content.ts';
import { answerContext, halves, writeStream } from '../../property/dialect-halves.ts';
import { allDialects, type AnyDialect } from '../../support/reading.ts';

type Logged = Pick<LoggedBody, 'form' | 'content'>;

function read(endpoint: AnyDialect, asked: unknown, answered?: Logged): Conversation {
  const body = { bytes: 1, cut: false };
  const content: CallContent = {
    state: 'kept',
    logged_now: true,
    request: {
      method: 'POST',
      path: '/v1/x',
      headers: [],
      body: { ...body, form: 'json', content: asked },
    },
    answer:
      answered === undefined
        ? null
        : { status: 200, headers: [], body: { ...body, ...answered }, whole: true },
    attempts: [],
  };
  return conversationOf(endpoint, content) ?? assert.fail('not read');
}

const call = { id: 'call_1', name: 'get_weather', arguments: '{"city":"Paris"}' };
const turns: readonly Turn[] = [
  {
    role: 'user',
    text: 'What is it?',
    pictures: [{ name: 'p', type: 'image/png', base64: 'iVBORw0KGgo=' }],
  },
  { role: 'assistant', text: 'I look.', reasoning: '', calls: [call] },
  { role: 'tool', results: [{ id: 'call_1', text: 'Sunny.' }] },
  { role: 'user', text: 'And now?', pictures: [] },
];
const callPart = {
  kind: 'call',
  id: 'call_1',
  name: 'get_weather',
  input: '{\n  "city": "Paris"\n}',
};
const generation: Generation = {
  id: 'x',
  model: 'm',
  parts: [
    { type: 'reasoning', text: 'Hm.', signature: 's' },
    { type: 'text', text: 'Sunny.' },
    { type: 'tool-call', id: 'call_1', name: 'get_weather', argumentsJson: '{"city":"Paris"}' },
  ],
  finish: { kind: 'tool-calls' },
  usage: { freshInputTokens: 3, outputTokens: 5 },
};

for (const endpoint of allDialects) {
  describe(endpoint, () => {
    test('24.3 a request is instructions, questions, calls and results, with its settings', () => {
      const tools = JSON.stringify([{ type: 'function', name: 'get_weather' }]);
      const settings = { ...noSettings, endpoint, model: 'm', system: 'Be brief.', tools };
      const {
        asked,
        tools: offered,
        settings: rest,
      } = read(endpoint, requestBody(settings, turns));
      const plain = asked.map(({ role, parts }) => [
        role,
        ...parts
          .toSorted((a, b) => a.kind.localeCompare(b.kind))
          .map((part) => (part.kind === 'media' ? part.kind : part)),
      ]);
      const question = [{ kind: 'text', text: 'What is it?' }];
      assert.deepEqual(plain, [
        ['system', { kind: 'text', text: 'Be brief.' }],
        ['user', 'media', ...question],
        ['assistant', callPart, { kind: 'text', text: 'I look.' }],
        [
          'tool',
          {
            kind: 'result',
            id: 'call_1',
            isError: false,
            parts: [{ kind: 'text', text: 'Sunny.' }],
          },
        ],
        ['user', { kind: 'text', text: 'And now?' }],
      ]);
      assert.deepEqual(offered, ['get_weather']);
      assert.deepEqual(
        rest.find(([name]) => name === 'model'),
        ['model', '"m"'],
      );
    });

    test('24.3 a stored stream and a stored document are the same answer', () => {
      const events = mergedEvents(Buffer.from(writeStream(halves[endpoint], replay(generation))));
      const document = halves[endpoint].client.writeResponse(generation, answerContext());
      for (const answered of [
        { form: 'events', content: events },
        { form: 'json', content: document },
      ] as const) {
        assert.deepEqual(read(endpoint, {}, answered).answered, [
          {
            role: 'assistant',
            parts: [{ kind: 'reasoning', text: 'Hm.' }, { kind: 'text', text: 'Sunny.' }, callPart],
          },
        ]);
      }
    });
  });
}

test('24.3 parts of an unknown kind are shown as JSON, hidden reasoning is named', () => {
  const { asked } = read('messages', {
    messages: [
      {
        role: 'assistant',
        content: [
          { type: 'redacted_thinking', data: 'x' },
          { type: 'hologram', depth: 3 },
          {
            type: 'web_search_tool_result',
            tool_use_id: 't',
            content: [{ type: 'text', text: 'r' }],
          },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'image',
            source: {
              type: 'base64',
              media_type: 'image/png',
              data: '[image/png, 900 bytes left out]',
            },
          },
        ],
      },
    ],
  });
  assert.deepEqual(asked, [
    {
      role: 'assistant',
      parts: [
        { kind: 'reasoning', text: '' },
        { kind: 'other', type: 'hologram', json: '{\n  "type": "hologram",\n  "depth": 3\n}' },
        { kind: 'result', id: 't', isError: false, parts: [{ kind: 'text', text: 'r' }] },
      ],
    },
    {
      role: 'user',
      parts: [{ kind: 'media', type: 'image', about: '[image/png, 900 bytes left out]' }],
    },
  ]);
});

test('24.3 of several choices each is an answer; an error is none', () => {
  const delta = (index: number, content: string) => ({ choices: [{ index, delta: { content } }] });
  const events = [delta(0, 'One'), delta(1, 'Two'), delta(0, ', more')];
  const texts = read('chat', {}, { form: 'events', content: events }).answered.map(
    ({ parts }) => parts,
  );
  assert.deepEqual(texts, [[{ kind: 'text', text: 'One, more' }], [{ kind: 'text', text: 'Two' }]]);
  for (const endpoint of allDialects) {
    const error = { form: 'json', content: { type: 'error', error: { message: 'no' } } } as const;
    assert.deepEqual(read(endpoint, {}, error).answered, []);
  }
});
