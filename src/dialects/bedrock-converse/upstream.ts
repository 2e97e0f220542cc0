/**
 * The upstream half of Amazon Bedrock's Converse. Signatures, stream frames and errors of AWS are in
 * providers/clouds/bedrock.ts.
 */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { noteAnswerStrangers } from '../../core/shape.ts';
import { readError } from '../shared/vendor-errors.ts';
import { dialectId } from './fields.ts';
import { promptOf } from './request/prompt.ts';
import { tiers, writeRequest } from './request/write.ts';
import { readResponse } from './answer/response.ts';
import { documentShape } from './answer/shape.ts';
import { ConverseStreamReader } from './answer/stream-read.ts';

export const bedrockConverseUpstream: UpstreamDialect = {
  id: dialectId,
  // Only reasoning of Claude has a signature, and every server of Claude accepts it.
  signsReasoning: true,
  promptOf,
  writeRequest,
  takesTier: (tier) => tiers.has(tier),
  // No client speaks this dialect, so a relayed request cannot occur.
  relayRequest: ({ pieces }) => pieces,
  readResponse: (body, _traits, notes) => {
    const generation = readResponse(body);
    noteAnswerStrangers(body, documentShape, notes);
    return generation;
  },
  streamReader: (_traits, notes) => new ConverseStreamReader(notes),
  readError,
};
