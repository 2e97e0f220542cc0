/** All samples of requests, by the dialect that they are written in. */
import type { Dialect } from '../support/reading.ts';
import { chatMessageSamples } from './chat-messages.ts';
import { chatRequestSamples } from './chat-request.ts';
import { chatToolSamples } from './chat-tools.ts';
import { chatTurnSamples } from './chat-turns.ts';
import { messagesBlockSamples } from './messages-blocks.ts';
import { messagesCallSamples } from './messages-calls.ts';
import { messagesRequestSamples } from './messages-request.ts';
import { messagesToolSamples } from './messages-tools.ts';
import type { Samples } from './sample.ts';

export const corpus: { readonly [D in Dialect]: Samples<object> } = {
  chat: { ...chatRequestSamples, ...chatMessageSamples, ...chatTurnSamples, ...chatToolSamples },
  messages: {
    ...messagesRequestSamples,
    ...messagesBlockSamples,
    ...messagesCallSamples,
    ...messagesToolSamples,
  },
};
