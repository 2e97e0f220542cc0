/** The form of numbers in `gateway.yaml`. */
import { z } from 'zod';

/** A whole number within bounds, or nothing. */
export function whole(least: number, most: number) {
  return z
    .number()
    .int('must be a whole number')
    .min(least, `must be at least ${least}`)
    .max(most, `must be at most ${most}`)
    .optional();
}
