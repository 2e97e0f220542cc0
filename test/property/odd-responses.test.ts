/**
 * The worst Responses servers, relayed and translated: the whole answer arrives, or an error. Where events are missing,
 * doubled, odd or out of order, others tell the same.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../src/core/errors.ts';
import type { Frame } from '../../src/core/dialect.ts';
import type { GenerationEvent } from '../../src/core/generation.ts';
import { callItem, responsesDocument, textItem } from '../upstream/responses.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import {
  endingOf,
  framesOf as readFrames,
  objectAt,
  readDocument,
  readStream,
  type Seen,
} from '../support/reading.ts';
import { check } from './checking.ts';
import { answerContext, halves, readEvents, writeStream, type Halves } from './dialect-halves.ts';
import { framed, type Framing } from './framing.ts';
import { framesIn } from './frames.ts';
import { oddResponses, sentEvents, type OddResponses } from './odd-responses.ts';

/** Of the cases, so many arrive: a gateway that refused all would keep the law too. */
const minWhole = 15;
const cases = 120;

const plain: Framing = {
  lineEnd: '\n',
  tight: false,
  manyLines: false,
  noise: '',
  byteOrderMark: false,
  cuts: [],
};

function framesOf(sent: OddResponses): readonly Frame[] {
  const { bytes, places } = framed(sentEvents(sent), sent.form);
  return framesIn(bytes, places);
}

function translated(to: Halves, frames: readonly Frame[]): string {
  try {
    const events = readEvents(halves.responses, frames);
    const last = events.at(-1);
    return last?.type === 'error'
      ? writeStream(to, events.slice(0, -1), last.error)
      : writeStream(to, events);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    assert.notEqual(error.code, 'internal');
    return writeStream(to, [], error);
  }
}

/** As the gateway relays: what it reads decides whether a frame goes on. */
function relayed(frames: readonly Frame[]): string {
  const reader = halves.responses.upstream.streamReader(halves.responses.traits);
  const answer = halves.responses.client.answerRelay(answerContext());
  const fail = (error: unknown): string => {
    assert.ok(error instanceof GatewayError && answer.fail !== undefined, String(error));
    return answer.fail(error, 'req_1');
  };
  let text = '';
  const failed = (events: readonly GenerationEvent[]): GatewayError | undefined => {
    const last = events.at(-1);
    return last?.type === 'error' ? last.error : undefined;
  };
  try {
    for (const frame of frames) {
      const events = reader.read(frame);
      const error = failed(events);
      if (error !== undefined) return text + fail(error);
      const plain = reader.plain === true ? answer.plainFrame : undefined;
      const piece = plain === undefined ? answer.frame(frame, events) : plain.call(answer, frame);
      text += piece?.toString() ?? '';
    }
    const error = failed(reader.end());
    return text + (error === undefined ? answer.ending() : fail(error));
  } catch (error) {
    return text + fail(error);
  }
}

/**
 * What the answer says, apart from ids and from what stands between the texts of two items. Calls have the order of
 * their first events, which a server that sends events late changes.
 */
function said({ text, reasoning, calls, finish }: Seen): object {
  const called = calls
    .map((call) => [call.name, call.arguments])
    .toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  const joined = [text, reasoning].map((each) => each.replaceAll('\n\n', ''));
  return { joined, called, finish };
}

describe('R-73 an answer of an odd Responses server is whole, or an error', () => {
  for (const name of ['chat', 'messages'] as const) {
    test(`translated for ${name}`, (context) => {
      let arrived = 0;
      const one = (sent: OddResponses): void => {
        const text = translated(halves[name], framesOf(sent));
        const ending = endingOf(name, text);
        assert.notEqual(ending, 'none', text);
        if (ending === 'error') return;
        arrived += 1;
        const whole = readDocument('responses', responsesDocument(sent.items));
        assert.deepEqual(said(readStream(name, text)), said(whole), text);
      };
      check(context, oddResponses, one, cases);
      assert.ok(arrived >= minWhole, `${arrived} arrived`);
    });
  }

  test('relayed', (context) => {
    let arrived = 0;
    const one = (sent: OddResponses): void => {
      const text = relayed(framesOf(sent)).replaceAll(/\r\n?/g, '\n');
      const ending = endingOf('responses', text);
      assert.notEqual(ending, 'none', text);
      if (ending === 'error') return;
      arrived += 1;
      const whole = readDocument('responses', responsesDocument(sent.items));
      assert.deepEqual(said(lastResponse(text)), said(whole), text);
    };
    check(context, oddResponses, one, cases);
    assert.ok(arrived >= minWhole, `${arrived} arrived`);
  });

  test('relayed: ids that change, and the end of an item that does not say what it is', () => {
    const items = [textItem('Hello'), callItem('call_1', 'look', '{"x":1}')];
    const events = sentEvents({
      items,
      changes: [],
      ids: 'changing',
      bareEnd: false,
      named: false,
      form: plain,
    });
    // The last event but one is the end of the second item.
    const odd = events.map(({ data }, at) =>
      at === events.length - 2 && typeof data !== 'string'
        ? { data: { ...data, type: 5 } }
        : { data },
    );
    const { bytes, places } = framed(odd, plain);
    const text = relayed(framesIn(bytes, places));
    const whole = readDocument('responses', responsesDocument(items));
    assert.deepEqual(said(lastResponse(text)), said(whole), text);
  });
});

/** The response of the last event, which the official client returns. */
function lastResponse(text: string): Seen {
  const last = readFrames(text).at(-1)?.data ?? '';
  return readDocument('responses', objectAt(tryParseObject(last) ?? {}, 'response'));
}
