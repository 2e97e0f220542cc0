/** The half of chat completions that faces a provider. */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { readError } from './error-read.ts';
import { relayRequest } from './relay.ts';
import { requestWriting, writeRequest } from './request-write.ts';
import { readResponse, responseReading } from './response-read.ts';
import { ChatStreamReader } from './stream-read.ts';

export const openaiChatUpstream: UpstreamDialect = {
  id: 'openai-chat',
  writeRequest,
  requestWriting,
  relayRequest,
  readResponse,
  responseReading,
  streamReader: (traits) => new ChatStreamReader(traits),
  readError,
};
