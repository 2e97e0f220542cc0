/**
 * SIGHUP reads the config again. It may come while the gateway is still starting, from whoever has just
 * edited that config; without anybody who listens it would end the process.
 */
export class Hangups {
  #early = false;
  #run: (() => void) | undefined;

  /** Listens from now on. */
  listen(): void {
    process.on('SIGHUP', () => {
      if (this.#run === undefined) this.#early = true;
      else this.#run();
    });
  }

  /** Calls `run` for each from now on, and once for those that came before. */
  handle(run: () => void): void {
    this.#run = run;
    if (this.#early) run();
  }
}

/** Of this process. */
export const hangups = new Hangups();
