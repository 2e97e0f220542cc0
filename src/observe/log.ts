/**
 * Structured log, one JSON object a line, on a file descriptor. Lines are gathered and written
 * asynchronously: a blocked reader costs lines (counted), never calls (F95). Control characters are
 * escaped by JSON (S13).
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
const maxQueued = 1024 * 1024;
/** Lines are gathered for so long: one write serves many. */
const writeEveryMs = 50;
const writeAtLength = 64 * 1024;

export class LineLog implements Log {
  readonly #fd: number;
  readonly #clock: Clock;
  #level: number;
  #queued = '';
  #writing = false;
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

  /** Writes what is queued before the process ends. */
  flush(): void {
    const text = this.#queued;
    this.#queued = '';
    if (text === '') return;
    try {
      writeSync(this.#fd, text);
    } catch {
      // A log that cannot be written must not keep the process from ending.
    }
  }

  #line(level: string, event: string, fields: LogFields | undefined): void {
    if (this.#queued.length > maxQueued) {
      this.#dropped += 1;
      return;
    }
    const rest = fields === undefined ? '}' : `,${JSON.stringify(fields).slice(1)}`;
    this.#queued += `{"time":"${this.#now()}","level":"${level}","event":${JSON.stringify(event)}${rest === ',}' ? '}' : rest}\n`;
    if (this.#queued.length > writeAtLength) this.#drain();
    else this.#timer ??= setTimeout(() => this.#drain(), writeEveryMs).unref();
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

  #drain(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#writing || this.#queued === '') return;
    const lost = this.#dropped;
    this.#dropped = 0;
    const text =
      lost === 0
        ? this.#queued
        : `${this.#queued}{"level":"warn","event":"log lines dropped","count":${lost}}\n`;
    this.#queued = '';
    this.#writing = true;
    // As bytes: Node reserves three times the length of a string it writes, anew each time.
    write(this.#fd, Buffer.from(text), () => {
      this.#writing = false;
      this.#drain();
    });
  }
}
