/**
 * Signals of the process: SIGHUP reads the config again, SIGUSR2 replaces the workers, SIGTERM and SIGINT stop the gateway.
 * They may arrive during the start, when calls may already run; without a handler they would end the process at
 * once.
 */
export type Signal = 'SIGHUP' | 'SIGUSR2' | 'SIGTERM' | 'SIGINT';

const signals: readonly Signal[] = ['SIGHUP', 'SIGUSR2', 'SIGTERM', 'SIGINT'];

const stops: ReadonlySet<Signal> = new Set(['SIGTERM', 'SIGINT']);

export class Signals {
  readonly #early = new Set<Signal>();
  #run: ((signal: Signal) => void) | undefined;

  /** Listens from now on. */
  listen(): void {
    for (const signal of signals) process.on(signal, () => this.#heard(signal));
  }

  /** Calls `run` for each from now on, and once for those that came before. */
  handle(run: (signal: Signal) => void): void {
    this.#run = run;
    for (const signal of this.#early) run(signal);
  }

  #heard(signal: Signal): void {
    if (this.#run !== undefined) return this.#run(signal);
    // A second stop signal during the start ends the process at once, since the start may hang.
    if (stops.has(signal) && this.#stopsEarly) return endBy(signal);
    this.#early.add(signal);
  }

  get #stopsEarly(): boolean {
    return this.#early.has('SIGTERM') || this.#early.has('SIGINT');
  }
}

/** Ends the process as the default handler of the signal would. */
function endBy(signal: Signal): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/** Of this process. */
export const processSignals = new Signals();
