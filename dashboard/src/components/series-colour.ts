/** Colours of series without a colour of their own. */

/** A custom property of the theme, by the index of the series. */
export function seriesColour(index: number): string {
  return `--series-${(index % 8) + 1}`;
}
