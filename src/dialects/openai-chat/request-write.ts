/**
 * Renders a conversation of any dialect as a chat-completions request (wire/translation.md §2, §3).
 * The same conversation gives the same bytes each time: prompt caches depend on it (G2).
 */
import type { Conversation, JsonObject, Part } from '../../core/conversation.ts';
import type { Ask } from '../../core/dialect.ts';
import type { Notes } from '../../core/notes.ts';
import { atOnce, type Steps } from '../../core/steps.ts';
import type { JsonMembers } from './fields.ts';
import { writeOutput } from './output-write.ts';
import { writeForeignExtras } from './request-write-extras.ts';
import { MessageWriter } from './request-write-messages.ts';
import { writeEndUser, writeSampling } from './request-write-options.ts';
import { isPrefill, writePrefill } from './request-write-prefill.ts';
import { writeReasoning } from './request-write-reasoning.ts';
import { writeTools } from './request-write-tools.ts';

/**
 * Claude Code puts a text with a changing nonce first in its instructions: no prompt prefix would
 * ever be cached (A6).
 */
const billingHeader = 'x-anthropic-billing-header:';

/** @throws GatewayError `invalid_request` for what this upstream cannot honour. */
export function writeRequest(conversation: Conversation, ask: Ask, notes: Notes): JsonObject {
  return atOnce(requestWriting(conversation, ask, notes));
}

/** The same in steps. */
export function* requestWriting(
  conversation: Conversation,
  ask: Ask,
  notes: Notes,
): Steps<JsonObject> {
  const { traits } = ask;
  const output = yield* writeOutput(conversation, traits, notes);
  const messages = new MessageWriter({ conversation, traits, notes, provider: ask.provider });
  messages.system(conversation.system.filter(isInstruction), output.instruction);
  yield* messages.turns(conversation.turns);
  const tools = yield* writeTools(conversation, traits, notes);
  const body: JsonMembers = {
    model: ask.model,
    messages: messages.written,
    ...tools,
    ...writeSampling(conversation.sampling, traits, notes),
    ...output.members,
    ...writeReasoning({
      reasoning: conversation.reasoning,
      traits,
      notes,
      offersTools: tools['tools'] !== undefined || output.members['tools'] !== undefined,
      continues: traits.prefill && isPrefill(messages.written),
    }),
    ...writePrefill(messages.written, traits),
    ...writeEndUser(conversation.endUser, traits, notes),
    ...writeForeignExtras(conversation.extras, traits, notes),
  };
  if (ask.stream) {
    body['stream'] = true;
    if (traits.usageOption) body['stream_options'] = { include_usage: true };
  }
  return { ...conversation.extras['openai-chat'], ...traits.always, ...body };
}

function isInstruction(part: Part): boolean {
  return part.type !== 'text' || !part.text.startsWith(billingHeader);
}
