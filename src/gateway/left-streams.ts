/**
 * Streams whose client left and whose provider goes on billing: they are read to their end for the usage
 * that it reports (F73). So few at a time that clients who come and go cannot hold a provider busy.
 */
const mostAtOnce = 64;
/** How long one is read; what it used is estimated then. */
export const longestDrainMs = 60_000;

export class LeftStreams {
  #running = 0;

  /** Whether one more may be read; then `done` must follow. */
  take(): boolean {
    if (this.#running >= mostAtOnce) return false;
    this.#running += 1;
    return true;
  }

  done(): void {
    this.#running -= 1;
  }
}
