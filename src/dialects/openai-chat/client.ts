/** The half of chat completions that faces the client. */
import type { ClientDialect } from '../../core/dialect.ts';
import { shapedGeneration, shapedWriter } from '../answer-shape.ts';
import { writeError, writeStreamError } from './errors.ts';
import { headReading, ownedKeys, readHead } from './head.ts';
import { limitHeaders } from './limit-headers.ts';
import { ChatAnswerRelay } from './relay.ts';
import { readRequest, requestReading } from './request-read.ts';
import { responseWriting, writeResponse } from './response-write.ts';
import { ChatStreamWriter } from './stream-write.ts';

export const openaiChatClient: ClientDialect = {
  id: 'openai-chat',
  paths: ['/v1/chat/completions'],
  scope: 'chat',
  ownedKeys,
  readHead,
  headReading,
  readRequest,
  requestReading,
  writeResponse: (generation, context) =>
    writeResponse(shapedGeneration(generation, context), context),
  responseWriting: (generation, context) =>
    responseWriting(shapedGeneration(generation, context), context),
  streamWriter: (context) => shapedWriter(new ChatStreamWriter(context), context),
  answerRelay: (context) => new ChatAnswerRelay(context),
  writeError,
  writeStreamError,
  // A comment, the same before and after the first chunk: both official clients skip it.
  keepAlive: () => ': ping\n\n',
  limitHeaders,
};
