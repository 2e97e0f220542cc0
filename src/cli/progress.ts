/** How far a long piece of work is: a bar on a terminal, a line now and then anywhere else. */
import type { Clock } from '../core/runtime.ts';
import { bytesText } from '../core/display.ts';
import { printable } from './table.ts';

export interface ProgressOptions {
  write(text: string): void;
  readonly clock: Clock;
  /** Width of the terminal; absent = this is none. */
  readonly terminalColumns?: number;
}

export interface Progress {
  progress(step: Step, bytes: number, total?: number): void;
  note(text: string): void;
  /** Leaves the line of the bar. */
  end(): void;
}

type Step = 'reading' | 'fetching' | 'copying';

const titles: { readonly [step in Step]: string } = {
  reading: 'checking what is there',
  fetching: 'fetching',
  copying: 'copying',
};

const redrawMs = 100;
const plainPercent = 10;
const plainBytes = 250_000_000;
const rateWindowMs = 5000;
const barWidth = 16;

interface Sample {
  readonly at: number;
  readonly bytes: number;
}

export function createProgress(options: ProgressOptions): Progress {
  return options.terminalColumns === undefined ? new PlainProgress(options) : new Bar(options);
}

/** For files and pipes: a line at the beginning and at each tenth. */
class PlainProgress implements Progress {
  readonly #options: ProgressOptions;
  #step: Step | undefined;
  #told = 0;

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  progress(step: Step, bytes: number, total?: number): void {
    const mark =
      total === undefined || total === 0
        ? Math.floor(bytes / plainBytes)
        : Math.floor((bytes / total) * (100 / plainPercent));
    if (step === this.#step && mark <= this.#told) return;
    this.#step = step;
    this.#told = mark;
    this.#options.write(`${titles[step]}: ${amountText(bytes, total)}\n`);
  }

  note(text: string): void {
    this.#options.write(`${printable(text)}\n`);
  }

  end(): void {
    // Each line was complete.
  }
}

/** One line that is written over and over. */
class Bar implements Progress {
  readonly #options: ProgressOptions;
  readonly #samples: Sample[] = [];
  #step: Step | undefined;
  #drawnAt = -Infinity;
  #isOpen = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  progress(step: Step, bytes: number, total?: number): void {
    const { clock, terminalColumns = 80, write } = this.#options;
    const now = clock.now();
    if (step !== this.#step) {
      this.end();
      this.#samples.length = 0;
      this.#step = step;
    }
    this.#samples.push({ at: now, bytes });
    if (now - this.#drawnAt < redrawMs && bytes !== total) return;
    this.#drawnAt = now;
    while ((this.#samples[0]?.at ?? now) < now - rateWindowMs) this.#samples.shift();
    const bar = total === undefined ? [] : [barText(bytes / Math.max(1, total))];
    const figures = [amountText(bytes, total), ...this.#rateText(bytes, total)];
    const full = [titles[step], ...bar, ...figures].join('  ');
    // Where there is no room for all, the figures say more than the bar.
    const line = full.length < terminalColumns ? full : [titles[step], ...figures].join('  ');
    write(`\r${line.slice(0, terminalColumns - 1)}\u001B[K`);
    this.#isOpen = true;
  }

  note(text: string): void {
    this.end();
    this.#options.write(`${printable(text)}\n`);
  }

  end(): void {
    if (this.#isOpen) this.#options.write('\n');
    this.#isOpen = false;
    this.#drawnAt = -Infinity;
  }

  #rateText(bytes: number, total: number | undefined): readonly string[] {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (first === undefined || last === undefined || last.at - first.at < 500) return [];
    const perSecond = ((last.bytes - first.bytes) / (last.at - first.at)) * 1000;
    if (perSecond <= 0) return [];
    const left = total === undefined ? [] : [`${timeText((total - bytes) / perSecond)} left`];
    return [`${bytesText(perSecond)}/s`, ...left];
  }
}

function barText(share: number): string {
  const full = Math.min(barWidth, Math.floor(share * barWidth));
  return `[${'#'.repeat(full)}${'.'.repeat(barWidth - full)}]`;
}

function amountText(bytes: number, total: number | undefined): string {
  if (total === undefined) return bytesText(bytes);
  const percent = total === 0 ? 100 : Math.floor((bytes / total) * 100);
  return `${percent} %  ${bytesText(bytes)} of ${bytesText(total)}`;
}

function timeText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
