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
import { onClouds } from './on-clouds.ts';
import { onResponses } from './on-responses.ts';
import { responsesItemSamples } from './responses-items.ts';
import { responsesRequestSamples } from './responses-request.ts';
import { responsesToolSamples } from './responses-tools.ts';
import type { Sample, Samples, Shown } from './sample.ts';
import type { UpstreamDialect } from '../support/dialects.ts';

export const corpus: { readonly [D in AnyDialect]: Samples<object> } = {
  chat: shownElsewhere(
    { ...chatRequestSamples, ...chatMessageSamples, ...chatTurnSamples, ...chatToolSamples },
    {
      responses: onResponses.chat,
      gemini: onClouds.gemini.chat,
      converse: onClouds.converse.chat,
    },
  ),
  messages: shownElsewhere(
    {
      ...messagesRequestSamples,
      ...messagesBlockSamples,
      ...messagesCallSamples,
      ...messagesToolSamples,
    },
    {
      responses: onResponses.messages,
      gemini: onClouds.gemini.messages,
      converse: onClouds.converse.messages,
    },
  ),
  responses: shownElsewhere(
    { ...responsesRequestSamples, ...responsesItemSamples, ...responsesToolSamples },
    { gemini: onClouds.gemini.responses, converse: onClouds.converse.responses },
  ),
};

/** The samples with what they show at further upstreams, which stands in files of their own. */
function shownElsewhere(
  samples: Samples<object>,
  further: { readonly [U in UpstreamDialect]?: { readonly [row: string]: Shown } },
): Samples<object> {
  const strange = Object.values(further)
    .flatMap((rows) => Object.keys(rows))
    .filter((id) => !(id in samples));
  if (strange.length > 0) throw new Error(`no samples: ${strange.join(', ')}`);
  return Object.fromEntries(
    Object.entries(samples).map(([id, sample]): readonly [string, Sample<object>] => {
      const own = Object.entries(further).flatMap(([upstream, rows]) =>
        rows[id] === undefined ? [] : [[upstream, rows[id]] as const],
      );
      return [id, { ...sample, on: { ...sample.on, ...Object.fromEntries(own) } }];
    }),
  );
}
