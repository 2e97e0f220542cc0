/** Whether bytes may be the image that they are said to be; they are never decoded (B59). */

/** How the four formats that every provider takes begin, in base64. */
const beginnings = ['iVBORw0KGgo', '/9j/', 'R0lGOD', 'UklGR'];
const known: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/jpg',
  'image/gif',
  'image/webp',
]);
/** Shorter than any image; whoever sends so little tests something. */
const leastLength = 16;

/**
 * False when the beginning is that of no known image. Providers mind a wrong name of the format in
 * different ways, so that one image under another's name passes.
 */
export function mayBeImage(mediaType: string, base64: string): boolean {
  if (!known.has(mediaType) || base64.length < leastLength) return true;
  return beginnings.some((beginning) => base64.startsWith(beginning));
}
