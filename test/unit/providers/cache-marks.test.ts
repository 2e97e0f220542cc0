/** §8, G1: a cache mark at each place where it may stand, in both directions, by upstream. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { fromChat, fromMessages } from '../../support/translating.ts';

const hour = { type: 'ephemeral', ttl: '1h' };
const short = { type: 'ephemeral' };
const png = 'iVBORw0KGgo=';
const text = (value: string, more: JsonObject = {}) => ({ type: 'text', text: value, ...more });

/** Where marks stand: `key path`, numbers left out, with what the mark says. */
function marksOf(value: Json | undefined, path: readonly string[] = []): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((each: Json) => marksOf(each, path));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key === 'cache_control' || key === 'prompt_cache_breakpoint'
      ? [`${[...path, label(value)].join('.')} ${JSON.stringify(member)}`]
      : marksOf(member, [...path, key]),
  );
}

function label(value: JsonObject): string {
  return String(value['text'] ?? value['name'] ?? value['role'] ?? value['type']);
}

describe('§8 G1 marks of a messages request', () => {
  const request = (mark: JsonObject): JsonObject => ({
    system: [text('Rules.', { cache_control: mark })],
    tools: [{ name: 'f', input_schema: { type: 'object' }, cache_control: mark }],
    messages: [
      {
        role: 'user',
        content: [
          text('Look:'),
          {
            type: 'image',
            source: { type: 'base64', media_type: 'image/png', data: png },
            cache_control: mark,
          },
        ],
      },
      {
        role: 'assistant',
        content: [
          text('I call.'),
          { type: 'tool_use', id: 'a', name: 'f', input: {}, cache_control: mark },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: 'done', cache_control: mark },
          text('Next?', { cache_control: mark }),
        ],
      },
    ],
  });

  test('OpenRouter: each at its place, the life kept', () => {
    const { body, notes } = fromMessages('openrouter/anthropic/claude-opus-5', request(hour));
    const said = JSON.stringify(hour);
    assert.deepEqual(marksOf(body), [
      `messages.content.Rules. ${said}`,
      `messages.content.image_url ${said}`,
      `messages.tool_calls.function ${said}`,
      `messages.content.done ${said}`,
      `messages.content.Next? ${said}`,
      `tools.function ${said}`,
    ]);
    assert.deepEqual(notes, []);
  });

  test('OpenAI with breakpoints: on texts only, moved to the text before where need be', () => {
    const { body, notes } = fromMessages('openai/gpt-5.6-sol', request(hour));
    const said = JSON.stringify({ mode: 'explicit' });
    assert.deepEqual(marksOf(body), [
      `messages.content.Rules. ${said}`,
      `messages.content.Look: ${said}`,
      `messages.content.I call. ${said}`,
      `messages.content.done ${said}`,
      `messages.content.Next? ${said}`,
    ]);
    assert.deepEqual(notes, []);
  });

  for (const target of ['openai/gpt-4o', 'openai/gpt-5.5', 'x/any', 'xai/m', 'vllm/m']) {
    test(`${target} caches by itself: no marks, no notes`, () => {
      const { body, notes } = fromMessages(target, request(short));
      assert.deepEqual(marksOf(body), []);
      assert.deepEqual(notes, []);
    });
  }

  test('OpenRouter models that cache by themselves get none either', () => {
    assert.deepEqual(marksOf(fromMessages('openrouter/openai/gpt-5', request(short)).body), []);
  });

  test('a mark inside a result stays inside', () => {
    const content = [text('one', { cache_control: hour }), text('two')];
    const { body } = fromMessages('openrouter/anthropic/claude-opus-5', {
      messages: [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content }] },
      ],
    });
    assert.deepEqual(marksOf(body), [`messages.content.one ${JSON.stringify(hour)}`]);
  });

  test('a breakpoint without any text before it is dropped', () => {
    const image = {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: png },
      cache_control: short,
    };
    const { body } = fromMessages('openai/gpt-5.6-sol', {
      messages: [{ role: 'user', content: [image] }],
    });
    assert.deepEqual(marksOf(body), []);
  });
});

