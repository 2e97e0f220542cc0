/** The half of the messages dialect that faces providers. */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { fastModeBeta } from './betas.ts';
import { readError } from './error-read.ts';
import { relayRequest } from './relay.ts';
import { requestWriting, writeRequest } from './request-write.ts';
import { readResponse, responseReading } from './response-read.ts';
import { MessagesStreamReader } from './stream-read.ts';

export const anthropicMessagesUpstream: UpstreamDialect = {
  id: 'anthropic-messages',
  writeRequest,
  requestWriting,
  // The one field of a rendered request that is not served without its beta.
  headersOf: ({ speed }) => (speed === 'fast' ? ['anthropic-beta', fastModeBeta] : []),
  relayRequest,
  readResponse: (body) => readResponse(body),
  responseReading: (body) => responseReading(body),
  streamReader: () => new MessagesStreamReader(),
  readError,
};
