/** Tokens of a prompt, estimated by the kinds of its characters. */
import type { Medium, Prompt } from '../core/description.ts';
import type { ImageRule } from '../core/tokenizer.ts';
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

// What pictures, documents and sound in a prompt cost, by published rules or by a stated constant.

/** Where neither size nor rule is known: a large picture at most vendors. */
const unknownImageTokens = 1600;
const largestImageTokens = 5000;
/** Most vendors count an image by its area: about this many pixels per token. */
const pixelsPerToken = 750;
/** Text and picture of one page. */
const pageTokens = 2500;
const base64PerPage = 100_000;
/** Coded speech: 32 tokens a second at 32 kbit/s. */
const base64PerAudioToken = 160;

/** @param rule the vendor's own for images, where it is known. */
export function mediumTokens({ kind, data, lowDetail }: Medium, rule?: ImageRule): number {
  if (kind === 'audio') return Math.ceil((data?.length ?? 0) / base64PerAudioToken);
  if (kind === 'document') {
    return pageTokens * Math.max(1, Math.ceil((data?.length ?? 0) / base64PerPage));
  }
  const size = data === undefined ? undefined : imageSize(data);
  if (rule !== undefined) return imageTokens(rule, size ?? { width: 2048, height: 768 }, lowDetail);
  if (size === undefined) return unknownImageTokens;
  return Math.min(largestImageTokens, Math.ceil((size.width * size.height) / pixelsPerToken) + 10);
}

interface ImageSize {
  readonly width: number;
  readonly height: number;
}

function imageTokens(rule: ImageRule, size: ImageSize, lowDetail: boolean): number {
  if (rule.kind === 'patches') {
    const patches = Math.ceil(size.width / 32) * Math.ceil(size.height / 32);
    return Math.ceil(Math.min(1536, patches) * rule.factor);
  }
  if (lowDetail) return rule.base;
  const fit = Math.min(1, 2048 / Math.max(size.width, size.height));
  const short = Math.min(1, 768 / (Math.min(size.width, size.height) * fit));
  const tilesOf = (length: number): number => Math.ceil((length * fit * short) / 512);
  return rule.base + rule.tile * tilesOf(size.width) * tilesOf(size.height);
}

/** A header is short, but a JPEG may hold a preview before its size. */
const headerBase64 = 256 * 1024;

/** Width and height of a PNG, GIF, WebP or JPEG; undefined for anything else. */
function imageSize(base64: string): ImageSize | undefined {
  const bytes = Buffer.from(base64.slice(0, headerBase64), 'base64');
  if (bytes.length < 30) return undefined;
  if (bytes.readUInt32BE(0) === 0x89_50_4e_47) {
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  }
  if (bytes.toString('latin1', 0, 3) === 'GIF') {
    return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  }
  if (bytes.toString('latin1', 8, 12) === 'WEBP') return webpSize(bytes);
  return bytes.readUInt16BE(0) === 0xff_d8 ? jpegSize(bytes) : undefined;
}

function webpSize(bytes: Buffer): ImageSize | undefined {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8X':
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3f_ff) + 1, height: ((bits >>> 14) & 0x3f_ff) + 1 };
    }
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3f_ff, height: bytes.readUInt16LE(28) & 0x3f_ff };
    default:
      return undefined;
  }
}

/** Walks the segments to the frame header. */
function jpegSize(bytes: Buffer): ImageSize | undefined {
  let at = 2;
  while (at + 9 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
