/** The half of the messages dialect that faces clients: `POST /v1/messages`. */
import type { ClientDialect } from '../../core/dialect.ts';
import { shapedGeneration, shapedWriter } from '../answer-shape.ts';
import { writeError, writeStreamError } from './errors.ts';
import { headReading, ownedKeys, readHead } from './head.ts';
import { limitHeaders } from './limit-headers.ts';
import { MessagesAnswerRelay } from './relay.ts';
import { readRequest, requestReading } from './request-read.ts';
import { responseWriting, writeResponse } from './response-write.ts';
import { MessagesStreamWriter } from './stream-write.ts';

const ping = 'event: ping\ndata: {"type": "ping"}\n\n';
/** Before `message_start` a comment is safer than an event: some readers want the start first. */
const comment = ': keep-alive\n\n';

export const anthropicMessagesClient: ClientDialect = {
  id: 'anthropic-messages',
  paths: ['/v1/messages'],
  scope: 'messages',
  ownedKeys,
  readHead,
  headReading,
  readRequest,
  requestReading,
  writeResponse: (generation, context) =>
    writeResponse(shapedGeneration(generation, context), context),
  responseWriting: (generation, context) =>
    responseWriting(shapedGeneration(generation, context), context),
  streamWriter: (context) => shapedWriter(new MessagesStreamWriter(context), context),
  answerRelay: (context) => new MessagesAnswerRelay(context),
  writeError,
  writeStreamError,
  keepAlive: (started) => (started ? ping : comment),
  limitHeaders,
};
