/**
 * Texts whose presence in a body says something before it is read as a value: a search for each of them takes longer
 * than the walk in WebAssembly (decision 0028), which sees them on its way.
 */

/** A text stands for itself as it is written in the bytes, quotes and escapes included. */
export const marks = {
  /** What all escapes of letters and digits begin with: most bodies have none. */
  escape: ['\\u00'],
  /** What stands in every part that is no text, in either format and in what engines add to them. */
  media: [
    '"input_audio"',
    '"image_url"',
    '"image"',
    '"file"',
    '"document"',
    '"video_url"',
    '"video"',
    '"audio_url"',
    '"audio"',
  ],
  cacheControl: ['"cache_control"'],
  /** The longer of the times that caches are written for. */
  hour: ['"1h"'],
  /** What the gateway sealed itself, of reasoning that another provider gave. */
  sealed: ['"gw1.'],
} as const satisfies { readonly [mark: string]: readonly string[] };

export type Mark = keyof typeof marks;

/** The bit of a mark where several are told in one number. */
export const bitOf: { readonly [M in Mark]: number } = {
  escape: 1,
  media: 2,
  cacheControl: 4,
  hour: 8,
  sealed: 16,
};
