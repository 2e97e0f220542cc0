/** Messages of relayed chat requests that are known to need no change, without the general way. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chatTraits } from '../../src/core/traits.ts';
import { areSentAsTheyAre, changes } from '../../src/dialects/openai-chat/relay/messages.ts';
import type { Json } from '../../src/json/value.ts';
import { providerRows } from '../../src/providers/compatible.ts';
import { check } from './checking.ts';

const text = fc.constantFrom('', 'Hi.', 'Be brief.');
const role = fc.constantFrom('user', 'assistant', 'system', 'developer', 'tool', 'function', 'x');
/** Mostly messages of texts only, or hardly any list would be one that stays as it is. */
const message: fc.Arbitrary<Json> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ role: fc.constantFrom('user', 'assistant'), content: text }),
  },
  { weight: 2, arbitrary: fc.record({ role, content: text }) },
  {
    weight: 1,
    arbitrary: fc.record(
      {
        role,
        content: fc.oneof(text, fc.constant(null), fc.constant([{ type: 'text', text: 'Hi.' }])),
        name: text,
        prefix: fc.boolean(),
        refusal: text,
        reasoning_content: text,
        tool_call_id: fc.constant('call_1'),
        tool_calls: fc.constant([
          { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } },
        ]),
      },
      { requiredKeys: ['role'] },
    ),
  },
);
const messages = fc
  .tuple(fc.boolean(), text, fc.array(message, { maxLength: 6 }))
  .map(([instructed, content, rest]) =>
    instructed ? [{ role: 'system', content }, ...rest] : rest,
  );

const rows = providerRows.flatMap(({ traits }) => (traits === undefined ? [] : [traits]));

test('messages of texts that are sent as they are need no change by the general way', (context) => {
  let seen = 0;
  check(context, fc.record({ list: messages, of: fc.constantFrom({}, ...rows) }), (given) => {
    const traits = { ...chatTraits, ...given.of };
    if (!areSentAsTheyAre(given.list, traits)) return;
    seen += 1;
    const ask = { model: 'm', stream: false, traits, newId: () => assert.fail('no ids') };
    assert.equal(changes(given.list, ask), false);
  });
  assert.ok(seen > 10, 'too few lists stay as they are');
});
