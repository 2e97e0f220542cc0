/**
 * Streams whose client left and whose provider goes on billing: they are read to their end for the usage
 * that it reports (F73). So few at a time that clients who come and go cannot hold a provider busy.
 */
const mostAtOnce = 64;
/** They keep their places of `limits.streams`: so small a part of them that nobody is refused for it for long. */
const mostShare = 0.1;
/** How long one is read; what it used is estimated then. */
export const longestDrainMs = 60_000;

export class LeftStreams {
  readonly #streams: () => number;
  #running = 0;

  /** @param streams how many calls may run at the same time now. */
  constructor(streams: () => number) {
    this.#streams = streams;
  }

  /** Whether one more may be read; then `done` must follow. */
  take(): boolean {
    if (this.#running >= Math.min(mostAtOnce, mostShare * this.#streams())) return false;
    this.#running += 1;
    return true;
  }

  done(): void {
    this.#running -= 1;
  }
}
