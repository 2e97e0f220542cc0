/** Whether bytes may be the image that they are said to be; they are never decoded (B59). */

/** How the four formats that every provider takes begin, in base64. */
const formats: readonly (readonly [beginning: string, mediaType: string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
];
const known: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/jpg',
  'image/gif',
  'image/webp',
]);
/** Shorter than any image, as in tests. */
const leastLength = 16;

/** The media type that the bytes tell; undefined where they begin as none of the four formats does. */
export function imageTypeOf(base64: string): string | undefined {
  return formats.find(([beginning]) => base64.startsWith(beginning))?.[1];
}

/**
 * False when the beginning is that of no known image. Providers mind a wrong name of the format in
 * different ways, so that one image under another's name passes.
 */
export function mayBeImage(mediaType: string, base64: string): boolean {
  if (!known.has(mediaType) || base64.length < leastLength) return true;
  return imageTypeOf(base64) !== undefined;
}