describe('§8 G1 marks of a chat request', () => {
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } };
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
  const claude = 'anthropic/claude-opus-5';

  test('each at its place, the life kept', () => {
    const said = JSON.stringify(hour);
    const places: readonly (readonly [JsonObject, string])[] = [
      [{ tools: [{ ...tool, cache_control: hour }] }, 'tools.f'],
      [
        { tools: [{ type: 'function', function: { ...tool.function, cache_control: hour } }] },
        'tools.f',
      ],
      ...(
        [
          [{ role: 'system', content: [text('Rules.', { cache_control: hour })] }, 'system.Rules.'],
          [{ role: 'system', content: 'Rules.', cache_control: hour }, 'system.Rules.'],
          [{ role: 'user', content: [text('Hi', { cache_control: hour })] }, 'messages.content.Hi'],
          [{ role: 'user', content: 'Hi', cache_control: hour }, 'messages.content.Hi'],
          [
            { role: 'user', content: [{ ...image, cache_control: hour }] },
            'messages.content.image',
          ],
        ] as const
      ).map(
        ([message, place]) =>
          [{ messages: [message, { role: 'user', content: 'So?' }] }, place] as const,
      ),
      ...(
        [
          [
            { content: null, tool_calls: [{ ...call, cache_control: hour }] },
            {},
            'messages.content.f',
          ],
          [{ content: null, tool_calls: [call], cache_control: hour }, {}, 'messages.content.f'],
          [
            { content: 'I call.', tool_calls: [call], cache_control: hour },
            {},
            'messages.content.I call.',
          ],
          [
            { content: null, tool_calls: [call] },
            { cache_control: hour },
            'messages.content.tool_result',
          ],
        ] as const
      ).map(
        ([said_, result, place]) =>
          [
            {
              tools: [tool],
              messages: [
                { role: 'user', content: 'Go.' },
                { role: 'assistant', ...said_ },
                { role: 'tool', tool_call_id: 'a', content: 'done', ...result },
              ],
            },
            place,
          ] as const,
      ),
      [{ cache_control: hour }, 'user'],
    ];
    for (const [request, place] of places) {
      const { body, notes } = fromChat(claude, request);
      const expected = place === 'user' ? [`undefined ${said}`] : [`${place} ${said}`];
      assert.deepEqual(marksOf(body), expected, JSON.stringify(request));
      assert.deepEqual(notes, []);
    }
  });

  test('a breakpoint of OpenAI is a mark of the usual life', () => {
    const content = [text('Hi', { prompt_cache_breakpoint: { mode: 'explicit' } })];
    const { body, notes } = fromChat(claude, {
      messages: [{ role: 'user', content }],
      prompt_cache_options: { mode: 'explicit', ttl: '30m' },
      prompt_cache_key: 'k',
      prompt_cache_retention: 'in_memory',
    });
    assert.deepEqual(marksOf(body), [`messages.content.Hi ${JSON.stringify(short)}`]);
    assert.deepEqual(notes, []);
  });

  test('prompt_cache_retention 24h: an hour for marks that say nothing themselves', () => {
    const five = { type: 'ephemeral', ttl: '5m' };
    const { body, notes } = fromChat(claude, {
      prompt_cache_retention: '24h',
      tools: [{ ...tool, cache_control: short }],
      messages: [
        { role: 'system', content: 'Rules.', cache_control: five },
        { role: 'user', content: 'Hi', cache_control: short },
      ],
    });
    assert.deepEqual(marksOf(body), [
      `system.Rules. ${JSON.stringify(five)}`,
      `messages.content.Hi ${JSON.stringify(hour)}`,
      `tools.f ${JSON.stringify(hour)}`,
    ]);
    assert.deepEqual(notes, ['changed prompt_cache_retention']);
    assert.deepEqual(fromChat(claude, { prompt_cache_retention: '24h' }).notes, []);
  });

  test('more than four: tools and system first, then the latest', () => {
    const { body, notes } = fromChat(claude, {
      tools: [{ ...tool, cache_control: short }],
      messages: [
        { role: 'system', content: 'Rules.', cache_control: short },
        ...['1', '2', '3', '4'].map((content) => ({ role: 'user', content, cache_control: short })),
      ],
    });
    const said = JSON.stringify(short);
    assert.deepEqual(marksOf(body), [
      `system.Rules. ${said}`,
      `messages.content.3 ${said}`,
      `messages.content.4 ${said}`,
      `tools.f ${said}`,
    ]);
    assert.deepEqual(notes, ['lost messages.1.cache_control']);
  });

  test('none on thinking that the client gave back', () => {
    const details = [
      {
        type: 'reasoning.text',
        text: 't',
        signature: 'c2ln',
        format: 'anthropic-claude-v1',
        index: 0,
      },
    ];
    const { body } = fromChat(claude, {
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Ho', reasoning_details: details, cache_control: short },
        { role: 'user', content: 'So?' },
      ],
    });
    assert.deepEqual(marksOf(body), [`messages.content.Ho ${JSON.stringify(short)}`]);
  });
});
