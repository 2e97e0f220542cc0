/** What a relayed Responses stream is mended of, so that the official client can read it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openaiResponsesClient } from '../../../src/dialects/openai-responses/client.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { assertLegalRelay } from '../../support/legality.ts';
import { listAt, numberAt, objectAt } from '../../support/reading.ts';
import { ResponsesStreamReader } from '../../../src/dialects/openai-responses/answer/stream-read.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { reasoningItem, responsesEvents, textItem } from '../../upstream/responses.ts';
import { answerContext } from '../openai-chat/answer-context.ts';
import { framesOf, wire } from './recorded.ts';

/** The events of a relayed stream, with deltas on the short way that the gateway sends them. */
function relayed(events: readonly JsonObject[]): readonly JsonObject[] {
  const relay = openaiResponsesClient.answerRelay(answerContext());
  const reader = new ResponsesStreamReader();
  const text = framesOf(Buffer.from(wire(events)))
    .map((frame) => {
      const read = reader.read(frame);
      const bytes = reader.plain ? relay.plainFrame?.(frame) : relay.frame(frame, read);
      return bytes?.toString() ?? '';
    })
    .join('');
  assertLegalRelay('responses', text, true);
  return framesOf(Buffer.from(text)).map(({ data = '' }) => tryParseObject(data) ?? {});
}

const events = responsesEvents([textItem('Hello there, you all')]);

test('R-65 ids that change with each event are those that the client saw first', () => {
  let count = 0;
  const id = (): string => `id-${(count += 1)}`;
  const changing = events.map((event): JsonObject => ({
    ...event,
    ...(event['item_id'] === undefined ? {} : { item_id: id() }),
    ...(event['item'] === undefined ? {} : { item: { ...objectAt(event, 'item'), id: id() } }),
    ...(event['response'] === undefined
      ? {}
      : {
          response: {
            ...objectAt(event, 'response'),
            id: id(),
            output: listAt(objectAt(event, 'response'), 'output').map((item) => ({
              ...item,
              id: id(),
            })),
          },
        }),
  }));
  const told = relayed(changing);
  assert.equal(told.length, events.length);
  const responses = told.filter((event) => event['response'] !== undefined);
  assert.equal(new Set(responses.map((event) => objectAt(event, 'response')['id'])).size, 1);
  const [item] = listAt(objectAt(responses.at(-1) ?? {}, 'response'), 'output');
  const within = told.filter((event) => numberAt(event, 'sequence_number') > 1).slice(0, -1);
  const ids = within.map((event) => event['item_id'] ?? objectAt(event, 'item')['id']);
  assert.deepEqual(new Set(ids), new Set([item?.['id']]));
});

test('R-65 pieces of text that alone have another id get that of their item', () => {
  const other = events.map((event): JsonObject =>
    event['type'] === 'response.output_text.delta' ? { ...event, item_id: 'msg_other' } : event,
  );
  const deltas = other.filter(({ item_id: id }) => id === 'msg_other');
  assert.ok(deltas.length > 1);
  const ids = relayed(other).map(({ item_id: id }) => id);
  assert.equal(ids.includes('msg_other'), false);
});

test('R-65 of two items with one id, each keeps its text in the last event', () => {
  const [first, second] = [textItem('Hello'), textItem('there')];
  const twice = responsesEvents([first, reasoningItem('Hm.', 'b'), second]).map((event) =>
    event['item_id'] === 'rs_b' ? { ...event, item_id: 'rs_other' } : event,
  );
  const response = objectAt(relayed(twice).at(-1) ?? {}, 'response');
  const texts = listAt(response, 'output').map((item) => listAt(item, 'content')[0]?.['text']);
  assert.deepEqual(texts, ['Hello', undefined, 'there']);
});

test('R-65 two items with one id that the last event has in other places are the two that were streamed', () => {
  const [first, second] = [textItem('Hello'), textItem('there')];
  const streamed = responsesEvents([first, reasoningItem('Hm.', 'b'), second]).map((event) =>
    event['item_id'] === 'rs_b' ? { ...event, item_id: 'rs_other' } : event,
  );
  const last = streamed.at(-1) ?? {};
  const moved = { ...objectAt(last, 'response'), output: [first, second] };
  const told = relayed([...streamed.slice(0, -1), { ...last, response: moved }]);
  const response = objectAt(told.at(-1) ?? {}, 'response');
  const texts = listAt(response, 'output').map((item) => listAt(item, 'content')[0]?.['text']);
  assert.deepEqual(texts, ['Hello', 'there']);
});

test('§6.7 a last event without the items gets those that were told', () => {
  const last = events.at(-1) ?? {};
  const empty = { ...last, response: { ...objectAt(last, 'response'), output: [] } };
  const told = relayed([...events.slice(0, -1), empty]);
  const response = objectAt(told.at(-1) ?? {}, 'response');
  assert.deepEqual(response['output'], [textItem('Hello there, you all')]);
});

