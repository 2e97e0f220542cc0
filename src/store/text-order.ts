/** By UTF-8 bytes, as SQLite compares text; the same order in every store. */
export function compareText(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
