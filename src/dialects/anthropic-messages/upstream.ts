/** The half of the messages dialect that faces providers. */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { promptOf } from '../shared/prompt.ts';
import { readError } from './errors.ts';
import { relayRequest } from './relay/request.ts';
import { writeRequest } from './request/write.ts';
import { readResponse } from './answer/response.ts';
import { MessagesStreamReader } from './answer/stream-read.ts';

export const anthropicMessagesUpstream: UpstreamDialect = {
  id: 'anthropic-messages',
  signsReasoning: true,
  promptOf,
  writeRequest,
  // The one field of a rendered request that is not served without its beta.
  headersOf: ({ speed }) => (speed === 'fast' ? ['anthropic-beta', fastModeBeta] : []),
  relayRequest,
  readResponse: (body) => readResponse(body),
  streamReader: () => new MessagesStreamReader(),
  readError,
};

// Values of `anthropic-beta` that the gateway itself sends.

/** Opens `speed: "fast"`. */
export const fastModeBeta = 'fast-mode-2026-02-01';
