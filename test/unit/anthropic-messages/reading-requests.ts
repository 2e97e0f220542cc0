/** Requests that the client half reads: a small legal body and what a test changes in it. */
import type { Conversation, Part } from '../../../src/core/conversation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { testSealer } from '../../support/sealing.ts';

export const user = { role: 'user', content: 'Hi' };
export const base: JsonObject = { model: 'm', max_tokens: 10, messages: [user] };

export function read(changes: JsonObject, notes = new NoteList()): Conversation {
  const body = { ...base, ...changes };
  anthropicMessagesClient.readHead(body);
  return anthropicMessagesClient.readRequest(body, notes, testSealer);
}

/** The parts of one message with these blocks. */
export function parts(
  blocks: readonly JsonObject[],
  role = 'user',
  notes = new NoteList(),
): readonly Part[] {
  const conversation = read({ messages: [user, { role, content: blocks }, user] }, notes);
  return conversation.turns[1]?.parts ?? [];
}
