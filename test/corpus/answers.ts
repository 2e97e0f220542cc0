/** The samples of answers of each dialect, with what a client of each other dialect reads in them. */
import type { JsonObject } from '../../src/json/value.ts';
import type { AnyDialect } from '../support/reading.ts';
import { chatOnResponsesClient, messagesOnResponsesClient } from './answers-to-responses.ts';
import type { AnswerSample, FirstSample, Told } from './answer-sample.ts';
import { chatAnswers } from './chat-answers.ts';
import { messagesAnswers } from './messages-answers.ts';
import { responsesAnswers } from './responses-answers.ts';

export const answerSamples: { readonly [D in AnyDialect]: readonly AnswerSample<object>[] } = {
  chat: withBoth(chatAnswers, 'messages', chatOnResponsesClient),
  messages: withBoth(messagesAnswers, 'chat', messagesOnResponsesClient),
  responses: responsesAnswers,
};

const identity: { readonly [D in AnyDialect]: JsonObject } = {
  chat: {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'up',
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  },
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'up',
    stop_sequence: null,
    stop_details: null,
    usage: { input_tokens: 3, output_tokens: 2 },
  },
  responses: {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    error: null,
    incomplete_details: null,
    model: 'up',
    usage: {
      input_tokens: 3,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: 2,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 5,
    },
  },
};

/** The document that an upstream answers. */
export function documentOf(upstream: AnyDialect, sample: AnswerSample<object>): JsonObject {
  return { ...identity[upstream], ...sample.answer };
}

/** What responses clients read stands in a file of its own, by the samples' names. */
function withBoth(
  samples: readonly FirstSample<object>[],
  first: AnyDialect,
  responses: { readonly [name: string]: Told },
): readonly AnswerSample<object>[] {
  const names = samples.map(({ name }) => name);
  const strange = Object.keys(responses).filter((name) => !names.includes(name));
  if (strange.length > 0) throw new Error(`no samples: ${strange.join(', ')}`);
  return samples.map(({ name, answer, ...told }) => {
    const { [name]: further } = responses;
    if (further === undefined) throw new Error(`${name}: a responses client is told nothing`);
    return { name, answer, to: { [first]: told, responses: further } };
  });
}
