/** Work on the store that runs once a minute, a few rows at a time with pauses, so that no call waits. */

const pauseMs = 50;
const everyMs = 60_000;

export abstract class MinuteSweeper {
  /** No further rows: it is being closed. */
  protected closed = false;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  /** Removes everything that has expired. Never throws: failures are retried in a minute. */
  protected abstract sweep(): Promise<void>;

  /** Once a minute from now on. */
  start(): void {
    this.#timer = setInterval(() => void this.run(), everyMs).unref();
  }

  /** Runs one sweep, or joins the running one. Never throws. */
  run(): Promise<void> {
    this.#running ??= this.sweep().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async close(): Promise<void> {
    this.closed = true;
    clearInterval(this.#timer);
    await this.#running;
  }
}

/** The time between two pieces of a sweep. */
export function pauseOfSweep(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, pauseMs).unref();
  });
}
