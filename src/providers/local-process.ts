/**
 * One process of the embedded engine (`src/engine/main.ts`): its command line, its environment and
 * its IPC messages. No other module knows them.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { extname } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { isObject } from '../json/value.ts';
import type { Log } from '../core/runtime.ts';

interface ProcessOptions {
  readonly modelPath: string;
  readonly socketPath: string;
  /** What requests call the model. */
  readonly name: string;
  readonly sha256?: string;
  readonly contextSize?: number;
  readonly threads?: number;
  readonly parallel?: number;
  /** A private folder for compiled JavaScript, which makes later starts quicker. */
  readonly cacheDir?: string;
  /** The program to run; absent = the engine. */
  readonly entry?: string;
}

/** A sign of life. */
export interface Beat {
  /** Requests that came in so far. */
  readonly served: number;
  /** Requests that are not done. */
  readonly active: number;
  /** Those of them that wait for the model, not for their caller. */
  readonly computing: number;
  /** Tokens that went through the model so far. */
  readonly steps: number;
  /** The engine was asked to leave and is busy. */
  readonly stays: boolean;
}

interface ProcessListener {
  loading(percent: number): void;
  ready(): void;
  /** It cannot work; the process waits to be ended. */
  failed(reason: string): void;
  beat(beat: Beat): void;
  /** Comes last, and exactly once. */
  ended(end: ProcessEnd): void;
}

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

export class EngineProcess {
  readonly #child: ChildProcess;
  readonly #listener: ProcessListener;
  #ended = false;

  constructor(options: ProcessOptions, log: Log, listener: ProcessListener) {
    this.#listener = listener;
    this.#child = spawnEngine(options);
    logLines(this.#child.stdout, log, options.name);
    logLines(this.#child.stderr, log, options.name);
    this.#child.on('message', (message) => {
      if (!this.#ended) tell(listener, message);
    });
    this.#child.once('exit', (code, signal) => this.#end({ code, signal }));
    this.#child.on('error', () => {
      // Also told when a message cannot be sent; only a process that never was ends by it.
      if (this.#child.pid !== undefined) return;
      listener.failed('The local engine process cannot be started.');
      this.#end({ code: null, signal: null });
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  askBeat(): void {
    this.#ask({ ask: 'beat' });
  }

  /** Asks it to end, unless it is answering a call or fewer than `served` requests came in so far. */
  askLeave(served: number): void {
    this.#ask({ ask: 'leave', served });
  }

  /** At once, also when it is stuck in native code or stopped. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #ask(question: { readonly ask: string; readonly served?: number }): void {
    // A process that is gone is told by `ended`.
    if (this.#child.connected) this.#child.send(question, () => {});
  }

  #end(end: ProcessEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#listener.ended(end);
  }
}

function spawnEngine(options: ProcessOptions): ChildProcess {
  const flags: string[] = [];
  const add = (flag: string, value: string | number | undefined): void => {
    if (value !== undefined) flags.push(flag, String(value));
  };
  add('--socket', options.socketPath);
  add('--model', options.modelPath);
  add('--name', options.name);
  add('--context', options.contextSize);
  add('--threads', options.threads);
  add('--parallel', options.parallel);
  add('--sha256', options.sha256);
  return spawn(process.execPath, [options.entry ?? engineEntry(), ...flags], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: engineEnvironment(options.cacheDir),
  });
}

/** With the same ending as this file: TypeScript in development, JavaScript when published. */
function engineEntry(): string {
  return fileURLToPath(new URL(`../engine/main${extname(import.meta.url)}`, import.meta.url));
}

/** Provider keys stand in the gateway's environment, so the engine gets named variables only (S25). */
const passedOn = [
  'PATH',
  'HOME',
  'TMPDIR',
  'TEMP',
  'TMP',
  'SystemRoot',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'LD_LIBRARY_PATH',
  'DYLD_LIBRARY_PATH',
  'OMP_NUM_THREADS',
  'NODE_LLAMA_CPP_LOG_LEVEL',
] as const;

function engineEnvironment(cacheDir: string | undefined): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = {};
  for (const name of passedOn) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  if (cacheDir !== undefined) environment['NODE_COMPILE_CACHE'] = cacheDir;
  return environment;
}

function logLines(stream: Readable | null, log: Log, model: string): void {
  if (stream === null) return;
  createInterface({ input: stream }).on('line', (line) =>
    log.debug('engine_output', { model, line }),
  );
}

function tell(listener: ProcessListener, message: unknown): void {
  if (!isObject(message)) return;
  const { state, reason, percent } = message;
  switch (state) {
    case 'loading':
      if (typeof percent === 'number') listener.loading(percent);
      return;
    case 'ready':
      return listener.ready();
    case 'failed':
      return listener.failed(typeof reason === 'string' ? reason : 'It cannot start.');
    case 'beat':
      return listener.beat(readBeat(message));
    default:
  }
}

function readBeat(message: { readonly [name: string]: unknown }): Beat {
  const count = (name: string): number => {
    const value = message[name];
    return typeof value === 'number' ? value : 0;
  };
  return {
    served: count('served'),
    active: count('active'),
    computing: count('computing'),
    steps: count('steps'),
    stays: message['stays'] === true,
  };
}

/** Fit to be shown. */
export function describeEnd(model: string, { code, signal }: ProcessEnd): string {
  const hint = signal === 'SIGKILL' ? '; the machine may be out of memory' : '';
  const how = signal === null ? `code ${code}` : `${signal}${hint}`;
  return `The local engine of "${model}" ended unexpectedly (${how}).`;
}
