import * as fc from 'fast-check';

const surrogates = { first: 0xd800, count: 0x800 };

/**
 * Any code point, half of them ASCII with its control characters. The unit of a string instead of fast-check's own
 * `binary` and `grapheme`, which first fill a table of all of Unicode: two seconds of CPU in each process.
 */
export const anyCharacter: fc.Arbitrary<string> = fc
  .oneof(fc.nat(0x7f), fc.nat(0x10_ffff - surrogates.count))
  .map((index) =>
    String.fromCodePoint(index < surrogates.first ? index : index + surrogates.count),
  );
