/** All samples of requests, by the dialect that they are written in. */
import type { AnyDialect } from '../support/reading.ts';
import { chatMessageSamples } from './chat-messages.ts';
import { chatRequestSamples } from './chat-request.ts';
import { chatToolSamples } from './chat-tools.ts';
import { chatTurnSamples } from './chat-turns.ts';
import { messagesBlockSamples } from './messages-blocks.ts';
import { messagesCallSamples } from './messages-calls.ts';
import { messagesRequestSamples } from './messages-request.ts';
import { messagesToolSamples } from './messages-tools.ts';
import { onResponses } from './on-responses.ts';
import { responsesItemSamples } from './responses-items.ts';
import { responsesRequestSamples } from './responses-request.ts';
import { responsesToolSamples } from './responses-tools.ts';
import type { Sample, Samples, Shown } from './sample.ts';

export const corpus: { readonly [D in AnyDialect]: Samples<object> } = {
  chat: shownOnResponses(
    { ...chatRequestSamples, ...chatMessageSamples, ...chatTurnSamples, ...chatToolSamples },
    onResponses.chat,
  ),
  messages: shownOnResponses(
    {
      ...messagesRequestSamples,
      ...messagesBlockSamples,
      ...messagesCallSamples,
      ...messagesToolSamples,
    },
    onResponses.messages,
  ),
  responses: { ...responsesRequestSamples, ...responsesItemSamples, ...responsesToolSamples },
};

/** The samples with what they show at responses upstreams, which stands in a file of its own. */
function shownOnResponses(
  samples: Samples<object>,
  shown: { readonly [row: string]: Shown },
): Samples<object> {
  const strange = Object.keys(shown).filter((id) => !(id in samples));
  if (strange.length > 0) throw new Error(`no samples: ${strange.join(', ')}`);
  return Object.fromEntries(
    Object.entries(samples).map(([id, sample]): readonly [string, Sample<object>] => {
      const { [id]: responses } = shown;
      return [id, responses === undefined ? sample : { ...sample, on: { responses } }];
    }),
  );
}
