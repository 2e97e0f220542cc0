/** Tokens of a prompt, estimated by the kinds of its characters. */
import type { Medium, Prompt } from '../core/description.ts';
import type { ImageRule } from '../core/provider.ts';

/** Tokens of a prompt by the kinds of its characters, not rounded. */
export function estimatePrompt({ texts, media, frameTokens }: Prompt): number {
  let tokens = frameTokens;
  for (const text of texts) tokens += estimateText(text);
  for (const medium of media) tokens += mediumTokens(medium);
  return tokens;
}

/** How many characters of a prompt are examined where a call waits for the number. */
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
  const offsetOf = (piece: number): number =>
    // Spread unevenly, so that a text which repeats itself is seen in all of its parts.
    piece * stride + Math.floor((random?.() ?? (piece * goldenRatio) % 1) * (stride - pieceLength));
  let seen = 0;
  let tokens = 0;
  let piece = 0;
  let next = offsetOf(0);
  /** Where the text begins in all of them. */
  let from = 0;
  for (const text of prompt.texts) {
    while (next < from + text.length) {
      const looked = text.slice(next - from, next - from + pieceLength);
      tokens += estimateText(looked);
      seen += looked.length;
      piece += 1;
      next = offsetOf(piece);
    }
    from += text.length;
  }
  const rest = { texts: [], media: prompt.media, frameTokens: prompt.frameTokens };
  return estimatePrompt(rest) + (tokens * length) / Math.max(1, seen);
}

/** An escape of JSON. Some clients write all characters outside ASCII so. */
const escape = /\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/g;
const escaped: { readonly [letter: string]: string } = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/**
 * The same of JSON that is not parsed, for a prompt without media. The names of members, types, ids and the signs between
 * texts count as text.
 * @param most how many bytes are examined
 */
export function sampleJson(parts: readonly Uint8Array[], most = sampledOfCall): number {
  let length = 0;
  for (const part of parts) length += part.length;
  const pieces = Math.ceil(Math.min(length, most) / pieceLength);
  let seen = 0;
  let tokens = 0;
  for (let piece = 0; piece < pieces; piece += 1) {
    let at = Math.floor(((piece + ((piece * goldenRatio) % 1)) / pieces) * length);
    for (const part of parts) {
      if (at < part.length) {
        const looked = Buffer.from(
          part.buffer,
          part.byteOffset + at,
          Math.min(pieceLength, part.length - at),
        );
        tokens += estimateText(plainText(looked));
        seen += looked.length;
        break;
      }
      at -= part.length;
    }
  }
  return (tokens * length) / Math.max(1, seen);
}

/** No text has a word of this length: it is base64 of a file, or of reasoning that is sealed. */
const encoded = /[\w+/=-]{120,}/g;

/** A cut through a character leaves a rest, which is omitted. */
function plainText(json: Buffer): string {
  const text = json.toString('utf8').replaceAll('\uFFFD', '').replace(encoded, '');
  return text.replace(escape, (_, unit: string | undefined, letter: string) =>
    unit === undefined
      ? (escaped[letter] ?? letter)
      : String.fromCharCode(Number.parseInt(unit, 16)),
  );
}

// What images, documents and audio in a prompt cost, by published rules or by a stated constant.

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

// Guesses the tokens of a text from the kinds of its characters, for models whose tokenizer is not at
// hand. Bytes alone say little: prose has four a token, base64 one and a half, rare scripts less than
// one. The weights are fitted to what public tokenizers count, and kept above them
// (test/unit/tokens/text-estimate.test.ts holds them to it): a guess may be too high, never far too low.

const lower = 1;
const upper = 2;
const digit = 3;
const space = 4;
const newline = 5;
const sign = 6;
const tab = 7;
const control = 8;

const blanks: ReadonlyMap<number, number> = new Map([
  [32, space],
  [9, tab],
  [10, newline],
  [13, newline],
]);
/** What an ASCII character is to tokenizers; 0 stands for everything behind them. */
const kinds = new Uint8Array(256).map((_, code) => {
  if (code >= 128) return 0;
  if (code >= 97 && code <= 122) return lower;
  if (code >= 65 && code <= 90) return upper;
  if (code >= 48 && code <= 57) return digit;
  return blanks.get(code) ?? (code < 32 || code === 127 ? control : sign);
});

/** Letters of a word that its first token covers; each further one costs a share. */
const firstTokenLetters = 5;
const letterShare = 0.24;
/** Words in capitals are rarer than others. */
const capitalShare = 0.45;
const signShare = 0.6;
/** Long runs of one whitespace character are split into tokens of this many. */
const spacesOfToken = 40;
const tabsOfToken = 10;
const newlinesOfToken = 10;

/**
 * The letters that often follow a, b, c, … in English. A pair outside of it is where a token
 * ends: names, other languages, random text.
 */
const followers =
  'bcdgiklmnprstuvwy aeijlorsuy acehiklortu adegiosu abcdefglmnopqrstvwxy aefiortu aehinrsu aeiortu ' +
  'abcdefglmnoprstvz es aeis adeilostuy abegimopsu acdefgiklopstuvy abcdfgiklmnoprstuvw aeilmoprstu ' +
  'u acdegiklmnorstuvy acehioprstuvy acehiloprstuy abcdegilmnprst aegi aehinors at nops e';
const rarePairCost = 0.65;
const rarePairs = new Uint8Array(26 * 26).fill(1);
followers.split(' ').forEach((seconds, first) => {
  for (const second of seconds) rarePairs[first * 26 + second.charCodeAt(0) - 97] = 0;
});

