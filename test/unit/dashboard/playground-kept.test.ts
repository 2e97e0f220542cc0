/** Issue 24: the playground is kept, shared and made again from a call without a loss, and takes nothing unchecked. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { readRequest } from '../../../dashboard/src/pages/playground/formats/reading.ts';
import {
  requestBody,
  type JsonRecord,
} from '../../../dashboard/src/pages/playground/formats/request.ts';
import {
  isShared,
  readFragment,
  shareFragment,
} from '../../../dashboard/src/pages/playground/formats/share.ts';
import {
  readSnapshot,
  type Snapshot,
} from '../../../dashboard/src/pages/playground/formats/snapshot.ts';
import { exampleTools } from '../../../dashboard/src/pages/playground/formats/tools.ts';
import {
  endpoints,
  noSettings,
  type CallSettings,
  type Endpoint,
  type Turn,
} from '../../../dashboard/src/pages/playground/formats/turns.ts';
import { oddText, xssText } from '../../dashboard/names.ts';

const turns: readonly Turn[] = [
  {
    role: 'user',
    text: `What is it? ${xssText('share')}`,
    pictures: [{ name: 'image', type: 'image/png', base64: 'iVBORw0KGgo=' }],
  },
  {
    role: 'assistant',
    text: 'I look.',
    reasoning: '',
    calls: [{ id: 'call_1', name: 'get_weather', arguments: '{"city":"Paris"}' }],
  },
  { role: 'tool', results: [{ id: 'call_1', text: 'Sunny.' }] },
  { role: 'user', text: oddText, pictures: [] },
];

function settings(endpoint: Endpoint): CallSettings {
  return {
    ...noSettings,
    endpoint,
    model: 'm',
    system: 'Be brief.\nAlways.',
    maxTokens: '77',
    temperature: '0.5',
    topP: '0.9',
    topK: '40',
    stop: 'END\n###',
    seed: '7',
    frequencyPenalty: '0.1',
    presencePenalty: '-0.2',
    effort: 'low',
    thinkingBudget: '2048',
    format: 'schema',
    schema: '{"type":"object"}',
    tools: exampleTools(endpoint),
    toolChoice: 'required',
    more: '{"user":"u","metadata":{"a":"b"}}',
  };
}

describe('a request as settings and conversation', () => {
  for (const endpoint of endpoints) {
    test(`${endpoint}: the request that is read is the one that is written`, () => {
      const body = requestBody(settings(endpoint), turns);
      const read = readRequest(endpoint, body);
      assert.deepEqual(read.turns, turns);
      assert.deepEqual(read.leftOut, []);
      assert.deepEqual(requestBody({ ...read.settings, model: read.model }, read.turns), body);
    });
  }

  const cases: readonly (readonly [
    what: string,
    endpoint: Endpoint,
    body: JsonRecord,
    expected: { readonly turns?: number; readonly leftOut: readonly string[] },
  ])[] = [
    [
      'images that the log left out',
      'chat',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'Look.' },
              { type: 'image_url', image_url: { url: '[image/png, 70 bytes left out]' } },
            ],
          },
        ],
      },
      { turns: 1, leftOut: ['images'] },
    ],
    [
      'an effort and a choice that there are not',
      'chat',
      { messages: [], reasoning_effort: 'utmost', tool_choice: { type: 'function' } },
      { turns: 0, leftOut: ['the effort utmost', 'the tool choice'] },
    ],
    [
      'documents, and blocks of answers',
      'messages',
      {
        messages: [
          { role: 'user', content: [{ type: 'document', source: { type: 'url' } }] },
          { role: 'assistant', content: [{ type: 'server_tool_use' }] },
        ],
      },
      { turns: 2, leftOut: ['files', 'parts of answers'] },
    ],
    [
      'a stored conversation',
      'responses',
      { input: 'Go on.', previous_response_id: 'resp_1' },
      { turns: 1, leftOut: ['the stored conversation before it'] },
    ],
    ['nothing of it is as it should be', 'messages', { messages: 7, system: 1 }, { leftOut: [] }],
  ];
  for (const [what, endpoint, body, expected] of cases) {
    test(`what has no place is named: ${what}`, () => {
      const { turns: read, leftOut } = readRequest(endpoint, body);
      assert.equal(read.length, expected.turns ?? 0);
      assert.deepEqual(leftOut, expected.leftOut);
    });
  }
});

const { model: _model, ...kept } = settings('messages');
const snapshot: Snapshot = {
  settings: kept,
  sides: [
    { model: 'a', turns },
    { model: 'b', turns: [] },
  ],
  draft: { role: 'user', text: 'Half a qu', pictures: [] },
};

describe('a snapshot', () => {
  test('is the same behind a link', async () => {
    const fragment = await shareFragment(snapshot);
    assert.ok(isShared(fragment));
    assert.match(fragment, /^#share=[\w-]+$/);
    assert.deepEqual(await readFragment(fragment), snapshot);
  });

  test('S12 of a link that is damaged, hostile or a bomb there is nothing', async () => {
    const fragment = await shareFragment(snapshot);
    const packed = (text: string): string =>
      `#share=${deflateRawSync(text, { level: 9 }).toString('base64url')}`;
    const bomb = packed(JSON.stringify({ ...snapshot, more: 'x'.repeat(50_000_000) }));
    assert.ok(bomb.length < 100_000);
    for (const wrong of [
      '#share=',
      '#share=%%%',
      fragment.slice(0, -20),
      packed('not JSON'),
      packed('[]'),
      bomb,
    ]) {
      assert.equal(await readFragment(wrong), undefined, wrong.slice(0, 40));
    }
  });

  test('has no member that it should not have, and none of another type', () => {
    const odd = {
      ...snapshot,
      key: 'key_1',
      settings: { ...kept, key: 'key_1', stream: 'yes', topP: 5, endpoint: 'other' },
    };
    assert.deepEqual(readSnapshot(odd), {
      ...snapshot,
      settings: { ...kept, stream: true, topP: '', endpoint: 'chat' },
    });
    const picture = { name: 'x', type: 'image/svg+xml', base64: 'AAAA' };
    for (const wrong of [
      { ...snapshot, sides: [] },
      { ...snapshot, sides: Array.from({ length: 5 }, () => snapshot.sides[0]) },
      { ...snapshot, sides: [{ model: 'a', turns: [{ role: 'system', text: 'x' }] }] },
      { ...snapshot, draft: { role: 'user', text: 'x', pictures: [picture] } },
      { ...snapshot, draft: { role: 'tool', results: [] } },
      { ...snapshot, settings: undefined },
    ]) {
      assert.equal(readSnapshot(wrong), undefined);
    }
  });
});
