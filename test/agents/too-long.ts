/** What servers say of a conversation that their model's window does not hold. */
import { chatError } from '../upstream/chat.ts';
import { messagesError } from '../upstream/messages.ts';

const words =
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 10042 tokens.";
const openai = chatError(words, 'invalid_request_error', 'context_length_exceeded');

/** Bodies of a 400, by the dialect. */
export const tooLong = {
  chat: openai,
  messages: messagesError(
    'prompt is too long: 10042 tokens > 8192 maximum',
    'invalid_request_error',
  ),
  responses: openai,
} as const;
