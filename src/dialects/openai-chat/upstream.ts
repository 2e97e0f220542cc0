/** The upstream half of chat completions. */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { promptOf } from '../shared/body/prompt.ts';
import { readError } from '../shared/vendor-errors.ts';
import { chatCountable } from './request/countable.ts';
import { writeRequest } from './request/write.ts';
import { relayRequest } from './relay/request.ts';
import { stopsOf } from './request/read.ts';
import { readResponse } from './answer/response.ts';
import { ChatStreamReader } from './answer/stream-read.ts';

export const openaiChatUpstream: UpstreamDialect = {
  id: 'openai-chat',
  writeRequest,
  promptOf,
  countable: chatCountable,
  stopsOf: ({ spans, skeleton }) => (spans.has('stop') ? stopsOf(skeleton) : undefined),
  relayRequest,
  readResponse,
  streamReader: (traits) => new ChatStreamReader(traits),
  readError,
};
