/**
 * Series by a name of which there may be any number: the first ones get a series each, the others share
 * the series of `other`. Whoever can choose names can fill no memory and no database with them (B49).
 */

import { isPlain } from './family.ts';

/** How many series may still be made; several tables can share one. */
export interface Room {
  left: number;
}

export const other = 'other';
/** Longer names are nobody's label. */
const longestName = 128;

/** Whether nothing else can look like this name, and nobody must scroll to read it. */
export function mayBeLabel(name: string): boolean {
  return name !== other && name.length <= longestName && isPlain(name);
}

export class Capped<T> {
  readonly #series = new Map<string, T>();
  readonly #room: Room;
  readonly #make: (label: string) => T;
  #other: T | undefined;

  constructor(room: Room, make: (label: string) => T) {
    this.#room = room;
    this.#make = make;
  }

  /** @param mayAdd whether the name may get a series if it has none. */
  of(name: string, mayAdd = true): T {
    return this.#series.get(name) ?? this.#begin(name, mayAdd);
  }

  *values(): Iterable<T> {
    yield* this.#series.values();
    if (this.#other !== undefined) yield this.#other;
  }

  #begin(name: string, mayAdd: boolean): T {
    const fits = mayAdd && this.#room.left > 0 && mayBeLabel(name);
    if (!fits) {
      this.#other ??= this.#make(other);
      return this.#other;
    }
    this.#room.left -= 1;
    const series = this.#make(name);
    this.#series.set(name, series);
    return series;
  }
}
