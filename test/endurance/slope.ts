/** A straight line through samples, by least squares. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Slope {
  /** y for each x. */
  readonly slope: number;
  /** Standard error of it; 0 where there are too few points. */
  readonly error: number;
}

export function slopeOf(points: readonly Point[]): Slope {
  const count = points.length;
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / count;
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / count;
  let xx = 0;
  let xy = 0;
  for (const { x, y } of points) {
    xx += (x - meanX) ** 2;
    xy += (x - meanX) * (y - meanY);
  }
  if (count < 2 || xx === 0) return { slope: 0, error: 0 };
  const slope = xy / xx;
  if (count < 3) return { slope, error: 0 };
  const rest = points.reduce((sum, { x, y }) => sum + (y - meanY - slope * (x - meanX)) ** 2, 0);
  return { slope, error: Math.sqrt(rest / (count - 2) / xx) };
}
