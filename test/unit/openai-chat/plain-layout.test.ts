/** Frames that are told by what stands around their text mean what they would if they were parsed (C4, F45). */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AnswerRelay, Frame, StreamReader } from '../../../src/core/dialect.ts';
import type { GenerationEvent } from '../../../src/core/generation.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { PlainLayout } from '../../../src/dialects/openai-chat/stream-read.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { answerContext, chunk, frame, role } from './answer-context.ts';

interface Side {
  readonly reader: StreamReader;
  readonly relay: AnswerRelay;
}

function side(): Side {
  return {
    reader: openaiChatUpstream.streamReader(chatTraits),
    relay: openaiChatClient.answerRelay(answerContext()),
  };
}

interface Outcome {
  readonly events: readonly GenerationEvent[] | 'refused';
  readonly sent: string | undefined;
}

function outcome({ reader, relay }: Side, one: Frame, mayBePlain: boolean): Outcome {
  let events: readonly GenerationEvent[];
  try {
    events = reader.read(one);
  } catch {
    return { events: 'refused', sent: undefined };
  }
  const plain = mayBePlain && reader.plain === true;
  const sent = plain ? relay.plainFrame?.(one) : relay.frame(one, events);
  return { events, sent: sent?.toString().replace(/ *\n\n$/, '\n\n') };
}

const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('', '"', '\\', 'a\nb', '"content":"', '[DONE]', '🦀', '\u2028', '\\u0041', '},{'),
);
/** Written in several ways; some are no JSON, and some say more than a text. */
const datas = fc.oneof(
  { weight: 6, arbitrary: texts.map((content) => JSON.stringify(chunk({ content }))) },
  { weight: 2, arbitrary: texts.map((content) => JSON.stringify(chunk({ content }), null, 1)) },
  {
    weight: 2,
    arbitrary: texts.map((raw) => JSON.stringify(chunk({ content: 'X' })).replace('X', () => raw)),
  },
  fc.constantFrom(
    ...[
      chunk({ content: 'a', refusal: 'no' }),
      chunk({
        content: 'a',
        tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }],
      }),
      chunk({ content: 'a', content2: 'b' }),
      chunk({ content: 'a' }, 'stop'),
      chunk({ content: 'a' }, null, { usage: { prompt_tokens: 1, completion_tokens: 2 } }),
      chunk({ content: 'a' }, null, { model: 'other' }),
      chunk({ content: 'a' }, null, { choices: [] }),
      { ...chunk({ content: 'a' }), error: { message: 'broken' } },
    ].map((value) => JSON.stringify(value)),
    '{"choices":[{"index":0,"delta":{"x\\"content":"y","content":"z"}}],"model":"m"}',
    '{"choices":[{"index":0,"delta":{"content":"first","content":"last"}}],"model":"m"}',
    '{"note":{"content":"aside"},"choices":[{"index":0,"delta":{"content":"z"}}],"model":"m"}',
    '{"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"own"}}]}',
    '[DONE]',
  ),
);

describe('frames of one layout', () => {
  test('C4 F45 any frames in a row mean, and are passed on as, what each of them says by itself', () => {
    fc.assert(
      fc.property(fc.array(datas, { maxLength: 12 }), (rows) => {
        const quick = side();
        const exact = side();
        const frames = [
          JSON.stringify(role),
          JSON.stringify(chunk({ content: 'begins' })),
          ...rows,
        ];
        for (const [i, data] of frames.entries()) {
          const line = data.replaceAll('\n', ' ');
          const one = outcome(quick, frame(line), true);
          // White space that differs from frame to frame: none is like the one before.
          const other = outcome(exact, frame(line + ' '.repeat(i + 1)), false);
          assert.deepEqual(one, other);
          if (one.events === 'refused') return;
        }
      }),
      { seed: 20_261_122, numRuns: 500 },
    );
  });

  test('a layout is found, holds for texts with escapes, and ends with another one', () => {
    const layout = new PlainLayout();
    const data = (content: string): string => JSON.stringify(chunk({ content }));
    assert.equal(layout.textOf(data('a')), undefined);
    layout.learn(data('a'));
    for (const content of ['b', 'two\nlines', 'a "word"', '\\', '🦀']) {
      assert.equal(layout.textOf(data(content)), content);
    }
    assert.equal(layout.textOf(data('')), undefined);
    assert.equal(layout.textOf(data('a').replace('"a"', '"a","refusal":"b"')), undefined);
    assert.equal(layout.textOf(data('a').replace('"a"', '"\t"')), undefined);
    assert.equal(layout.textOf(data('a').replace('stream', 'other')), undefined);
  });

  test('a server whose frames all differ is not looked at for ever', () => {
    const layout = new PlainLayout();
    const data = (i: number): string => JSON.stringify(chunk({ content: 'a' }, null, { i }));
    for (let i = 0; i < 3; i += 1) layout.learn(data(i));
    assert.equal(layout.textOf(data(2)), 'a');
    for (let i = 0; i < 4; i += 1) layout.learn(data(i));
    assert.equal(layout.textOf(data(3)), undefined);
  });
});
