/** What a chart draws, and the colours of series without a colour of their own. */

export interface Series {
  readonly name: string;
  /** One for each time; null where there is nothing. */
  readonly values: readonly (number | null)[];
  /** A custom property of its own; default: by its index. */
  readonly colour?: string;
}

/** A custom property of the theme, by the index of the series. */
export function seriesColour(index: number): string {
  return `--series-${(index % 8) + 1}`;
}
