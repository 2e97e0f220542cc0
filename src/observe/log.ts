/**
 * Structured log, one JSON object a line, on a file descriptor. Lines are gathered and written
 * asynchronously: a blocked reader costs lines (counted), never calls (F95). Control characters are
 * escaped, by JSON and here (S13).
 */
import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { wantsColour } from '../core/display.ts';
import type { Clock, Log, LogFields } from '../core/runtime.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

const rank: { readonly [L in LogLevel]: number } = {
  debug: 0,
  info: 1,
  warn: 2,
  error: 3,
  silent: 4,
};
/** The time for which lines are collected, so that one write serves many. */
const writeEveryMs = 50;
const blockBytes = 64 * 1024;
/** 1 MiB of lines may wait for a slow reader; what comes on top is dropped and counted. */
const maxBlocks = 16;
/** The interval at which a blocked output is tried again, and the maximum time that a stop waits for it. */
const againMs = 50;
const finalWriteMs = 500;
/** A line is cut here, so that it always fits into a block. */
const maxLineLength = 8 * 1024;

/**
 * Characters that JSON does not escape and that a terminal or a log viewer interprets: DEL, the control characters
 * U+0080 to U+009F (one of them begins a sequence like ESC does), line ends of Unicode, and marks that turn the
 * direction of text.
 */
const obeyed = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * A pipe is reopened non-blocking: a blocking write to a full pipe would hold a thread until it is read, and
 * the process could not exit.
 */
function withoutWaiting(fd: number): number {
  try {
    if (process.platform !== 'linux' || !fstatSync(fd).isFIFO()) return fd;
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return fd;
  }
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}

function escaped(line: string): string {
  return line.replace(obeyed, escapeOf);
}

