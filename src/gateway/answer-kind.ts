/** Tells by the first bytes, not by the content-type alone, what an answer is (F34). */

const eventFields = ['data:', 'event:', 'id:', 'retry:', ':'];
const sniffedBytes = 64;

/** What the beginning of an answer shows; `unknown` while there is too little of it. */
export function kindOf(bytes: Buffer): 'document' | 'stream' | 'neither' | 'unknown' {
  const text = bytes
    .toString('utf8', 0, sniffedBytes)
    .replace(/^\ufeff/, '')
    .trimStart();
  if (text.startsWith('{')) return 'document';
  if (eventFields.some((field) => text.startsWith(field))) return 'stream';
  const tooLittle =
    bytes.length < sniffedBytes && eventFields.some((field) => field.startsWith(text));
  return tooLittle ? 'unknown' : 'neither';
}
