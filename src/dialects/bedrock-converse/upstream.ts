/**
 * The half of Amazon Bedrock's Converse that faces a provider. How it signs requests, frames its streams and tells its
 * errors is the provider's own (providers/clouds/bedrock.ts).
 */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { readError } from '../shared/vendor-errors.ts';
import { dialectId } from './fields.ts';
import { promptOf } from './request/prompt.ts';
import { writeRequest } from './request/write.ts';
import { readResponse } from './answer/response.ts';
import { ConverseStreamReader } from './answer/stream-read.ts';

export const bedrockConverseUpstream: UpstreamDialect = {
  id: dialectId,
  // Only Claude's carries a signature, and every server of Claude takes it.
  signsReasoning: true,
  promptOf,
  writeRequest,
  // No client speaks it.
  relayRequest: ({ pieces }) => pieces,
  readResponse: (body) => readResponse(body),
  streamReader: () => new ConverseStreamReader(),
  readError,
};
