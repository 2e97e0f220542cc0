/** What a model reads of a request body, in either dialect: its texts, its media, its frames. */
import type { Json, JsonObject } from '../core/conversation.ts';
import { isObject } from '../core/json.ts';
import { atOnce, Pace, type Steps } from '../core/steps.ts';
import { mediumOf, mediumTokens, type Medium } from './media.ts';
import { estimateText } from './text-estimate.ts';

export interface Prompt {
  readonly texts: readonly string[];
  readonly media: readonly Medium[];
  /** What the chat template adds around messages and parts. */
  readonly frameTokens: number;
}

const messageFrame = 5;
const partFrame = 2;
const toolFrame = 12;
/** The frames of the whole prompt, and the opening of the answer. */
const promptFrame = 8;

/** Members of messages and parts that no model reads. */
const unread: ReadonlySet<string> = new Set([
  'type',
  'id',
  'tool_use_id',
  'tool_call_id',
  'signature',
  'cache_control',
  'media_type',
  'detail',
  'index',
  'extra_content',
]);

/** `functions` is what chat completions called tools before. */
const toolLists = ['tools', 'functions'] as const;
const formats = ['response_format', 'output_config'] as const;
const nothing: readonly Json[] = [];

/** The prompt of a chat-completions or messages body. */
export function promptOf(body: JsonObject): Prompt {
  return atOnce(promptReading(body));
}

/** The same in steps: a message is the smallest that is looked at. */
export function* promptReading(body: JsonObject): Steps<Prompt> {
  const pace = new Pace();
  const texts: string[] = [];
  const media: Medium[] = [];
  let frameTokens = promptFrame;
  const collect = (value: Json | undefined): void => {
    if (typeof value === 'string') {
      if (value !== '') texts.push(value);
    } else if (isArray(value)) {
      for (const item of value) collect(item);
    } else if (isObject(value)) {
      collectPart(value);
    }
  };
  const collectPart = (part: JsonObject): void => {
    frameTokens += partFrame;
    const found = mediumOf(part);
    if (found !== undefined) media.push(found);
    for (const key of Object.keys(part)) {
      if (unread.has(key) || (found !== undefined && isMediaMember(key))) continue;
      const value = part[key];
      // The arguments of a tool call are shown as JSON.
      if (key === 'input' && isObject(value)) texts.push(JSON.stringify(value));
      else collect(value);
    }
  };
  collect(body['system']);
  for (const message of listOf(body['messages'])) {
    frameTokens += messageFrame;
    collect(message);
    if (pace.dueWith(isObject(message) ? 1 + listOf(message['content']).length : 1)) yield;
  }
  for (const member of toolLists) {
    for (const tool of listOf(body[member])) {
      frameTokens += toolFrame;
      texts.push(JSON.stringify(tool));
    }
  }
  for (const member of formats) {
    const format = body[member];
    if (isObject(format)) texts.push(JSON.stringify(format));
  }
  return { texts, media, frameTokens };
}

function isMediaMember(key: string): boolean {
  return key === 'source' || key === 'image_url' || key === 'file' || key === 'input_audio';
}

function isArray(value: unknown): value is readonly Json[] {
  return Array.isArray(value);
}

function listOf(value: Json | undefined): readonly Json[] {
  return isArray(value) ? value : nothing;
}

/** Tokens of a prompt by the kinds of its characters, not rounded. */
export function estimatePrompt({ texts, media, frameTokens }: Prompt): number {
  let tokens = frameTokens;
  for (const text of texts) tokens += estimateText(text);
  for (const medium of media) tokens += mediumTokens(medium);
  return tokens;
}

/** How many characters of a prompt are looked at where a call waits for the number. */
const sampledOfCall = 24_000;
/** The same where only a count waits: some 15 ms, in which no other call goes on. */
const sampledOfCount = 2_000_000;
const pieceLength = 800;
const goldenRatio = 0.618_033_988_75;

/** The same, by a sample of evenly spread pieces: never more than a millisecond or so. */
export function samplePrompt(prompt: Prompt): number {
  return sampled(prompt, sampledOfCall);
}

/**
 * The whole prompt, unless it is longer than a model's context can be.
 * @param random a number in [0, 1), for the places that are looked at then: nobody can hide text from them.
 */
export function countPrompt(prompt: Prompt, random: () => number): number {
  return sampled(prompt, sampledOfCount, random);
}

function sampled(prompt: Prompt, most: number, random?: () => number): number {
  let length = 0;
  for (const text of prompt.texts) length += text.length;
  if (length <= most) return estimatePrompt(prompt);
  const stride = Math.ceil((length / most) * pieceLength);
  const place = (piece: number): number =>
    // Spread unevenly, so that a text which repeats itself is seen in all of its parts.
    piece * stride + Math.floor((random?.() ?? (piece * goldenRatio) % 1) * (stride - pieceLength));
  let seen = 0;
  let tokens = 0;
  let piece = 0;
  let next = place(0);
  /** Where the text begins in all of them. */
  let from = 0;
  for (const text of prompt.texts) {
    while (next < from + text.length) {
      const looked = text.slice(next - from, next - from + pieceLength);
      tokens += estimateText(looked);
      seen += looked.length;
      piece += 1;
      next = place(piece);
    }
    from += text.length;
  }
  const rest = { texts: [], media: prompt.media, frameTokens: prompt.frameTokens };
  return estimatePrompt(rest) + (tokens * length) / Math.max(1, seen);
}
