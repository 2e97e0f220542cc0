/** The upstream half of the Responses dialect. */
import type { Countable } from '../../core/description.ts';
import type { Ask, UpstreamDialect } from '../../core/dialect.ts';
import { GatewayError } from '../../core/errors.ts';
import { NoteList } from '../../core/notes.ts';
import type { ModelTokenizer } from '../../core/provider.ts';
import { noteAnswerStrangers } from '../../core/shape.ts';
import { chatTraits } from '../../core/traits.ts';
import type { JsonObject } from '../../json/value.ts';
import { chatCountable } from '../openai-chat/request/countable.ts';
import { writeRequest as writeChat } from '../openai-chat/request/write.ts';
import { promptOf } from '../shared/body/prompt.ts';
import { readError } from '../shared/vendor-errors.ts';
import { dialectId } from './items.ts';
import { readRequest } from './request/read.ts';
import { relayRequest } from './relay/request.ts';
import { writeRequest } from './request/write.ts';
import { readResponse } from './answer/response.ts';
import { responseShape } from './answer/shape.ts';
import { ResponsesStreamReader } from './answer/stream-read.ts';

export const openaiResponsesUpstream: UpstreamDialect = {
  id: dialectId,
  promptOf,
  countable,
  writeRequest,
  relayRequest,
  readResponse: (body, _traits, notes) => {
    const generation = readResponse(body, notes);
    noteAnswerStrangers(body, responseShape, notes);
    return generation;
  },
  streamReader: (_traits, notes) => new ResponsesStreamReader(notes),
  readError,
};

const countedAsChat: Ask = {
  model: '',
  stream: false,
  traits: { ...chatTraits, systemAnywhere: true, developerRole: true, customTools: true },
  newId: (prefix) => prefix,
};

/** Counts like chat completions, since the models are the same. Undefined for requests that chat cannot express. */
function countable(body: JsonObject, tokenizer: ModelTokenizer): Countable | undefined {
  const notes = new NoteList();
  try {
    return chatCountable(writeChat(readRequest(body, notes), countedAsChat, notes), tokenizer);
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}
