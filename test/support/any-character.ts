import * as fc from 'fast-check';

const surrogates = { first: 0xd800, count: 0x800 };

/** A code point up to this one, surrogates left out. */
function upTo(last: number): fc.Arbitrary<string> {
  return fc
    .nat(last)
    .map((index) =>
      String.fromCodePoint(index < surrogates.first ? index : index + surrogates.count),
    );
}

/** Characters of several code points: a combined accent, a flag, a joined emoji. */
const combined = fc.constantFrom('e\u0301', '\u{1f1ee}\u{1f1f8}', '\u{1f469}\u200d\u{1f680}');

/**
 * Any character: ASCII with its controls, and those of two, three and four bytes in UTF-8. The unit of a string instead of
 * fast-check's own `binary` and `grapheme`, which first fill a table of all of Unicode: two seconds of CPU in each process.
 */
export const anyCharacter: fc.Arbitrary<string> = fc.oneof(
  upTo(0x7f),
  upTo(0x7ff),
  upTo(0xffff - surrogates.count),
  upTo(0x10_ffff - surrogates.count),
  combined,
);
