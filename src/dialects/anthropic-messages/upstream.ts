/** The upstream half of the messages dialect. */
import type { UpstreamDialect } from '../../core/dialect.ts';
import { noteAnswerStrangers } from '../../core/shape.ts';
import { promptOf } from '../shared/body/prompt.ts';
import { readError } from './errors.ts';
import { relayRequest } from './relay/request.ts';
import { writeRequest } from './request/write.ts';
import { readResponse } from './answer/response.ts';
import { messageShape } from './answer/shape.ts';
import { MessagesStreamReader } from './answer/stream-read.ts';

export const anthropicMessagesUpstream: UpstreamDialect = {
  id: 'anthropic-messages',
  signsReasoning: true,
  promptOf,
  // Any other is refused: `max_tokens: Extra inputs are not permitted`.
  countedMembers: new Set([
    'model',
    'messages',
    'system',
    'tools',
    'tool_choice',
    'thinking',
    'output_config',
    'cache_control',
    'context_management',
    'mcp_servers',
    'speed',
  ]),
  writeRequest,
  takesTier: (tier, { fastMode }) => tier === 'fast' && fastMode === true,
  // The only field of a rendered request that requires a beta header.
  headersOf: ({ speed }) => (speed === 'fast' ? ['anthropic-beta', fastModeBeta] : []),
  relayRequest,
  readResponse: (body, _traits, notes) => {
    const generation = readResponse(body);
    noteAnswerStrangers(body, messageShape, notes);
    return generation;
  },
  streamReader: (_traits, notes) => new MessagesStreamReader(notes),
  readError,
};

// Values of `anthropic-beta` that the gateway itself sends.

/** Enables `speed: "fast"`. */
export const fastModeBeta = 'fast-mode-2026-02-01';
