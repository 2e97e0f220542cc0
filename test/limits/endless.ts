/** A stream that goes on and on. */
import type { Dialect } from '../support/reading.ts';
import { chatChunk, chatFrame } from '../upstream/chat.ts';
import { blockDelta, blockStart, messagesFrame, messageStart } from '../upstream/messages.ts';
import type { Answer } from '../upstream/scripted.ts';

const word = ' tomorrow';

/** A stream that never ends by itself. */
export function endlessAnswer(upstream: Dialect): Answer {
  const begin =
    upstream === 'chat'
      ? [chatFrame(chatChunk({ role: 'assistant', content: '' }))]
      : [messagesFrame(messageStart()), messagesFrame(blockStart(0, { type: 'text', text: '' }))];
  const delta =
    upstream === 'chat'
      ? chatFrame(chatChunk({ content: word }))
      : messagesFrame(blockDelta(0, { type: 'text_delta', text: word }));
  return { body: [...begin, ...Array.from({ length: 400 }, () => delta)], ending: 'hang' };
}