const question = {
  id: 'fc_1',
  type: 'function_call',
  call_id: 'call_1',
  name: 'f',
  arguments: '{}',
};
const items = [
  reasoningItem('Hm.', 'blob'),
  textItem('Hello'),
  { ...question, status: 'completed' },
];
const whole = responsesEvents(items);

/** The items that a client gets which reads the events of ends only, and the text of one that reads pieces. */
function shown(told: readonly JsonObject[]): object {
  const ofType = (type: string): readonly JsonObject[] =>
    told.filter((event) => event['type'] === type);
  return {
    items: ofType('response.output_item.done').map((event) => event['item']),
    places: ofType('response.output_item.added').map((event) => event['output_index']),
    text: ofType('response.output_text.delta')
      .map((event) => event['delta'])
      .join(''),
  };
}

const everything = { items, places: [0, 1, 2], text: 'Hello' };

test('R-76 items that only the last event reports are told whole before it, in their order', () => {
  const lifecycle = whole.filter((event) => event['response'] !== undefined);
  assert.deepEqual(shown(relayed(lifecycle)), everything);
});

test('R-76 an item whose end is omitted ends before the last event', () => {
  const without = whole.filter(({ type }) => type !== 'response.output_item.done');
  assert.deepEqual(shown(relayed(without)), everything);
});

test('R-76 an item that is told at its end only is told whole', () => {
  const ends = whole.filter(
    ({ type, response }) => type === 'response.output_item.done' || response !== undefined,
  );
  assert.deepEqual(shown(relayed(ends)), everything);
});

/** A stream in which the upstream ends a call that was cut off, as OpenAI does. */
function cutStream(item: JsonObject, status: 'completed' | 'incomplete'): readonly JsonObject[] {
  const told = responsesEvents([textItem('Hello'), item]);
  const last = told.at(-1) ?? {};
  const response = {
    ...objectAt(last, 'response'),
    status,
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
  };
  return [...told.slice(0, -1), { ...last, type: `response.${status}`, response }];
}

const cutCalls: readonly JsonObject[] = [
  { ...question, status: 'incomplete', arguments: '{"a' },
  {
    id: 'ctc_1',
    type: 'custom_tool_call',
    status: 'incomplete',
    call_id: 'call_2',
    name: 'exec',
    input: 'rm -r build/ol',
  },
];

for (const call of cutCalls) {
  test(`R-15 a ${String(call['type'])} that the upstream cut off has no end, and stands in the last event`, () => {
    const told = relayed(cutStream(call, 'incomplete'));
    assert.deepEqual(shown(told), { items: [textItem('Hello')], places: [0, 1], text: 'Hello' });
    const { output } = objectAt(told.at(-1) ?? {}, 'response');
    assert.deepEqual(output, [textItem('Hello'), call]);
  });
}

test('R-15 a call that is marked as cut in an answer that is complete ends before the last event', () => {
  const [call = {}] = cutCalls;
  const told = relayed(cutStream(call, 'completed'));
  assert.deepEqual(shown(told), {
    items: [textItem('Hello'), call],
    places: [0, 1],
    text: 'Hello',
  });
  assert.equal(told.at(-1)?.['type'], 'response.completed');
});

test('R-15 a call that only an incomplete answer has is not told as done', () => {
  const lifecycle = whole.filter((event) => event['response'] !== undefined).slice(0, -1);
  const output = [textItem('Hello'), { ...question, status: 'incomplete', arguments: '{"a' }];
  const response = {
    ...objectAt(whole.at(-1) ?? {}, 'response'),
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
    output,
  };
  const last = { type: 'response.incomplete', sequence_number: 9, response };
  const told = relayed([...lifecycle, last]);
  assert.deepEqual(shown(told), { items: [textItem('Hello')], places: [0], text: 'Hello' });
  assert.deepEqual(objectAt(told.at(-1) ?? {}, 'response')['output'], output);
});

test('§1.2 an answer that was cut off is told as incomplete by its event and by its status', () => {
  const last = events.at(-1) ?? {};
  const ends = (type: string, status: string): unknown => {
    const response = {
      ...objectAt(last, 'response'),
      status,
      incomplete_details: { reason: 'max_output_tokens' },
    };
    const told = relayed([...events.slice(0, -1), { ...last, type, response }]).at(-1) ?? {};
    return [told['type'], objectAt(told, 'response')['status']];
  };
  const incomplete = ['response.incomplete', 'incomplete'];
  assert.deepEqual(ends('response.completed', 'incomplete'), incomplete);
  assert.deepEqual(ends('response.incomplete', 'completed'), incomplete);
  assert.deepEqual(ends('response.incomplete', 'incomplete'), incomplete);
});
