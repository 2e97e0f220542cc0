import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AnswerContext, Ask } from '../../../src/core/dialect.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { parseBody } from '../../../src/core/client-body.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { chatTraits, messagesTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { openaiChatClient } from '../../../src/dialects/openai-chat/client.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';

const digits = '12345678901234567890';
const newId = (prefix: string): string => `${prefix}1`;

function context(): AnswerContext {
  return {
    model: 'm',
    requestId: 'req_1',
    createdSeconds: 1,
    nowSeconds: 1,
    wantsUsageFrame: true,
    promptTokensEstimate: 1,
    newId,
    notes: new NoteList(),
  };
}

function ask(traits: Ask['traits']): Ask {
  return { model: 'm', stream: false, traits, newId };
}

function parse(text: string) {
  return parseBody(Buffer.from(text), new Set()).value;
}

test('tool arguments keep integers beyond 2^53 from a chat answer to a messages client', () => {
  const answer = tryParseObject(
    `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\\"id\\":${digits}}"}}]}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
  );
  assert.ok(answer !== undefined);
  const generation = openaiChatUpstream.readResponse(answer, chatTraits);
  const written = JSON.stringify(anthropicMessagesClient.writeResponse(generation, context()));
  assert.ok(written.includes(`"input":{"id":${digits}}`), written);
});

test('tool arguments keep integers beyond 2^53 from a messages answer to a chat client', () => {
  const answer = tryParseObject(
    `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"id":${digits}}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`,
  );
  assert.ok(answer !== undefined);
  const generation = anthropicMessagesUpstream.readResponse(answer, messagesTraits);
  const written = JSON.stringify(openaiChatClient.writeResponse(generation, context()));
  assert.ok(written.includes(`{\\"id\\":${digits}}`), written);
});

test('tool arguments in the history keep them in both directions', () => {
  const messages = parse(
    `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"id":${digits}}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"}]}]}`,
  );
  const fromMessages = anthropicMessagesClient.readRequest(messages, new NoteList());
  const chat = JSON.stringify(
    openaiChatUpstream.writeRequest(fromMessages, ask(chatTraits), new NoteList()),
  );
  assert.ok(chat.includes(`{\\"id\\":${digits}}`), chat);
  const fromChat = openaiChatClient.readRequest(parse(chat), new NoteList());
  const back = JSON.stringify(
    anthropicMessagesUpstream.writeRequest(fromChat, ask(messagesTraits), new NoteList()),
  );
  assert.ok(back.includes(`"input":{"id":${digits}}`), back);
});
