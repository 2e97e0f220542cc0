/** Pieces of text of messages and Responses streams that are told by what stands around them (C4, F45, R-83). */
import * as fc from 'fast-check';
import { test } from 'node:test';
import type { Json, JsonObject } from '../../../src/json/value.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { openaiResponsesClient } from '../../../src/dialects/openai-responses/client.ts';
import { openaiResponsesUpstream } from '../../../src/dialects/openai-responses/upstream.ts';
import { messagesEvents } from '../../upstream/messages.ts';
import { responsesEvents, textItem } from '../../upstream/responses.ts';
import { assertLayoutLaw } from './layout-law.ts';
import { anyCharacter } from '../../support/any-character.ts';

const texts = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 20 }),
  fc.constantFrom('', '"', '\\', 'a\nb', '"delta":"', '"text":"', '[DONE]', '🦀', '\\u0041', '},{'),
);

/** What stands between the quotes of a text as a server writes it: some end the text, and some say it again. */
const raws = fc.oneof(
  { weight: 1, arbitrary: texts },
  {
    weight: 4,
    arbitrary: fc.constantFrom('x","delta":"y', 'x","text":"y', 'x","index":7,"z":"', 'x"'),
  },
);

/** Pieces written in several ways; some are no JSON, and some say more than a text or of another place. */
function pieces(
  event: (text: string, more?: JsonObject) => JsonObject,
  odd: readonly (JsonObject | string)[],
): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 12, arbitrary: texts.map((text) => written(event(text))) },
    {
      weight: 3,
      arbitrary: fc
        .tuple(texts, fc.nat(100_000), texts)
        .map(([text, sequence_number, obfuscation]) =>
          written(event(text, { sequence_number, obfuscation })),
        ),
    },
    { weight: 1, arbitrary: texts.map((text) => JSON.stringify(event(text), null, 1)) },
    { weight: 4, arbitrary: raws.map((raw) => written(event('X')).replace('"X"', `"${raw}"`)) },
    fc.constantFrom(...odd.map((each) => (typeof each === 'string' ? each : written(each)))),
  );
}

function written(event: JsonObject): string {
  return JSON.stringify(event);
}

const runs = { seed: 20_261_127, numRuns: 400 };

test('R-83 Responses: any frames in a row mean, and are passed on as, what each says by itself', () => {
  const opened = responsesEvents([textItem('begins')])
    .slice(0, 5)
    .map(written);
  const itemId = 'msg_scripted';
  const at = { item_id: itemId, output_index: 0, content_index: 0 };
  const delta = (text: string, more: JsonObject = {}): JsonObject => ({
    type: 'response.output_text.delta',
    ...at,
    delta: text,
    logprobs: [],
    ...more,
  });
  const odd: (JsonObject | string)[] = [
    delta('a', { item_id: 'msg_other' }),
    delta('a', { output_index: 1 }),
    delta('a', { content_index: 1 }),
    delta('a', { type: 'response.refusal.delta' }),
    delta('a', { sequence_number: null }),
    delta('a', { logprobs: [{ token: 'a', delta: 'b' }] }),
    { type: 'response.output_text.done', ...at, text: '' },
    { type: 'response.output_item.done', output_index: 0, item: textItem('') },
    { type: 'error', error: { message: 'broken' } },
    '{"type":"response.output_text.delta","delta":"first","delta":"last"}',
    '[DONE]',
  ];
  const law = fc.property(fc.array(pieces(delta, odd), { maxLength: 12 }), (rows) => {
    assertLayoutLaw(
      openaiResponsesClient,
      openaiResponsesUpstream,
      [...opened, ...rows].map(named),
    );
  });
  fc.assert(law, runs);
});

test('Messages: any frames in a row mean, and are passed on as, what each says by itself', () => {
  const opened = messagesEvents({ text: 'begins' }).slice(0, 3).map(written);
  const delta = (text: string, more: JsonObject = {}): JsonObject => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'text_delta', text },
    ...more,
  });
  const other = (value: Json): JsonObject => delta('a', { delta: value });
  const odd: (JsonObject | string)[] = [
    delta('a', { index: 1 }),
    delta('a', { model: 'm' }),
    other({ type: 'thinking_delta', thinking: 'hm' }),
    other({ type: 'text_delta', text: null }),
    other({ type: 'text_delta', text: 'a', more: { text: 'b' } }),
    { type: 'content_block_stop', index: 0 },
    { type: 'error', error: { type: 'api_error', message: 'broken' } },
    '{"type":"content_block_delta","delta":{"type":"text_delta","text":"first","text":"last"}}',
    '[DONE]',
  ];
  const law = fc.property(fc.array(pieces(delta, odd), { maxLength: 12 }), (rows) => {
    assertLayoutLaw(
      anthropicMessagesClient,
      anthropicMessagesUpstream,
      [...opened, ...rows].map(named),
    );
  });
  fc.assert(law, runs);
});

/** With a name as servers give it; what is no JSON has that of a piece. */
function named(data: string): { readonly data: string; readonly name: string } {
  const name = /"type"\s*:\s*"([a-z_.]+)"/.exec(data)?.[1];
  return { data, name: name ?? 'response.output_text.delta' };
}