/**
 * Tokens of one UTF-16 unit outside ASCII, by the end of its range. Of what people write, what it costs in
 * their texts; of the rest its bytes, which no tokenizer goes beyond: a prompt of rare characters must not
 * pass for a small one.
 */
const scripts: readonly (readonly [end: number, tokens: number])[] = [
  [0x01_7f, 1], // Latin with marks
  [0x03_6f, 2], // rare Latin, phonetic signs, combining marks
  [0x03_ff, 1], // Greek
  [0x04_5f, 0.6], // Cyrillic
  [0x05_cf, 2], // rare Cyrillic, Armenian, Hebrew points
  [0x05_ff, 1.15], // Hebrew
  [0x06_20, 2],
  [0x06_52, 0.95], // Arabic
  [0x06_d5, 1.2], // its letters of other languages
  [0x1f_ff, 2], // Syriac, Indic, Thai, Georgian, Khmer and others
  [0x20_6f, 1.75], // dashes, quotation marks
  [0x21_8f, 2.5],
  [0x25_ff, 1.75], // arrows, mathematics, box drawing
  [0x27_bf, 2.5],
  [0x2f_ff, 3], // Braille and other signs
  [0x30_ff, 1.15], // kana, CJK punctuation
  [0x4d_ff, 3], // rare Han
  [0x9f_ff, 1.45], // Han
  [0xab_ff, 3],
  [0xd7_af, 1.35], // Hangul
  [0xdf_ff, 2], // halves of emoji and of rare scripts
  [0xfd_ff, 3],
  [0xfe_0f, 2], // variants of emoji
  [0xfe_ff, 3],
  [0xff_ff, 1.75], // full-width forms
];

function tokensOfUnit(code: number): number {
  for (const [end, tokens] of scripts) if (code <= end) return tokens;
  return 3;
}

/** Where texts are written as bytes to be read: an index into bytes is cheaper than one into a string. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024);

/** Tokens of a text, not rounded; 0 for ''. Calls with limits wait for it: each character is read once. */
export function estimateText(text: string): number {
  if (text.length * 3 > scratch.length) return estimateBytes(Buffer.from(text));
  return estimateBytes(scratch, scratch.write(text));
}

/** The same of UTF-8. One function, since it runs for every byte: a call for each would double its cost. */
// oxlint-disable-next-line eslint/complexity
function estimateBytes(bytes: Uint8Array, length = bytes.length): number {
  let tokens = 0;
  let furtherLetters = 0;
  let pairs = 0;
  let at = 0;
  while (at < length) {
    const start = at;
    const byte = bytes[at] ?? 0;
    at += 1;
    if (byte >= 97 && byte <= 122) {
      let before = byte - 97;
      while (at < length) {
        const letter = (bytes[at] ?? 0) - 97;
        if (letter < 0 || letter > 25) break;
        pairs += rarePairs[before * 26 + letter] ?? 0;
        before = letter;
        at += 1;
      }
      tokens += 1;
      if (at - start > firstTokenLetters) furtherLetters += at - start - firstTokenLetters;
    } else if (byte >= 128) {
      at += furtherBytes(byte);
      tokens += tokensOfCharacter(bytes, start);
    } else if (byte !== 32 || at === length || (bytes[at] ?? 0) <= 32) {
      const kind = kinds[byte];
      while (at < length && kinds[bytes[at] ?? 0] === kind) at += 1;
      tokens += tokensOfRun(byte, at - start - 1, at < length ? (bytes[at] ?? 0) : Number.NaN);
    } else {
      if (kinds[bytes[at] ?? 0] === digit) tokens += ofBlank(bytes, at + 1, length);
    }
  }
  return tokens + furtherLetters * letterShare + pairs * rarePairCost;
}

/** Of a character outside ASCII, by its first byte. */
function furtherBytes(byte: number): number {
  return byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
}

function tokensOfCharacter(bytes: Uint8Array, start: number): number {
  const [first = 0, second = 0, third = 0] = [bytes[start], bytes[start + 1], bytes[start + 2]];
  if (first < 0xe0) return tokensOfUnit(((first & 0x1f) << 6) | (second & 0x3f));
  // Both halves of what takes two units are above all scripts that are distinguished.
  if (first >= 0xf0) return 2 * tokensOfUnit(0xd8_00);
  return tokensOfUnit(((first & 0x0f) << 12) | ((second & 0x3f) << 6) | (third & 0x3f));
}

/**
 * Tokens of one space before a digit, which ends at `at`: a space is no part of a number, but numbers of several
 * digits are guessed high enough.
 */
function ofBlank(bytes: Uint8Array, at: number, length: number): number {
  return at < length && kinds[bytes[at] ?? 0] === digit ? 0 : 1;
}

/** @param more length of the run less one. @param next the unit after it; NaN at the end. */
function tokensOfRun(code: number, more: number, next: number): number {
  switch (kinds[code]) {
    case upper:
      // A capital is part of the word that it begins.
      return more === 0 && kinds[next] === lower ? 0 : 1 + more * capitalShare;
    case control:
      return 1 + more;
    case digit:
      // Some vocabularies know single digits only.
      return 1 + more;
    case space:
      return more === 0 && next > 32 ? 0 : 1 + more / spacesOfToken;
    case tab:
      // One tab goes with the word after it, as one space does, which is examined before.
      return more === 0 && next > 32 ? 0 : 1 + more / tabsOfToken;
    case newline:
      return 0.8 + more / newlinesOfToken;
    default:
      return 1 + more * signShare;
  }
}
