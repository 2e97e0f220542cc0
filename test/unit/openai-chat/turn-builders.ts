/** Conversations for the tests of the request writer, built from turns. */
import assert from 'node:assert/strict';
import type {
  Conversation,
  MediaPart,
  Part,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../src/core/conversation.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { chatTraits, type UpstreamTraits } from '../../../src/core/traits.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';

export function write(
  { system = [], turns }: { readonly system?: readonly Part[]; readonly turns: readonly Turn[] },
  traits: Partial<UpstreamTraits> = {},
  notes = new NoteList(),
): readonly JsonObject[] {
  const conversation: Conversation = {
    system,
    turns,
    tools: [],
    sampling: {},
    output: { type: 'text' },
    extras: {},
  };
  const ask = {
    model: 'up',
    stream: false,
    traits: { ...chatTraits, ...traits },
    newId: () => assert.fail('no random ids in requests'),
  };
  const { messages } = openaiChatUpstream.writeRequest(conversation, ask, notes);
  assert.ok(Array.isArray(messages));
  return messages;
}

export const text = (content: string): Part => ({ type: 'text', text: content });
export const user = (...parts: readonly (Part | string)[]): Turn => turn('user', parts);
export const assistant = (...parts: readonly (Part | string)[]): Turn => turn('assistant', parts);
export const system = (...parts: readonly (Part | string)[]): Turn => turn('system', parts);

function turn(role: Turn['role'], parts: readonly (Part | string)[]): Turn {
  return { role, parts: parts.map((part) => (typeof part === 'string' ? text(part) : part)) };
}

export function call(id: string, argumentsJson = '{}'): ToolCallPart {
  return { type: 'tool-call', id, name: 'f', argumentsJson };
}

export function result(callId: string, ...parts: readonly (Part | string)[]): ToolResultPart {
  return { type: 'tool-result', callId, failed: false, parts: turn('user', parts).parts };
}

export function opaque(value: JsonObject): Part {
  return { type: 'opaque', dialect: 'anthropic-messages', value };
}

export const image: MediaPart = {
  type: 'media',
  kind: 'image',
  mediaType: 'image/png',
  source: { base64: 'AAAA' },
};
export const imagePart = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
export const pdf: MediaPart = {
  type: 'media',
  kind: 'document',
  mediaType: 'application/pdf',
  source: { base64: 'JVBERi0=' },
};

export const callMessage = (id: string, args = '{}') => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: args },
});
