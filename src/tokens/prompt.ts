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

/** The same in steps, of which none is more than some parts, however many stand in one message. */
export function* promptReading(body: JsonObject): Steps<Prompt> {
  const reader = new PromptReader();
  yield* reader.read(body['system']);
  for (const message of listOf(body['messages'])) {
    reader.frameTokens += messageFrame;
    yield* reader.read(message);
  }
  for (const member of toolLists) {
    for (const tool of listOf(body[member])) {
      reader.frameTokens += toolFrame;
      if (reader.write(tool)) yield;
    }
  }
  for (const member of formats) {
    const format = body[member];
    if (isObject(format)) reader.write(format);
  }
  const { texts, media, frameTokens } = reader;
  return { texts, media, frameTokens };
}

class PromptReader {
  readonly texts: string[] = [];
  readonly media: Medium[] = [];
  frameTokens = promptFrame;
  readonly #pace = new Pace();
  /** What is still to be read of a value, the next one last: no call for each level, so that any may give way. */
  readonly #rest: Json[] = [];

  /** Texts and media of a value, in their order. */
  *read(value: Json | undefined): Steps<undefined> {
    const rest = this.#rest;
    let next = value;
    while (next !== undefined) {
      if (typeof next === 'string') {
        if (next !== '') this.texts.push(next);
      } else if (typeof next === 'object' && next !== null) {
        if (isArray(next)) for (let i = next.length - 1; i >= 0; i--) rest.push(next[i] ?? null);
        else if (isObject(next)) this.#part(next);
        if (this.#pace.due) yield;
      }
      next = rest.pop();
    }
    return undefined;
  }

  /** What is shown as JSON. @returns whether to give way now */
  write(value: Json): boolean {
    this.texts.push(JSON.stringify(value));
    return this.#pace.due;
  }

  #part(part: JsonObject): void {
    this.frameTokens += partFrame;
    const found = mediumOf(part);
    if (found !== undefined) this.media.push(found);
    for (const key of Object.keys(part).toReversed()) {
      if (unread.has(key) || (found !== undefined && isMediaMember(key))) continue;
      const value = part[key];
      if (value === undefined) continue;
      // The arguments of a tool call are shown as JSON.
      this.#rest.push(key === 'input' && isObject(value) ? JSON.stringify(value) : value);
    }
  }
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
export function estimatePrompt(prompt: Prompt): number {
  return atOnce(estimating(prompt));
}

function* estimating({ texts, media, frameTokens }: Prompt): Steps<number> {
  const pace = new Pace();
  let tokens = frameTokens;
  for (const text of texts) {
    tokens += estimateText(text);
    if (pace.dueWith(weightOf(text))) yield;
  }
  for (const medium of media) {
    tokens += mediumTokens(medium);
    if (pace.due) yield;
  }
  return tokens;
}

/** As many pieces as looking at it takes time: many short texts, or few long ones. */
function weightOf(text: string): number {
  return 1 + Math.floor(text.length / 256);
}

/** How many characters of a prompt are looked at where a call waits for the number. */
const sampledOfCall = 24_000;
/** The same where only a count waits: some 15 ms of work. */
const sampledOfCount = 2_000_000;
const pieceLength = 800;
const goldenRatio = 0.618_033_988_75;

/** The same, by a sample of evenly spread pieces: never more than a millisecond or so. */
export function samplePrompt(prompt: Prompt): number {
  return atOnce(sampling(prompt, sampledOfCall));
}

/**
 * The whole prompt, unless it is longer than a model's context can be.
 * @param random a number in [0, 1), for the places that are looked at then: nobody can hide text from them.
 */
export function countPrompt(prompt: Prompt, random: () => number): number {
  return atOnce(promptCounting(prompt, random));
}

/** The same in steps. */
export function promptCounting(prompt: Prompt, random: () => number): Steps<number> {
  return sampling(prompt, sampledOfCount, random);
}

function* sampling(prompt: Prompt, most: number, random?: () => number): Steps<number> {
  let length = 0;
  for (const text of prompt.texts) length += text.length;
  if (length <= most) return yield* estimating(prompt);
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
  const pace = new Pace();
  for (const text of prompt.texts) {
    if (pace.due) yield;
    while (next < from + text.length) {
      const looked = text.slice(next - from, next - from + pieceLength);
      tokens += estimateText(looked);
      if (pace.dueWith(weightOf(looked))) yield;
      seen += looked.length;
      piece += 1;
      next = place(piece);
    }
    from += text.length;
  }
  const rest = { texts: [], media: prompt.media, frameTokens: prompt.frameTokens };
  return (yield* estimating(rest)) + (tokens * length) / Math.max(1, seen);
}
