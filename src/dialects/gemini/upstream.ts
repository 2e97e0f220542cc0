/**
 * The half of Gemini's `generateContent` that faces a provider. Where its host is and what lets requests in is the
 * provider's own: the Gemini API and Vertex AI speak the same.
 */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { readError } from '../shared/vendor-errors.ts';
import { dialectId } from './fields.ts';
import { promptOf } from './request/prompt.ts';
import { writeRequest } from './request/write.ts';
import { readResponse } from './answer/response.ts';
import { GeminiStreamReader } from './answer/stream-read.ts';

export const geminiUpstream: UpstreamDialect = {
  id: dialectId,
  promptOf,
  writeRequest,
  // No client speaks it.
  relayRequest: ({ pieces }) => pieces,
  readResponse: (body) => readResponse(body),
  streamReader: ({ continuation }) => new GeminiStreamReader(continuation === true),
  readError,
};
