/** Usage, finishes and choices in odd places (reliability.md F56–F62, E7). */
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { chatChunk, chatDone, chatFrame, chatUsageChunk } from '../upstream/chat.ts';
import { messageDelta, messagesFrame, messageStart } from '../upstream/messages.ts';
import { rowsWith, served, type FaultRow } from './fault-row.ts';
import { legalFrames, seen, stream, usageOfChat } from './stream-pieces.ts';

/** Chat streams whose usage stands in odd places; the last that is not null counts. */
function chatWithUsage(place: (frames: JsonObject[]) => readonly JsonObject[]): FaultRow['play'] {
  return () => {
    const chunks = [
      chatChunk({ role: 'assistant', content: '' }),
      chatChunk({ content: 'Hello, 你好🦀' }),
      chatChunk({ content: ' and good day.' }),
      chatChunk({}, 'stop'),
    ];
    return stream(
      place(chunks)
        .map((chunk) => chatFrame(chunk))
        .join('') + chatDone,
    );
  };
}

function usageSoFar(output: number): JsonObject {
  return {
    prompt_tokens: 100,
    completion_tokens: output,
    total_tokens: 100 + output,
    prompt_tokens_details: { cached_tokens: 60 },
  };
}

export const usageRows = rowsWith(
  { upstream: 'chat', shapes: ['stream'], unusualFrames: true, outcome: served(seen) },
  [
    {
      id: 'F56 E7',
      name: 'growing usage on every chunk, null at the end',
      play: chatWithUsage((chunks) => [
        ...chunks.map((chunk, index) => ({
          ...chunk,
          usage: usageSoFar([0, 4, 7, 7][index] ?? 7),
        })),
        { ...chatUsageChunk({}), usage: null },
      ]),
    },
    {
      id: 'F56 E7',
      name: 'usage twice',
      play: chatWithUsage((chunks) => [
        ...chunks,
        chatUsageChunk(usageSoFar(3)),
        chatUsageChunk(usageOfChat),
      ]),
    },
    {
      id: 'E7',
      name: 'usage on the finish chunk',
      play: chatWithUsage((chunks) => [
        ...chunks.slice(0, -1),
        { ...chatChunk({}, 'stop'), usage: usageOfChat },
      ]),
    },
    {
      id: 'E7',
      name: 'usage behind the finish on a choice with an empty delta',
      play: chatWithUsage((chunks) => [...chunks, { ...chatChunk({}), usage: usageOfChat }]),
    },
    {
      id: 'E7',
      name: 'usage without choices',
      play: chatWithUsage((chunks) => [
        ...chunks,
        Object.fromEntries(
          Object.entries(chatUsageChunk(usageOfChat)).filter(([name]) => name !== 'choices'),
        ),
      ]),
    },
    {
      id: 'E7',
      name: 'usage under x_groq',
      play: chatWithUsage((chunks) => [
        ...chunks.slice(0, -1),
        { ...chatChunk({}, 'stop'), x_groq: { id: 'req_1', usage: usageOfChat } },
      ]),
    },
  ],
);

export const messagesOrderRows = rowsWith({ upstream: 'messages', shapes: ['stream'] }, [
  {
    id: 'F56',
    name: 'cumulative usage in two message_delta events',
    play: () => {
      const frames = legalFrames('messages');
      const at = frames.length - 2;
      return stream(
        frames.slice(0, at).join('') +
          messagesFrame(messageDelta(null, { output_tokens: 3 })) +
          frames.slice(at).join(''),
      );
    },
    unusualFrames: true,
    outcome: served(seen),
  },
  {
    id: 'F61',
    name: 'a block that is never stopped',
    play: () =>
      stream(
        legalFrames('messages')
          .filter((each) => !each.startsWith('event: content_block_stop'))
          .join(''),
      ),
    mode: 'translate',
    outcome: served(seen),
  },
  {
    id: 'F1 F2',
    name: 'the final usage replaces that of the start',
    play: () => {
      const usage = {
        input_tokens: 40,
        cache_read_input_tokens: 60,
        cache_creation_input_tokens: 0,
      };
      const frames = legalFrames('messages');
      const start = messagesFrame(
        messageStart({ ...usage, input_tokens: 17, cache_read_input_tokens: 0 }),
      );
      return stream(start + frames.slice(1).join(''));
    },
    outcome: served(seen),
  },
]);

/** Turns the choices of a chunk into those of choice 1. */
function ofSecondChoice(chunk: JsonObject): JsonObject {
  const choices = chunk['choices'];
  if (!Array.isArray(choices)) return chunk;
  return { ...chunk, choices: choices.filter(isObject).map((choice) => ({ ...choice, index: 1 })) };
}

export const choiceRows = rowsWith({ upstream: 'chat', shapes: ['stream'] }, [
  {
    id: 'F62',
    name: 'a second choice, interleaved, that nobody asked for',
    play: chatWithUsage((chunks) => [
      ...chunks.flatMap((chunk) => [chunk, ofSecondChoice(chunk)]),
      chatUsageChunk(usageOfChat),
    ]),
    outcome: served(seen),
    unusualFrames: true,
  },
  {
    id: 'F60',
    name: 'two finish reasons: the first holds',
    play: chatWithUsage((chunks) => [
      ...chunks,
      chatChunk({}, 'length'),
      chatUsageChunk(usageOfChat),
    ]),
    outcome: served(seen),
    unusualFrames: true,
  },
  {
    id: 'F60 B13',
    name: 'an unknown finish reason',
    play: chatWithUsage((chunks) => [
      ...chunks.slice(0, -1),
      chatChunk({}, 'banana'),
      chatUsageChunk(usageOfChat),
    ]),
    mode: 'translate',
    outcome: served(seen),
  },
]);
