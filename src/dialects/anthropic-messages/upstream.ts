/** The half of the messages dialect that faces providers. */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { readError } from './error-read.ts';
import { relayRequest } from './relay.ts';
import { writeRequest } from './request-write.ts';
import { readResponse } from './response-read.ts';
import { MessagesStreamReader } from './stream-read.ts';

export const anthropicMessagesUpstream: UpstreamDialect = {
  id: 'anthropic-messages',
  writeRequest,
  relayRequest,
  readResponse: (body) => readResponse(body),
  streamReader: () => new MessagesStreamReader(),
  readError,
};
