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
import type { Answer } from '../upstream/scripted.ts';
import { reported, type AgentCall, type Turn } from './turn.ts';

const usage = {
  input_tokens: reported.fresh + reported.cacheRead,
  input_tokens_details: { cached_tokens: reported.cacheRead, cache_write_tokens: 0 },
  output_tokens: reported.output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: reported.fresh + reported.cacheRead + reported.output,
} as const;

let answered = 0;

/** A document. */
export function responsesReply(turn: Turn): Answer {
  const { items, more } = answerOf(turn);
  return { body: JSON.stringify(responsesDocument(items, more)) };
}

/** The frames of a stream. */
export function responsesFrames(turn: Turn): readonly string[] {
  const { items, more } = answerOf(turn);
  return responsesEvents(items, more).map(responsesFrame);
}

/** Ids are as the service's: no two answers share one. */
function answerOf(turn: Turn) {
  answered += 1;
  return { items: itemsOf(turn, answered), more: { id: `resp_${answered}`, usage } };
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
