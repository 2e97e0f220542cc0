/** Points that no line reaches: a line needs two beside each other, so a chart has to draw these as dots. */

/** Indexes of the values that have nothing on either side. */
export function lonePoints(values: readonly (number | null | undefined)[]): number[] {
  const isThere = (index: number): boolean => values[index] !== null && values[index] !== undefined;
  return values.flatMap((_, i) => (isThere(i) && !isThere(i - 1) && !isThere(i + 1) ? [i] : []));
}
