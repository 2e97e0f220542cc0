/** Bodies of `POST /v1/messages/count_tokens` (wire/messages.md §10.1). */
import type { Conversation, JsonObject } from '../../core/conversation.ts';
import type { Notes } from '../../core/notes.ts';
import type { Sealer } from '../../core/sealer.ts';
import type { Steps } from '../../core/steps.ts';
import { checkRequest, readModel, requestChecking } from './head.ts';
import { countReading } from './request-reading.ts';
import { readConversation } from './request-read.ts';

/**
 * The model that is asked for; the body is checked as far as a real request's would be, whoever counts.
 * @throws GatewayError `invalid_request` or `too_large` for a body that no provider could take.
 */
export function readCountHead(body: JsonObject): string {
  const model = readModel(body);
  checkRequest(body);
  return model;
}

/** The same in steps. */
export function* countHeadReading(body: JsonObject): Steps<string> {
  const model = readModel(body);
  yield* requestChecking(body);
  return model;
}

/**
 * The prompt whose tokens are to be counted, in steps. `max_tokens` is not needed, and what a real request
 * would be refused for is left out and noted (wire/translation.md §11). `readCountHead` checked it.
 */
export function countRequestReading(
  body: JsonObject,
  notes: Notes,
  sealer?: Sealer,
): Steps<Conversation> {
  return readConversation(body, countReading(notes, sealer));
}
