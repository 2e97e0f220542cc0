/** Estimates how hard a chosen secret is to guess. What it calls weak is weak. */

/** Secrets below this many bits are refused: they are among the first guesses. */
export const leastBits = 32;
/** Below this many bits the operator is warned; 16 random hexadecimal digits have more. */
export const goodBits = 50;

/** Common first guesses, alone and combined, and keyboard rows. */
const words =
  `password passwort passwd admin administrator root token secret gateway model default change
  changeme letmein welcome test testing example demo key api user login master local localhost
  qwertyuiop asdfghjkl zxcvbnm qwerty asdf`
    .split(/\s+/)
    .toSorted((a, b) => b.length - a.length);
const bitsOfWord = 8;
/** Bits of a character that follows from the ones before it. */
const bitsOfStep = 0.5;

/** Estimated bits of information, from words, sequences, repetitions and character classes. */
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

/** The third character of a sequence (`aaa`, `abc`, `321`), or the end of a repeated group of three. */
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

/** Advice for error messages. */
export const howToMake = 'Make one with: openssl rand -base64 32';

/**
 * Checks that a secret is not among the first guesses.
 * @throws Error that names the variable, never the value.
 */
export function requireNotGuessable(name: string, secret: string): void {
  if (estimatedBits(secret) >= leastBits) return;
  throw new Error(
    `${name} is easy to guess: it consists of few characters, a sequence, a repetition or well-known words. ${howToMake}`,
  );
}
