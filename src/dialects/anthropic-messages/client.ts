/** The client half of the messages dialect: `POST /v1/messages`. */
import type { ClientDialect, SharedRequest } from '../../core/dialect.ts';
import type { Standing, Standings } from '../../core/policy.ts';
import { TwinNames } from '../../core/shape.ts';
import {
  shapedGeneration,
  shapedWriter,
  type ShapeWords,
} from '../shared/request/demanded-call.ts';
import { limitNames, type LimitNames } from '../shared/answers.ts';
import { BodyDescription } from '../shared/body/describe.ts';
import { writeError, writeStreamError } from './errors.ts';
import { badValue } from './fields.ts';
import { ownedKeys, readHead } from './head.ts';
import { MessagesAnswerRelay } from './relay/answer.ts';
import { readCountHead, readCountRequest, readRequest } from './request/read.ts';
import { writeResponse } from './answer/response.ts';
import { requestShape } from './shape.ts';
import { MessagesStreamWriter } from './answer/stream-write.ts';

const ping = 'event: ping\ndata: {"type": "ping"}\n\n';
/** Before `message_start` a comment is safer than an event, since some readers require the start first. */
const comment = ': keep-alive\n\n';

const words: ShapeWords = { single: ['tool_choice', 'disable_parallel_tool_use'] };

/** Recognises a messages client by its headers, or by the paging parameters of a list. */
function claims({ query, header }: SharedRequest): boolean {
  if (header('anthropic-version') !== undefined) return true;
  if (header('x-api-key') !== undefined && header('authorization') === undefined) return true;
  return /(^|&)(limit|after_id|before_id)=/.test(query);
}

export const anthropicMessagesClient: ClientDialect = {
  id: 'anthropic-messages',
  paths: ['/v1/messages'],
  count: {
    path: '/v1/messages/count_tokens',
    readModel: readCountHead,
    readRequest: readCountRequest,
    write: (tokens) => ({ input_tokens: tokens }),
  },
  claims,
  scope: 'messages',
  ownedKeys,
  names: new TwinNames(requestShape, ownedKeys),
  fault: badValue,
  readHead,
  describe: (source) => new MessagesDescription(source),
  readRequest,
  writeResponse: (generation, context) =>
    writeResponse(shapedGeneration(generation, context, words), context),
  streamWriter: (context) => shapedWriter(new MessagesStreamWriter(context), context, words),
  answerRelay: (context) => new MessagesAnswerRelay(context),
  writeError,
  writeStreamError,
  keepAlive: (started) => (started ? ping : comment),
  limitHeaders,
};

class MessagesDescription extends BodyDescription {
  /** A server that reads the cap of chat bodies may write more than `max_tokens` allows. */
  protected override isHarmless(member: string): boolean {
    return member !== 'max_completion_tokens' && super.isHarmless(member);
  }
}

// `anthropic-ratelimit-*`, in which the messages API reports the state of a caller's limits.

const ofRequests = limitNames((part) => `anthropic-ratelimit-requests-${part}`);
const ofTokens = limitNames((part) => `anthropic-ratelimit-tokens-${part}`);

/** Flat headers; empty for a caller without limits. */
function limitHeaders({ requests, tokens }: Standings): readonly string[] {
  const headers: string[] = [];
  if (requests !== undefined) add(headers, ofRequests, requests);
  if (tokens !== undefined) add(headers, ofTokens, tokens);
  return headers;
}

function add(headers: string[], names: LimitNames, { limit, remaining, fullAt }: Standing): void {
  headers.push(
    names.limit,
    String(limit),
    names.remaining,
    String(remaining),
    names.reset,
    timeText(fullAt),
  );
}

/** RFC 3339 in whole seconds, rounded up. */
function timeText(ms: number): string {
  return new Date(Math.ceil(ms / 1000) * 1000).toISOString().replace('.000Z', 'Z');
}
