/**
 * Cuts a text so that no piece has a long run without white space: merging one takes time with the
 * square of its length (26 s for 200,000 letters). A cut adds a token at most.
 */

const longestRun = 400;
const longRun = new RegExp(`\\S{${longestRun}}`, 'g');

/** The pieces in order; the text itself when nothing is to be cut. */
export function pieces(text: string): readonly string[] {
  const found: string[] = [];
  let start = 0;
  for (const match of text.matchAll(longRun)) {
    const end = match.index + longestRun;
    found.push(text.slice(start, end));
    start = end;
  }
  if (start < text.length) found.push(text.slice(start));
  return found;
}
