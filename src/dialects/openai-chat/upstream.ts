/** The upstream half of chat completions. */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { noteAnswerStrangers } from '../../core/shape.ts';
import { promptOf } from '../shared/body/prompt.ts';
import { readError } from '../shared/vendor-errors.ts';
import { chatCountable } from './request/countable.ts';
import { writeRequest } from './request/write.ts';
import { relayRequest } from './relay/request.ts';
import { offersLegacyFunctions } from './relay/tools.ts';
import { stopsOf } from './request/read.ts';
import { readResponse } from './answer/response.ts';
import { answerShape } from './answer/shape.ts';
import { ChatStreamReader } from './answer/stream-read.ts';

export const openaiChatUpstream: UpstreamDialect = {
  id: 'openai-chat',
  writeRequest,
  promptOf,
  countable: chatCountable,
  stopsOf: ({ spans, skeleton }) => (spans.has('stop') ? stopsOf(skeleton) : undefined),
  translates: offersLegacyFunctions,
  relayRequest,
  readResponse: (body, traits, notes, choices) => {
    const generation = readResponse(body, traits, notes, choices);
    noteAnswerStrangers(body, answerShape, notes);
    return generation;
  },
  streamReader: (traits, notes, choices) => new ChatStreamReader(traits, notes, choices),
  readError,
};
