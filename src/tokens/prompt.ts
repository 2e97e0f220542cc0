/** Tokens of a prompt, estimated by the kinds of its characters. */
import type { Prompt } from '../core/description.ts';
import { mediumTokens } from './media.ts';
import { estimateText } from './text-estimate.ts';

/** Tokens of a prompt by the kinds of its characters, not rounded. */
export function estimatePrompt({ texts, media, frameTokens }: Prompt): number {
  let tokens = frameTokens;
  for (const text of texts) tokens += estimateText(text);
  for (const medium of media) tokens += mediumTokens(medium);
  return tokens;
}

/** How many characters of a prompt are looked at where a call waits for the number. */
const sampledOfCall = 24_000;
/** The same where only a count waits: some 15 ms of work. */
const sampledOfCount = 2_000_000;
const pieceLength = 800;
const goldenRatio = 0.618_033_988_75;

/** The same, by a sample of evenly spread pieces: never more than a millisecond or so. */
export function samplePrompt(prompt: Prompt): number {
  return sampling(prompt, sampledOfCall);
}

/**
 * Counts the whole prompt, unless it is longer than a model's context can be.
 * @param random a number in [0, 1) that selects the samples of a long prompt, so that clients cannot hide text
 * from them.
 */
export function countPrompt(prompt: Prompt, random: () => number): number {
  return sampling(prompt, sampledOfCount, random);
}

function sampling(prompt: Prompt, most: number, random?: () => number): number {
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
