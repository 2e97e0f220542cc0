/**
 * Guesses the tokens of a text from the kinds of its characters, for models whose tokenizer is not at
 * hand. Bytes alone say little: prose has four a token, base64 one and a half, rare scripts less than
 * one. The weights are fitted to what public tokenizers count, and kept above them
 * (test/unit/tokens/text-estimate.test.ts holds them to it): a guess may be too high, never far too low.
 */

const lower = 1;
const upper = 2;
const digit = 3;
const space = 4;
const newline = 5;
const sign = 6;

/** What an ASCII character is to tokenizers; 0 stands for everything behind them. */
const kinds = new Uint8Array(128).map((_, code) => {
  if (code >= 97 && code <= 122) return lower;
  if (code >= 65 && code <= 90) return upper;
  if (code >= 48 && code <= 57) return digit;
  if (code === 32 || code === 9) return space;
  return code === 10 || code === 13 ? newline : sign;
});

/** Letters of a word that its first token covers; each further one costs a share. */
const firstTokenLetters = 5;
const letterShare = 0.24;
/** Words in capitals are rarer than others. */
const capitalShare = 0.45;
const signShare = 0.6;

/**
 * The letters that often stand behind a, b, c, … in English. A pair outside of it is where a token
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

/** Tokens of one UTF-16 unit outside ASCII, by the end of its range. */
const scripts: readonly (readonly [end: number, tokens: number])[] = [
  [0x02_4f, 1], // Latin with marks
  [0x03_6f, 2], // phonetic signs, combining marks
  [0x03_ff, 1], // Greek
  [0x05_2f, 0.6], // Cyrillic
  [0x05_ff, 1.15], // Armenian, Hebrew
  [0x07_ff, 0.95], // Arabic, Syriac
  [0x1f_ff, 2], // Indic, Thai, Georgian, Khmer and others
  [0x2b_ff, 1.75], // signs, arrows, box drawing
  [0x2f_ff, 2.5],
  [0x30_ff, 1.15], // kana, CJK punctuation
  [0x9f_ff, 1.45], // Han
  [0xab_ff, 2.5],
  [0xd7_af, 1.35], // Hangul
  [0xff_ff, 1.75], // halves of emoji and of rare scripts, full-width forms
];

function tokensOfUnit(code: number): number {
  for (const [end, tokens] of scripts) if (code <= end) return tokens;
  return 2;
}

function kindOf(code: number): number {
  return code < 128 ? (kinds[code] ?? sign) : 0;
}

/** Tokens of a text, not rounded; 0 for ''. Calls with limits wait for it: each character is read once. */
export function estimateText(text: string): number {
  const { length } = text;
  let tokens = 0;
  let words = 0;
  let furtherLetters = 0;
  let pairs = 0;
  let at = 0;
  while (at < length) {
    const start = at;
    const code = text.charCodeAt(at);
    at += 1;
    if (code >= 97 && code <= 122) {
      let before = code - 97;
      while (at < length) {
        const letter = text.charCodeAt(at) - 97;
        if (letter < 0 || letter > 25) break;
        pairs += rarePairs[before * 26 + letter] ?? 0;
        before = letter;
        at += 1;
      }
      words += 1;
      if (at - start > firstTokenLetters) furtherLetters += at - start - firstTokenLetters;
    } else if (code !== 32 || !(text.charCodeAt(at) > 32)) {
      at = endOfRun(text, start);
      tokens += tokensOfRun(code, at - start - 1, text.charCodeAt(at));
    }
  }
  return tokens + words + furtherLetters * letterShare + pairs * rarePairCost;
}

/** Where characters of another kind follow; each one outside ASCII is a run of its own. */
function endOfRun(text: string, start: number): number {
  const kind = kindOf(text.charCodeAt(start));
  let end = start + 1;
  if (kind !== 0) while (end < text.length && kindOf(text.charCodeAt(end)) === kind) end += 1;
  return end;
}

/** @param more length of the run less one. @param next the unit behind it; NaN at the end. */
function tokensOfRun(code: number, more: number, next: number): number {
  switch (kindOf(code)) {
    case 0:
      return tokensOfUnit(code);
    case upper:
      // A capital is part of the word that it begins.
      return more === 0 && kindOf(next) === lower ? 0 : 1 + more * capitalShare;
    case digit:
      // Some vocabularies know single digits only.
      return 1 + more;
    case space:
      // One tab goes with the word behind it, as one space does, which is looked at before.
      return more === 0 && next > 32 ? 0 : 1 + more / 40;
    case newline:
      return 0.8;
    default:
      return 1 + more * signShare;
  }
}
