/** The half of the Responses API that faces a provider. */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { promptOf } from '../shared/prompt.ts';
import { readError } from '../shared/vendor-errors.ts';
import { dialectId } from './items.ts';
import { relayRequest } from './relay-request.ts';
import { writeRequest } from './request-write.ts';
import { readResponse } from './response.ts';
import { ResponsesStreamReader } from './stream-read.ts';

export const openaiResponsesUpstream: UpstreamDialect = {
  id: dialectId,
  promptOf,
  writeRequest,
  relayRequest,
  readResponse: (body) => readResponse(body),
  streamReader: () => new ResponsesStreamReader(),
  readError,
};
