/** Messages of a chat request, on the way to a messages upstream (translation.md §3). */
import type OpenAI from 'openai';
import { chatParts, textPart } from './chat-parts.ts';
import { approx, byCase, exact, near, reject, warn, type Variants } from './decision.ts';

const name = warn('messages have no author there');
const { text, image_url, input_audio, file, refusal } = chatParts;

const instructions = {
  ...byCase({
    'before the first turn': exact('system', 'one block for each part'),
    'later on, a model that takes it': exact('message of the role system', 'keeps its position'),
    'later on, other models': near('user message', 'marked as <system>'),
    'nothing but instructions': approx('user message', 'the last one becomes the question'),
  }),
  in: {
    content: {
      ...exact('content'),
      in: {
        text: textPart.in.text,
        type: exact('type'),
        prompt_cache_breakpoint: textPart.in.prompt_cache_breakpoint,
      },
    },
    name,
  },
} as const;

export const chatMessages = {
  developer: instructions,
  system: instructions,
  user: {
    ...exact('user message'),
    in: {
      content: { ...exact('content'), one: { text, image_url, input_audio, file } },
      name,
    },
  },
  assistant: {
    ...exact('assistant message'),
    in: {
      content: { ...exact('content'), one: { text, refusal } },
      refusal: exact('text block'),
      audio: reject('no audio there'),
      function_call: {
        ...exact('tool_use block'),
        in: { name: exact('name'), arguments: exact('input') },
      },
      name,
      tool_calls: {
        ...exact('tool_use blocks, in order'),
        one: {
          function: {
            ...exact('tool_use block'),
            in: {
              id: exact(
                'id',
                'replaced deterministically if it has characters that are refused there',
              ),
              function: {
                ...exact('name, input'),
                in: {
                  name: exact('name'),
                  arguments: byCase({
                    'a JSON object': exact('input'),
                    blank: exact('input', '{}'),
                    'another JSON value': approx('input', 'wrapped as {"value": …}'),
                    'no JSON': approx('input', 'wrapped as {"_raw": …}'),
                  }),
                },
              },
            },
          },
          custom: {
            ...exact('tool_use block'),
            in: {
              id: exact('id'),
              custom: {
                ...exact('name, input'),
                in: { name: exact('name'), input: exact('input.input') },
              },
            },
          },
        },
      },
    },
  },
  tool: {
    ...exact(
      'tool_result block',
      'all results of a turn in one user message, in the order of the calls',
    ),
    in: {
      content: {
        ...exact('content'),
        in: {
          text: textPart.in.text,
          type: exact('type'),
          prompt_cache_breakpoint: textPart.in.prompt_cache_breakpoint,
        },
      },
      tool_call_id: exact('tool_use_id'),
    },
  },
  function: {
    ...exact('tool_result block'),
    in: { content: exact('content'), name: exact('tool_use_id', 'the call before it') },
  },
} as const satisfies Variants<OpenAI.Chat.Completions.ChatCompletionMessageParam>;
