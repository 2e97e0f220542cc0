/** What a relayed Responses stream is mended of, so that the official client can read it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openaiResponsesClient } from '../../../src/dialects/openai-responses/client.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { assertLegalRelay } from '../../support/legality.ts';
import { listAt, numberAt, objectAt } from '../../support/reading.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { responsesEvents, textItem } from '../../upstream/responses.ts';
import { answerContext } from '../openai-chat/answer-context.ts';
import { framesOf, wire } from './recorded.ts';

/** The events of a relayed stream, with deltas on the short way that the gateway sends them. */
function relayed(events: readonly JsonObject[]): readonly JsonObject[] {
  const relay = openaiResponsesClient.answerRelay(answerContext());
  const text = framesOf(Buffer.from(wire(events)))
    .map((frame) => {
      const plain = /"type":"response\.output_text\.delta"/.test(frame.data ?? '');
      const bytes = plain ? relay.plainFrame?.(frame) : relay.frame(frame, []);
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

test('§6.7 a last event without the items gets those that were told', () => {
  const last = events.at(-1) ?? {};
  const empty = { ...last, response: { ...objectAt(last, 'response'), output: [] } };
  const told = relayed([...events.slice(0, -1), empty]);
  const response = objectAt(told.at(-1) ?? {}, 'response');
  assert.deepEqual(response['output'], [textItem('Hello there, you all')]);
});