function escapeOf(mark: string): string {
  return `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

interface LineLogOptions {
  readonly fd: number;
  readonly level: LogLevel;
  readonly clock: Clock;
  /** Lines are for a person at a terminal, with or without colours; absent = JSON. */
  readonly pretty?: 'coloured' | 'plain' | undefined;
}

/**
 * Format of the log: readable text for a terminal, JSON for a file or a pipe, whatever the colour settings are.
 */
export function prettyFor(
  isTerminal: boolean,
  env: { readonly [name: string]: string | undefined },
): LineLogOptions['pretty'] {
  if (!isTerminal) return undefined;
  return wantsColour(isTerminal, env) ? 'coloured' : 'plain';
}

export class LineLog implements Log {
  readonly #pretty: LineLogOptions['pretty'];
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
  /** Monotonic ms. */
  #writingSince = 0;
  #spare: Buffer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #dropped = 0;
  #droppedEver = 0;
  #time = '';
  #timeOf = 0;
  /** Lines of debug and info that wait for `release`; absent = none does. */
  #held: string[] | undefined;
  /** The text of `#time`, up to its decimal point. */
  #second = '';
  #secondOf = -1;

  constructor(options: LineLogOptions) {
    this.#pretty = options.pretty;
    this.#fd = withoutWaiting(options.fd);
    this.#clock = options.clock;
    this.#level = rank[options.level];
  }

  /** Lines that a slow reader cost, since the start (F95). */
  get dropped(): number {
    return this.#droppedEver;
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

  /** Keeps lines of debug and info back, so that they do not stand in a text for people. */
  hold(): void {
    this.#held ??= [];
  }

  /** Writes what was held back, and holds nothing from now on. */
  release(): void {
    const lines = this.#held ?? [];
    this.#held = undefined;
    for (const line of lines) this.#put(line);
  }

  /**
   * Writes what is queued before the process ends. A block that the system is writing at that moment
   * may come in after it: nothing can be waited for any more.
   */
  flush(): void {
    this.release();
    this.#queueBlock();
    // After a write that does not come back nothing can be written: it must not keep the process from ending.
    if (this.#writing && performance.now() - this.#writingSince > finalWriteMs) return;
    const until = performance.now() + finalWriteMs;
    for (const block of this.#full.splice(0)) {
      if (!writtenBy(until, this.#fd, block)) return;
    }
  }

  /** Lines that another process of the gateway has made; each ends in a line end. */
  pass(lines: string): void {
    for (const line of lines.split(/(?<=\n)/)) this.#append(line.slice(0, maxLineLength));
    this.#timer ??= setTimeout(() => this.#closeBlock(), writeEveryMs).unref();
  }

  #line(level: string, event: string, fields: LogFields | undefined): void {
    const line =
      this.#pretty === undefined
        ? this.#json(level, event, fields)
        : this.#text(level, event, fields);
    const mayWait = level === 'info' || level === 'debug';
    if (mayWait && this.#held !== undefined) this.#held.push(line);
    else this.#put(line);
  }

  #put(line: string): void {
    this.#append(line);
    this.#timer ??= setTimeout(() => this.#closeBlock(), writeEveryMs).unref();
  }

  #text(level: string, event: string, fields: LogFields | undefined): string {
    const coloured = this.#pretty === 'coloured';
    const line = prettyLine({ time: this.#now(), level, event, fields }, coloured);
    return `${line.length <= maxLineLength ? line : `${line.slice(0, 100)}… (${line.length} characters)`}\n`;
  }

  #json(level: string, event: string, fields: LogFields | undefined): string {
    const start = `{"time":"${this.#now()}","level":"${level}","event":${JSON.stringify(event)}`;
    const rest = fields === undefined ? '}' : JSON.stringify(fields).slice(1);
    // The line end is added before the line is searched: a text that is put together is copied by what reads it first.
    const line = escaped(`${start}${rest === '}' ? '' : ','}${rest}\n`);
    return line.length <= maxLineLength ? line : `${start},"too_long":${line.length}}\n`;
  }

  #append(line: string): void {
    // A UTF-16 unit takes three bytes at most.
    if (this.#used + 3 * line.length > blockBytes) this.#closeBlock();
    if (this.#full.length < maxBlocks) {
      this.#used += this.#block.write(line, this.#used);
      return;
    }
    this.#lose(1);
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
    this.#writingSince = performance.now();
    this.#send(block, 0);
  }

  /** All of a block, however little is taken at a time. */
  #send(block: Buffer, from: number): void {
    write(this.#fd, block, from, block.length - from, null, (error, written) => {
      if (isFull(error)) {
        setTimeout(() => this.#send(block, from), againMs).unref();
        return;
      }
      if (error === null && from + written < block.length) {
        this.#send(block, from + written);
        return;
      }
      // The reader is gone: the buffered lines are lost.
      if (error !== null) this.#lose(linesIn(block, from));
      this.#writing = false;
      this.#spare = Buffer.from(block.buffer, block.byteOffset, blockBytes);
      if (this.#dropped > 0) {
        const count = this.#dropped;
        this.#dropped = 0;
        this.warn('log lines dropped', { count });
      }
      this.#writeNext();
    });
  }

  #lose(lines: number): void {
    this.#dropped += lines;
    this.#droppedEver += lines;
  }

  /**
   * The wall clock in ISO form. Lines of calls hardly ever share a millisecond, but many share a second: the rest
   * of a date is formatted once for all of them.
   */
  #now(): string {
    const wall = this.#clock.wall();
    if (wall === this.#timeOf) return this.#time;
    this.#timeOf = wall;
    const second = Math.floor(wall / 1000);
    if (second !== this.#secondOf) {
      this.#secondOf = second;
      this.#second = new Date(1000 * second).toISOString().slice(0, -4);
    }
    const ms = Math.floor(wall - 1000 * second);
    this.#time = `${this.#second}${ms < 10 ? '00' : ms < 100 ? '0' : ''}${ms}Z`;
    return this.#time;
  }
}

function linesIn(block: Buffer, from: number): number {
  let lines = 0;
  for (let at = block.indexOf(10, from); at !== -1; at = block.indexOf(10, at + 1)) lines += 1;
  return lines;
}

/** Never written: a wait on it is a sleep. */
const neverWoken = new Int32Array(new SharedArrayBuffer(4));

/** Writes all of it before that moment, monotonic ms; false when it could not. */
function writtenBy(until: number, fd: number, block: Buffer): boolean {
  let from = 0;
  while (from < block.length) {
    try {
      from += writeSync(fd, block, from);
    } catch (error) {
      if (!isFull(error) || performance.now() > until) return false;
      Atomics.wait(neverWoken, 0, 0, againMs / 5);
    }
  }
  return true;
}

// A log line for a person at a terminal: time, level, event, and the fields that have a value.

interface PrettyLine {
  /** ISO form. */
  readonly time: string;
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields | undefined;
}

/** SGR numbers of the levels; `faint` is that of the time and of the names of fields. */
const colours: { readonly [level: string]: number } = { debug: 2, info: 36, warn: 33, error: 31 };
const faint = 2;
/** What needs no quotes. */
const plain = /^[\w./:@+-]+$/;

/** @param coloured false under NO_COLOR. Control characters are quoted as JSON has them (S13). */
export function prettyLine({ time, level, event, fields }: PrettyLine, coloured: boolean): string {
  const paint = (text: string, colour: number): string =>
    coloured ? `\u001b[${colour}m${text}\u001b[0m` : text;
  const named = Object.entries(fields ?? {}).flatMap(([name, value]) =>
    value === undefined || value === null
      ? []
      : [`${paint(`${wordOf(name)}=`, faint)}${wordOf(value)}`],
  );
  const head = [
    paint(time.slice(11, 23), faint),
    paint(level.toUpperCase().padEnd(5), colours[level] ?? faint),
    /^[\w :,.-]+$/.test(event) ? event : quoted(event),
  ];
  return [...head, ...named].join(' ');
}

function wordOf(value: string | number | boolean): string {
  const text = String(value);
  return plain.test(text) ? text : quoted(text);
}

/** All that a terminal may obey is written as its number. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (mark) => `\\u${(mark.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
}
