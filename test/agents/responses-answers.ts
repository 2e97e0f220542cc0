/** Answers of a Responses server, as `answers.ts` has those of the other dialects. */
import type { JsonObject } from '../../src/json/value.ts';
import {
  callItem,
  customCallItem,
  reasoningItem,
  responsesDocument,
  responsesEvents,
  responsesFrame,
  textItem,
} from '../upstream/responses.ts';
import { randomSplit, type Answer } from '../upstream/scripted.ts';
import { reported, type AgentCall, type Turn } from './turn.ts';

const usage = {
  input_tokens: reported.fresh + reported.cacheRead,
  input_tokens_details: { cached_tokens: reported.cacheRead, cache_write_tokens: 0 },
  output_tokens: reported.output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: reported.fresh + reported.cacheRead + reported.output,
} as const;

let answered = 0;

/** Streamed and cut at odd places, or whole; ids are the service's: no two answers share one. */
export function responsesAnswerOf(turn: Turn, stream: boolean): Answer {
  answered += 1;
  const more = { id: `resp_${answered}`, usage };
  const items = itemsOf(turn, answered);
  if (!stream) return { body: JSON.stringify(responsesDocument(items, more)) };
  const frames = responsesEvents(items, more).map(responsesFrame);
  return { body: frames.join(''), framing: 'chunked', split: randomSplit(frames.length, 300) };
}

/** The stream up to its first delta of text; then the connection is reset. */
export function brokenResponses(text: string): Answer {
  const events = responsesEvents(itemsOf({ text }, 0));
  const first = events.findIndex(({ type }) => type === 'response.output_text.delta');
  return { body: events.slice(0, first + 1).map(responsesFrame), ending: 'reset' };
}

function itemsOf({ thinking, text, calls = [] }: Turn, answer: number): readonly JsonObject[] {
  return [
    ...(thinking === undefined ? [] : [reasoningItem(thinking, `blob-${answer}`)]),
    ...(text === undefined ? [] : [{ ...textItem(text), id: `msg_${answer}` }]),
    ...calls.map(itemOfCall),
  ];
}

function itemOfCall({ id, name, input, free }: AgentCall): JsonObject {
  return free === true
    ? customCallItem(id, name, String(input['input']))
    : callItem(id, name, JSON.stringify(input));
}
