/** Answers beyond what was reserved for them (reliability.md F63, F64). */
import { chatChunk, chatFrame } from '../upstream/chat.ts';
import { blockStart, messagesFrame, messageStart } from '../upstream/messages.ts';
import type { Answer } from '../upstream/scripted.ts';
import { broken, errorTable as e, rowsWith, served } from './fault-row.ts';
import { frame, legalFrames, textPiece } from './stream-pieces.ts';
import type { UpstreamDialect } from '../support/dialects.ts';

const word = ' tomorrow';

function endless(upstream: UpstreamDialect, start = messageStart()): Answer {
  const begin = {
    chat: [chatFrame(chatChunk({ role: 'assistant', content: '' }))],
    messages: [messagesFrame(start), messagesFrame(blockStart(0, { type: 'text', text: '' }))],
    // created, in_progress, the item and its part.
    responses: legalFrames('responses').slice(0, 4),
    gemini: [],
    converse: [],
  }[upstream];
  const delta = frame(upstream, textPiece(upstream, word));
  return { body: [...begin, ...Array.from({ length: 2000 }, () => delta)], ending: 'hang' };
}

export const limitRows = rowsWith({ shapes: ['stream'], hangs: true }, [
  {
    id: 'F63',
    name: 'an answer that never ends is cut at its cap',
    play: (upstream) => endless(upstream),
    budget: '0.01',
    outcome: served({ finish: 'length' }),
    ledger: 'LE',
  },
  {
    id: 'F64',
    name: 'a prompt that costs more than was thought, and an answer that the budget does not pay for',
    play: (upstream) => endless(upstream, messageStart({ input_tokens: 5000, output_tokens: 1 })),
    upstream: 'messages',
    pricedPrompt: true,
    // 10 µ$ a token: 5,000 for the prompt leave some 1,000 of 6,000.
    budget: '0.06',
    more: { max_tokens: 5900 },
    outcome: broken(e.spent),
  },
]);
