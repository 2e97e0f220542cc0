/**
 * Signals of the process: SIGHUP reads the config again, or stops the gateway when its terminal was closed; SIGUSR2
 * replaces the workers; SIGTERM and SIGINT stop the gateway. They may arrive during the start, when calls may already
 * run; without a handler they would end the process at once.
 */
import { isatty } from 'node:tty';

export type Signal = 'SIGHUP' | 'SIGUSR2' | 'SIGTERM' | 'SIGINT';

const signals: readonly Signal[] = ['SIGHUP', 'SIGUSR2', 'SIGTERM', 'SIGINT'];

const stops: ReadonlySet<Signal> = new Set(['SIGTERM', 'SIGINT']);

/**
 * Ctrl-C under `npm start` arrives twice: the terminal sends SIGINT to npm and to the gateway, and npm passes it on. A
 * second one within this time is the same key press.
 */
export const samePressMs = 800;

export class Signals {
  readonly #now: () => number;
  readonly #early = new Set<Signal>();
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #run: ((signal: Signal) => void) | undefined;
  #hadTerminal = false;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Listens from now on. */
  listen(): void {
    this.#hadTerminal = isAtTerminal();
    for (const signal of signals) process.on(signal, () => this.heard(signal));
  }

  /** Calls `run` for each from now on, and once for those that came before. */
  handle(run: (signal: Signal) => void): void {
    this.#run = run;
    for (const signal of this.#early) run(signal);
  }

  /**
   * Whether the terminal that the process wrote to is closed. The kernel then sends SIGHUP, as a person sends it who wants
   * a reload. Always false under a supervisor, under nohup and in the background with a log file: no output is a terminal.
   */
  get hasLostTerminal(): boolean {
    return this.#hadTerminal && !isAtTerminal();
  }

  /** A signal has arrived. Signals that arrive while the event loop is blocked have the time at which it goes on. */
  heard(signal: Signal): void {
    if (signal === 'SIGINT') {
      const now = this.#now();
      if (now - this.#interruptedAt < samePressMs) return;
      this.#interruptedAt = now;
    }
    if (this.#run !== undefined) return this.#run(signal);
    // A second stop signal during the start ends the process at once, since the start may hang.
    if (stops.has(signal) && this.#stopsEarly) return endBy(signal);
    this.#early.add(signal);
  }

  get #stopsEarly(): boolean {
    return this.#early.has('SIGTERM') || this.#early.has('SIGINT');
  }
}

/**
 * Whether an output is a terminal. A closed terminal is none any more: the system refuses to say anything of it. The input
 * does not count: jobs in the background, and macOS's nohup, keep the terminal there.
 */
function isAtTerminal(): boolean {
  return [1, 2].some((fd) => isatty(fd));
}

/** Ends the process as the default handler of the signal would. */
function endBy(signal: Signal): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/** Of this process. */
export const processSignals = new Signals();
