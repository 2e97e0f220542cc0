/** Content parts of chat messages, on the way to a messages upstream (translation.md §6, §8). */
import type OpenAI from 'openai';
import { approx, byCase, exact, ignore, near, reject, whole, type Variants } from './decision.ts';

type Part =
  OpenAI.Chat.Completions.ChatCompletionContentPart | OpenAI.Chat.ChatCompletionContentPartRefusal;

const breakpoint = whole(near('cache_control of the block', 'kept for 5 minutes or an hour'));

export const textPart = {
  ...exact('text block'),
  in: {
    text: byCase({
      'some text': exact('text'),
      'white space only': ignore('blank texts say nothing'),
    }),
    prompt_cache_breakpoint: breakpoint,
  },
} as const;

export const chatParts = {
  text: textPart,
  image_url: {
    ...exact('image block'),
    in: {
      image_url: {
        ...exact('source'),
        in: {
          url: byCase({
            'data URL of a JPEG, PNG, GIF or WebP': exact('source (base64)'),
            'data URL under the name of another format': approx(
              'source (base64)',
              'with the media type of its bytes',
            ),
            'data URL of a PDF': near('document block', 'a document, as its data says'),
            'data URL of another type': reject(),
            'http or https': exact('source (url)'),
          }),
          detail: ignore('no such option there'),
        },
      },
      prompt_cache_breakpoint: breakpoint,
    },
  },
  input_audio: reject('no audio there'),
  file: {
    ...exact('document block'),
    in: {
      file: {
        ...exact('source, title'),
        in: {
          file_data: byCase({
            PDF: exact('source (base64)'),
            text: exact('source (text)'),
            'address of a PDF': exact('source (url)'),
            'other types': reject(),
          }),
          file_id: reject("ids belong to one provider's file store"),
          filename: exact('title'),
        },
      },
      prompt_cache_breakpoint: breakpoint,
    },
  },
  refusal: { ...exact('text block'), in: { refusal: exact('text') } },
} as const satisfies Variants<Part>;
