/** The end of a server-sent event. */

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * A frame with the blank line that makes clients read it, which the last frame of a closed stream may
 * lack (F51). The same buffer when it is there.
 */
export function withBlankLine(bytes: Buffer): Buffer {
  const last = bytes.length - 1;
  if (bytes[last] === lineFeed && bytes[last - 1] === lineFeed) return bytes;
  let lineEnds = 0;
  for (let i = last; i >= 0; i--) {
    const byte = bytes[i];
    if (byte === lineFeed) {
      lineEnds += 1;
      if (bytes[i - 1] === carriageReturn) i -= 1;
    } else if (byte === carriageReturn) lineEnds += 1;
    else break;
  }
  if (lineEnds >= 2) return bytes;
  return Buffer.concat([bytes, Buffer.from(lineEnds === 1 ? '\n' : '\n\n')]);
}
