/** Endings and shapes that only Responses servers have (wire/responses.md §5.3, §6.5, §6.7, §7.4). */
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { framesOf } from '../support/reading.ts';
import { answerIn } from '../upstream/reply.ts';
import { responsesFrame } from '../upstream/responses.ts';
import type { Answer } from '../upstream/scripted.ts';
import { broken, errorTable as e, refused, rowsWith, served, type FaultRow } from './fault-row.ts';
import { begun, legalFrames, seen, stream, text } from './stream-pieces.ts';

const all: readonly JsonObject[] = framesOf(legalFrames('responses').join('')).map(
  ({ data }) => tryParseObject(data) ?? {},
);
const last = all.at(-1) ?? {};

/** The last event with these members instead. */
function ending(type: string, more: JsonObject): string {
  const response = isObject(last['response']) ? last['response'] : {};
  return responsesFrame({ ...last, type, response: { ...response, ...more } });
}

/** A stream that begins well and ends so. */
function ends(end: string): FaultRow['play'] {
  return (_, _stream, contentSeen) => stream(begun('responses'), contentSeen, end);
}

function without(...types: readonly RegExp[]): FaultRow['play'] {
  return () =>
    stream(
      ...all
        .filter(({ type }) => !types.some((pattern) => pattern.test(String(type))))
        .map(responsesFrame),
    );
}

function document(more: JsonObject): Answer {
  const { body } = answerIn('responses', { text }, false);
  return { body: JSON.stringify({ ...tryParseObject(String(body)), ...more }) };
}

const failure = { code: 'server_error', message: 'It broke' } as const;
const flat = `data: ${JSON.stringify({ type: 'error', ...failure, param: null })}\n\n`;
const gaveUp = {
  chat: { status: 200, type: 'server_error', code: 'upstream_unavailable' },
  messages: { status: 200, type: 'api_error' },
} as const;

const brokenRows = rowsWith({ upstream: 'responses', shapes: ['stream'] }, [
  {
    id: 'R-26',
    name: 'response.failed alone',
    play: ends(ending('response.failed', { status: 'failed', error: failure, usage: null })),
    outcome: broken(gaveUp),
  },
  {
    id: 'R-26',
    name: 'response.failed that tells of overload',
    play: ends(
      ending('response.failed', {
        status: 'failed',
        error: { code: 'server_is_overloaded', message: 'Overloaded' },
        usage: null,
      }),
    ),
    outcome: broken(e.overloadedMidStream),
  },
  {
    id: 'R-26',
    name: 'a flat error without the name of its event',
    play: ends(flat),
    outcome: broken(gaveUp),
  },
  {
    id: 'R-26',
    name: 'error, then response.failed, as the service ends',
    play: ends(
      responsesFrame({ type: 'error', error: { ...failure, type: 'server_error', param: null } }) +
        ending('response.failed', { status: 'failed', error: failure, usage: null }),
    ),
    outcome: broken(gaveUp),
  },
  {
    id: 'R-26',
    name: 'response.completed with the status failed',
    play: ends(ending('response.completed', { status: 'failed', error: null })),
    outcome: broken(gaveUp),
  },
  {
    id: 'R-26',
    name: 'response.completed with an error',
    play: ends(ending('response.completed', { error: failure })),
    outcome: broken(gaveUp),
  },
  {
    id: 'R-26',
    name: 'response.cancelled',
    play: ends(ending('response.cancelled', { status: 'cancelled' })),
    outcome: broken(e.interrupted),
  },
  {
    id: 'R-73',
    name: 'the items done, and no last event',
    play: without(/completed$/),
    outcome: broken(e.interrupted),
  },
  {
    id: 'R-76',
    name: 'an end of a text that is another text',
    play: ends(
      responsesFrame({
        type: 'response.output_text.done',
        item_id: 'msg_1',
        output_index: 0,
        content_index: 0,
        text: 'Something else.',
      }),
    ),
    outcome: broken(e.broken),
  },
  {
    id: 'F45',
    name: 'a second answer within the first',
    play: ends(
      responsesFrame({
        ...all[0],
        response: { id: 'resp_other', object: 'response', model: 'm', output: [] },
      }) + legalFrames('responses').slice(1).join(''),
    ),
    outcome: broken(e.broken),
  },
]);

const oddRows = rowsWith(
  { upstream: 'responses', shapes: ['stream'], outcome: served(seen) },
  [
    { id: 'R-76', name: 'no events of ends but the last', play: without(/\.done$/) },
    {
      id: 'R-76',
      name: 'whole items and no deltas',
      play: without(/delta$/, /part/, /added$/, /text\.done$/),
    },
    { id: 'R-76', name: 'the last event alone', play: without(/(delta|added|done)$/) },
    { id: 'R-74', name: 'no response.in_progress', play: without(/in_progress$/) },
  ].map((row) => ({ ...row, unusualFrames: true as const })),
);

const endingRows = rowsWith({ upstream: 'responses' }, [
  {
    id: 'R-15',
    name: 'incomplete for a reason that nobody knows',
    play: (_, streamed) => {
      const cut = { status: 'incomplete', incomplete_details: { reason: 'banana' } };
      if (!streamed) return document(cut);
      return stream(
        legalFrames('responses').slice(0, -1).join(''),
        ending('response.incomplete', cut),
      );
    },
    mode: 'translate',
    outcome: served({ text, finish: 'length' }),
  },
  ...(['failed', 'cancelled', 'queued', 'in_progress'] as const).map((status) => ({
    id: 'R-77',
    name: `a document with the status ${status}`,
    play: () => document({ status, ...(status === 'failed' ? { error: failure } : {}) }),
    shapes: ['document' as const],
    outcome: refused(status === 'cancelled' ? e.interruptedEarly : e.e11, e.e12),
    attempts: status === 'failed' ? 3 : 1,
  })),
  {
    id: 'R-77',
    name: 'an error beside the status completed',
    play: () => document({ error: failure }),
    shapes: ['document'],
    outcome: refused(e.e11),
    attempts: 3,
  },
  {
    id: 'R-77',
    name: 'an answer of chat completions',
    play: (_, streamed) => answerIn('chat', { text }, streamed),
    outcome: refused(e.e12),
  },
]);

export const responsesRows: readonly FaultRow[] = [...brokenRows, ...oddRows, ...endingRows];
