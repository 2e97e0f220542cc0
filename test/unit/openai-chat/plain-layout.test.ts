/** Frames that are told by what stands around their text mean what they would if they were parsed (C4, F45). */
import * as fc from 'fast-check';
import { describe, test } from 'node:test';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { assertLayoutLaw } from '../dialects/layout-law.ts';
import { chunk, role } from './answer-context.ts';
import { anyCharacter } from '../../support/any-character.ts';

const texts = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 20 }),
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
  {
    weight: 3,
    arbitrary: fc
      .tuple(texts, texts, fc.constantFrom('p', 'obfuscation'))
      .map(([content, padding, name]) =>
        JSON.stringify(chunk({ content }, null, { [name]: padding })),
      ),
  },
  fc.constantFrom(
    ...[
      chunk({ content: 'a', refusal: 'no' }),
      chunk({ content: 'a', p: 'ab' }),
      chunk({ content: 'a' }, null, { usage: null, p: 1 }),
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
        const begin = [JSON.stringify(role), JSON.stringify(chunk({ content: 'begins' }))];
        const datas = [...begin, ...rows].map((data) => ({ data }));
        assertLayoutLaw(openaiChatClient, openaiChatUpstream, datas);
      }),
      { seed: 20_261_122, numRuns: 500 },
    );
  });
});
