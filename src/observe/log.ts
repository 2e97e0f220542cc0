/**
 * Structured log, one JSON object a line, on a file descriptor. Lines are gathered and written
 * asynchronously: a blocked reader costs lines (counted), never calls (F95). Control characters are
 * escaped, by JSON and here (S13).
 */
import { write, writeSync } from 'node:fs';
import type { Clock, Log, LogFields } from '../core/runtime.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

const rank: { readonly [L in LogLevel]: number } = {
  debug: 0,
  info: 1,
  warn: 2,
  error: 3,
  silent: 4,
};
/** Lines are gathered for so long: one write serves many. */
const writeEveryMs = 50;
const blockBytes = 64 * 1024;
/** 1 MiB of lines may wait for a slow reader; what comes on top is dropped and counted. */
const maxBlocks = 16;
/** A line is cut here, so that it always fits into a block. */
const maxLineLength = 8 * 1024;

/**
 * What JSON leaves as it is and a terminal or a viewer of logs obeys: DEL, the C1 controls (one of them begins
 * a sequence like ESC does), line ends of Unicode, and marks that turn the direction of text.
 */
const obeyed = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function escaped(line: string): string {
  return line.replace(obeyed, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export class LineLog implements Log {
  readonly #fd: number;
  readonly #clock: Clock;
  #level: number;
  /**
   * The block being filled. Lines are encoded right into it: strings gathered by the hundred would be
   * garbage of the longest-lived kind.
   */
  #block: Buffer = Buffer.allocUnsafe(blockBytes);
  #used = 0;
  /** Blocks that wait to be written, the oldest first. */
  readonly #full: Buffer[] = [];
  #writing = false;
  #spare: Buffer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #dropped = 0;
  #time = '';
  #timeOf = 0;

  constructor(options: { readonly fd: number; readonly level: LogLevel; readonly clock: Clock }) {
    this.#fd = options.fd;
    this.#clock = options.clock;
    this.#level = rank[options.level];
  }

  setLevel(level: LogLevel): void {
    this.#level = rank[level];
  }

  debug(event: string, fields?: LogFields): void {
    if (this.#level <= 0) this.#line('debug', event, fields);
  }

  info(event: string, fields?: LogFields): void {
    if (this.#level <= 1) this.#line('info', event, fields);
  }

  warn(event: string, fields?: LogFields): void {
    if (this.#level <= 2) this.#line('warn', event, fields);
  }

  error(event: string, fields?: LogFields): void {
    if (this.#level <= 3) this.#line('error', event, fields);
  }

  /**
   * Writes what is queued before the process ends. A block that the system is writing at that moment
   * may come in behind it: nothing can be waited for any more.
   */
  flush(): void {
    this.#queueBlock();
    try {
      for (const block of this.#full.splice(0)) writeSync(this.#fd, block);
    } catch {
      // A log that cannot be written must not keep the process from ending.
    }
  }

  #line(level: string, event: string, fields: LogFields | undefined): void {
    const start = `{"time":"${this.#now()}","level":"${level}","event":${JSON.stringify(event)}`;
    const rest = fields === undefined ? '}' : JSON.stringify(fields).slice(1);
    const line = `${escaped(`${start}${rest === '}' ? '' : ','}${rest}`)}\n`;
    this.#append(line.length <= maxLineLength ? line : `${start},"too_long":${line.length}}\n`);
    this.#timer ??= setTimeout(() => this.#closeBlock(), writeEveryMs).unref();
  }

  #append(line: string): void {
    // A UTF-16 unit takes three bytes at most.
    if (this.#used + 3 * line.length > blockBytes) this.#closeBlock();
    if (this.#full.length >= maxBlocks) this.#dropped += 1;
    else this.#used += this.#block.write(line, this.#used);
  }

  #closeBlock(): void {
    this.#queueBlock();
    this.#writeNext();
  }

  /** Queues the current block for writing and begins another. */
  #queueBlock(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#used === 0 || this.#full.length >= maxBlocks) return;
    this.#full.push(this.#block.subarray(0, this.#used));
    this.#block = this.#spare ?? Buffer.allocUnsafe(blockBytes);
    this.#spare = undefined;
    this.#used = 0;
  }

  #writeNext(): void {
    if (this.#writing) return;
    const block = this.#full.shift();
    if (block === undefined) return;
    this.#writing = true;
    write(this.#fd, block, () => {
      this.#writing = false;
      this.#spare = Buffer.from(block.buffer, block.byteOffset, blockBytes);
      this.#tellDropped();
      this.#writeNext();
    });
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return;
    const count = this.#dropped;
    this.#dropped = 0;
    this.warn('log lines dropped', { count });
  }

  /** The wall clock in ISO form; formatted once a millisecond. */
  #now(): string {
    const wall = this.#clock.wall();
    if (wall !== this.#timeOf) {
      this.#timeOf = wall;
      this.#time = new Date(wall).toISOString();
    }
    return this.#time;
  }
}
