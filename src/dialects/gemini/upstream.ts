/**
 * The upstream half of Gemini's `generateContent`. The Gemini API and Vertex AI share it. Addresses and credentials are
 * in `providers/clouds/`.
 */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { noteAnswerStrangers } from '../../core/shape.ts';
import { readError } from '../shared/vendor-errors.ts';
import { dialectId } from './fields.ts';
import { promptOf } from './request/prompt.ts';
import { tiers, writeRequest } from './request/write.ts';
import { readResponse } from './answer/response.ts';
import { answerShape } from './answer/shape.ts';
import { GeminiStreamReader } from './answer/stream-read.ts';

export const geminiUpstream: UpstreamDialect = {
  id: dialectId,
  promptOf,
  writeRequest,
  takesTier: (tier, { serviceTiers }) => serviceTiers === true && tiers.has(tier),
  // No client speaks this dialect, so a relayed request cannot occur.
  relayRequest: ({ pieces }) => pieces,
  readResponse: (body, _traits, notes) => {
    const generation = readResponse(body);
    noteAnswerStrangers(body, answerShape, notes);
    return generation;
  },
  streamReader: ({ continuation }, notes) => new GeminiStreamReader(continuation === true, notes),
  readError,
};
