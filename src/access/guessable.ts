/** How hard a secret is to guess that a person chose. An estimate: what it calls weak is weak. */

/** Bits below which a secret is refused: it is one of those that are tried first. */
export const leastBits = 32;
/** Bits below which an operator is warned; 16 random hexadecimal digits have more. */
export const goodBits = 50;

/** Tried first, alone and put together; and rows of a keyboard. */
const words =
  `password passwort passwd admin administrator root token secret gateway model default change
  changeme letmein welcome test testing example demo key api user login master local localhost
  qwertyuiop asdfghjkl zxcvbnm qwerty asdf`
    .split(/\s+/)
    .toSorted((a, b) => b.length - a.length);
const bitsOfWord = 8;
/** What follows from the characters before it. */
const bitsOfStep = 0.5;

/** Bits of information, by a guess of how it was made: words, rows, repeats, and the kinds of its characters. */
export function estimatedBits(secret: string): number {
  const lower = secret.toLowerCase();
  const own = Math.log2(kindsOf(secret));
  let bits = 0;
  let at = 0;
  while (at < lower.length) {
    const word = words.find((each) => lower.startsWith(each, at));
    const seen = word !== undefined && lower.slice(0, at).includes(word);
    if (word !== undefined) bits += seen ? bitsOfStep : bitsOfWord;
    else bits += followsFrom(lower, at) ? bitsOfStep : own;
    at += word?.length ?? 1;
  }
  return bits;
}

/** The third of a row (`aaa`, `abc`, `321`), or a piece of three that was there before. */
function followsFrom(text: string, at: number): boolean {
  if (at < 2) return false;
  const step = text.charCodeAt(at) - text.charCodeAt(at - 1);
  const before = text.charCodeAt(at - 1) - text.charCodeAt(at - 2);
  if (step === before && Math.abs(step) <= 1) return true;
  return text.slice(0, at).includes(text.slice(at - 2, at + 1));
}

function kindsOf(secret: string): number {
  const kinds = [
    [/[a-z]/, 26],
    [/[A-Z]/, 26],
    [/\d/, 10],
    [/[^A-Za-z0-9]/, 33],
  ] as const;
  return kinds.reduce((sum, [kind, size]) => (kind.test(secret) ? sum + size : sum), 0);
}

/** How to make a good one, for messages. */
export const howToMake = 'Make one with: openssl rand -base64 32';

/**
 * Checks that a secret is none of those that are tried first.
 * @throws Error that names the variable, never the value.
 */
export function requireNotGuessable(name: string, secret: string): void {
  if (estimatedBits(secret) >= leastBits) return;
  throw new Error(
    `${name} is easy to guess: it is made of few characters, a row, a repetition or well-known words. ${howToMake}`,
  );
}
