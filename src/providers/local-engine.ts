/**
 * Manages the engine of one model: starts it at the first call, ends it when no call came for a while,
 * ends it when it hangs, restarts it after a crash, and reports why it cannot run.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { GatewayError } from '../core/errors.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { isObject } from '../json/value.ts';

// One process of the embedded engine (`src/engine/main.ts`): its command line, its environment and
// its IPC messages. No other module knows them.

interface ProcessOptions {
  readonly modelPath: string;
  readonly socketPath: string;
  /** The model's name in requests. */
  readonly name: string;
  readonly sha256?: string;
  readonly contextSize?: number;
  readonly threads?: number;
  readonly parallel?: number;
  /** The program to run; absent = the engine. */
  readonly entry?: string;
}

/** A heartbeat of the process. */
interface Beat {
  /** Requests that came in so far. */
  readonly served: number;
  /** Requests that are not done. */
  readonly active: number;
  /** Those of them that wait for the model, not for their caller. */
  readonly computing: number;
  /** Tokens that the model has computed so far. */
  readonly steps: number;
  /** The engine was asked to exit and is busy. */
  readonly stays: boolean;
}

interface ProcessListener {
  loading(percent: number): void;
  ready(): void;
  /** The process cannot work, and waits to be ended. */
  failed(reason: string): void;
  beat(beat: Beat): void;
  /** Called last, and exactly once. */
  ended(end: ProcessEnd): void;
}

interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

class EngineProcess {
  readonly #child: ChildProcess;
  readonly #listener: ProcessListener;
  #ended = false;

  constructor(options: ProcessOptions, log: Log, listener: ProcessListener) {
    this.#listener = listener;
    this.#child = spawnEngine(options);
    logLines(this.#child.stdout, log, options.name);
    logLines(this.#child.stderr, log, options.name);
    this.#child.on('message', (message) => {
      if (!this.#ended) notify(listener, message);
    });
    this.#child.once('exit', (code, signal) => this.#end({ code, signal }));
    this.#child.on('error', () => {
      // Also emitted when a message cannot be sent. Only a process that never started ends by it.
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

  /** Asks it to end, unless it is answering a call, or has received fewer than `served` requests. */
  askLeave(served: number): void {
    this.#ask({ ask: 'leave', served });
  }

  /** Ends the process immediately, even if it hangs in native code or is stopped. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #ask(question: { readonly ask: string; readonly served?: number }): void {
    // `ended` reports a process that has exited.
    if (this.#child.connected) this.#child.send(question, () => {});
  }

  #end(end: ProcessEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#listener.ended(end);
  }
}

// The published program is JavaScript; in development Node runs the TypeScript file itself.
const engineEntry = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts') ? '../engine/main.ts' : '../engine/main.js',
    import.meta.url,
  ),
);

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
  return spawn(process.execPath, [options.entry ?? engineEntry, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: engineEnvironment(),
  });
}

/** Provider keys are in the gateway's environment, so the engine gets named variables only (S25). */
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

function engineEnvironment(): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = {};
  for (const name of passedOn) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}

function logLines(stream: Readable | null, log: Log, model: string): void {
  if (stream === null) return;
  createInterface({ input: stream }).on('line', (line) =>
    log.debug('engine_output', { model, line }),
  );
}

function notify(listener: ProcessListener, message: unknown): void {
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

/** A text for people. */
function describeEnd(model: string, { code, signal }: ProcessEnd): string {
  const hint = signal === 'SIGKILL' ? '; the machine may be out of memory' : '';
  const how = signal === null ? `code ${code}` : `${signal}${hint}`;
  return `The local engine of "${model}" ended unexpectedly (${how}).`;
}

interface LocalEngineOptions {
  readonly modelPath: string;
  readonly log: Log;
  readonly clock: Clock;
  /** What requests call the model; absent = the file's name without its ending. */
  readonly name?: string;
  /** The SHA-256 of the model file; another one is refused (S25). */
  readonly sha256?: string;
  /** Tokens of prompt and answer together; absent = the engine decides by the model. */
  readonly contextSize?: number;
  readonly threads?: number;
  /** Requests that generate at the same time. */
  readonly parallel?: number;
  /** Absent = one in a private folder of its own. */
  readonly socketPath?: string;
  /** How long a call waits for a starting engine before it is refused (F93). */
  readonly startWaitMs?: number;
  /** Ends the engine after this time without a call; absent or 0 = never. */
  readonly idleUnloadMs?: number;
  /** The time without a heartbeat, or without a token for a waiting call, after which a process counts as hung. */
  readonly hangMs?: number;
  /** How long a model may load. */
  readonly loadLimitMs?: number;
  /** Calls `take` as soon as there is room in memory for the model; absent = at once. */
  readonly room?: (take: () => void) => Promise<void>;
  /** The program to run; absent = the engine. */
  readonly entry?: string;
}

export interface LocalEngineStatus {
  readonly phase: 'stopped' | 'starting' | 'ready' | 'unloading' | 'failed';
  /** Why it failed, as a text for people. */
  readonly reason?: string;
  /** The loaded share, if loading takes long enough to be reported. */
  readonly percent?: number;
}

/** Why an engine without a failure is ended. */
type LeaveReason = 'idle' | 'room' | 'removed';

export interface LocalEngine {
  readonly name: string;
  readonly socketPath: string;
  /** Its process runs and takes memory. */
  readonly loaded: boolean;
  /** When it was last called or answered, by the clock. */
  readonly lastUsedAt: number;
  /**
   * Resolves when the engine answers; starts it if needed.
   * @throws GatewayError `upstream_unavailable` with the reason, or `overloaded` while a large model loads.
   */
  ready(): Promise<void>;
  /** Starts the engine without waiting; a failure shows in `status()` and in the log. */
  prewarm(): void;
  status(): LocalEngineStatus;
  /** Ends the process if no call is being answered. @returns whether it did. The next call starts it again. */
  leave(why: LeaveReason): Promise<boolean>;
  /** No more calls; running ones are answered, then the process ends. */
  retire(): void;
  /** Ends the process for good and removes its socket. */
  stop(): Promise<void>;
}

const maxSocketPathLength = 100;
const defaultStartWaitMs = 20_000;
const defaultHangMs = 120_000;
const defaultLoadLimitMs = 900_000;
const maxTickMs = 5_000;
/** The run time after which the end of an engine is no failure of its start. */
const healthyAfterMs = 60_000;
/** The time after which a call that was let through and did not arrive is given up. */
const onTheWayMs = 2_000;

/** Nothing is started until `ready` or `prewarm` is called. */
export function createLocalEngine(options: LocalEngineOptions): LocalEngine {
  return new EngineSupervisor(options);
}

/** A folder that only this user can enter, with a path short enough for the address of a socket. */
export function privateFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-'));
  if (folder.length + '/engine-99999.sock'.length <= maxSocketPathLength) return folder;
  rmSync(folder, { recursive: true });
  return mkdtempSync('/tmp/model-gateway-');
}

/** The address of an engine: a file in the folder, or a pipe where sockets are not files. */
export function socketIn(folder: string, label: string): string {
  return process.platform === 'win32'
    ? String.raw`\\.\pipe\${basename(folder)}-${label}`
    : join(folder, `${label}.sock`);
}

class EngineSupervisor implements LocalEngine {
  readonly name: string;
  readonly socketPath: string;
  readonly #options: LocalEngineOptions;
  readonly #ownFolder: string | undefined;
  readonly #tickMs: number;
  #status: LocalEngineStatus = { phase: 'stopped' };
  #process: EngineProcess | undefined;
  #exited = Promise.withResolvers<void>();
  #starting: Promise<void> = Promise.resolve();
  #started = Promise.withResolvers<void>();
  #left = Promise.withResolvers<boolean>();
  #leaveReason: LeaveReason = 'idle';
  #watch: Watch;
  #timer: NodeJS.Timeout | undefined;
  #startedAt = 0;
  #lastUsedAt = 0;
  /** Calls that were let through to the process, and those that it received. */
  #woken = 0;
  #served = 0;
  #wokenAt = 0;
  /** Why the gateway ended it. */
  #verdict: string | undefined;
  /** Failures in a row; decides how long to wait before the next try. */
  #failures = 0;
  #notBefore = 0;
  #retired = false;
  #stopped = false;

  constructor(options: LocalEngineOptions) {
    this.#options = options;
    this.name = options.name ?? basename(options.modelPath, '.gguf');
    this.#ownFolder = options.socketPath === undefined ? privateFolder() : undefined;
    this.socketPath = options.socketPath ?? socketIn(this.#ownFolder ?? '', 'engine');
    this.#tickMs = tickMs(this.#hangMs, options.idleUnloadMs);
    this.#watch = new Watch(this.#hangMs, this.#tickMs);
    this.#started.promise.catch(() => {});
  }

  get loaded(): boolean {
    return this.#process !== undefined;
  }

  get lastUsedAt(): number {
    return this.#lastUsedAt;
  }

  get #hangMs(): number {
    return this.#options.hangMs ?? defaultHangMs;
  }

  status(): LocalEngineStatus {
    return this.#status;
  }

  prewarm(): void {
    if (this.#status.phase === 'ready') return;
    this.#untilReady().catch((error: unknown) => {
      // A stop while it loads is no failure.
      if (this.#stopped) return;
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.warn('engine_not_ready', { model: this.name, reason });
    });
  }

  async ready(): Promise<void> {
    if (this.#status.phase !== 'ready') await this.#untilReady();
    const now = this.#options.clock.now();
    this.#woken += 1;
    this.#wokenAt = now;
    this.#lastUsedAt = now;
  }

  async leave(why: LeaveReason): Promise<boolean> {
    if (this.#status.phase === 'unloading') return this.#left.promise;
    if (this.#status.phase !== 'ready') return false;
    const mayCome = this.#options.clock.now() - this.#wokenAt < onTheWayMs;
    this.#status = { phase: 'unloading' };
    this.#leaveReason = why;
    this.#left = Promise.withResolvers();
    this.#process?.askLeave(mayCome ? this.#woken : 0);
    return this.#left.promise;
  }

  retire(): void {
    this.#retired = true;
    void this.leave('removed');
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#status = { phase: 'stopped' };
    this.#started.reject(unavailable('The local engine was stopped.', undefined));
    this.#process?.kill();
    if (this.#process !== undefined) await this.#exited.promise;
    rmSync(this.socketPath, { force: true });
    if (this.#ownFolder !== undefined) rmSync(this.#ownFolder, { recursive: true, force: true });
  }

  async #untilReady(): Promise<void> {
    if (this.#stopped || this.#retired)
      throw unavailable('The local engine was stopped.', undefined);
    const { phase, reason } = this.#status;
    if (phase === 'unloading') {
      await this.#patiently(this.#left.promise);
      if (this.#status.phase !== 'ready') await this.#untilReady();
      return;
    }
    if (phase !== 'starting') {
      const waitMs = this.#notBefore - this.#options.clock.now();
      if (waitMs > 0) throw unavailable(reason, waitMs);
      this.#starting = this.#start();
      // Callers may all have given up by the time it fails.
      this.#starting.catch(() => {});
    }
    await this.#patiently(this.#starting);
  }

  /** @throws GatewayError `overloaded` when it takes longer than a call should wait. */
  async #patiently(awaited: Promise<unknown>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const { percent } = this.#status;
        const progress = percent === undefined ? '' : ` (${percent} %)`;
        const why = this.loaded ? `is still loading${progress}` : 'waits for others to be unloaded';
        const message = `The local model "${this.name}" ${why}.`;
        // The call has waited for it already.
        reject(new GatewayError('overloaded', message, { retryAfterMs: 5_000, repeat: 'never' }));
      }, this.#options.startWaitMs ?? defaultStartWaitMs);
    });
    try {
      await Promise.race([awaited, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #start(): Promise<void> {
    this.#status = { phase: 'starting' };
    this.#started = Promise.withResolvers();
    // Awaited below, but perhaps only after it was stopped.
    this.#started.promise.catch(() => {});
    const { room } = this.#options;
    if (room === undefined) this.#launch();
    else await room(() => this.#launch());
    await this.#started.promise;
  }

  #launch(): void {
    if (this.#stopped || this.#retired) {
      this.#started.reject(unavailable('The local engine was stopped.', undefined));
      return;
    }
    const { log, clock, ...options } = this.#options;
    this.#startedAt = clock.now();
    this.#lastUsedAt = this.#startedAt;
    this.#woken = 0;
    this.#served = 0;
    this.#verdict = undefined;
    this.#exited = Promise.withResolvers();
    this.#watch = new Watch(this.#hangMs, this.#tickMs);
    log.info('engine_loading', { model: this.name });
    try {
      // Cleaners of temporary folders remove files that look old.
      if (process.platform !== 'win32') {
        const folder = dirname(this.socketPath);
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        if (statSync(folder).uid !== process.getuid?.())
          throw new Error('its folder is not its own');
      }
      this.#process = new EngineProcess(
        { ...options, name: this.name, socketPath: this.socketPath },
        log,
        {
          loading: (percent) => this.#onLoading(percent),
          ready: () => this.#onReady(),
          failed: (reason) => this.#end(reason),
          beat: (beat) => this.#onBeat(beat),
          ended: (end) => this.#onEnd(end),
        },
      );
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#fail(`The local engine cannot be started: ${why}`);
      return;
    }
    this.#timer = setInterval(() => this.#tick(), this.#tickMs);
    this.#timer.unref();
  }

  #onLoading(percent: number): void {
    if (this.#status.phase !== 'starting') return;
    this.#status = { phase: 'starting', percent };
    this.#options.log.info('engine_loading', { model: this.name, percent });
  }

  #onReady(): void {
    if (this.#status.phase !== 'starting' || this.#verdict !== undefined) return;
    const { log, clock } = this.#options;
    this.#status = { phase: 'ready' };
    const startMs = Math.round(clock.now() - this.#startedAt);
    log.info('engine_ready', { model: this.name, pid: this.#process?.pid, start_ms: startMs });
    this.#lastUsedAt = clock.now();
    this.#started.resolve();
  }

  #tick(): void {
    const { clock, loadLimitMs = defaultLoadLimitMs } = this.#options;
    const { phase } = this.#status;
    if (phase === 'starting') {
      if (clock.now() - this.#startedAt <= loadLimitMs) return;
      return this.#end(this.#report(`did not finish loading in ${loadLimitMs} ms and was ended`));
    }
    if (process.platform !== 'win32' && !existsSync(this.socketPath)) {
      return this.#end(this.#report('lost its socket and was ended'));
    }
    const wrong = this.#watch.tick();
    if (wrong !== undefined) return this.#endHung(wrong);
    this.#process?.askBeat();
  }

  #onBeat(beat: Beat): void {
    const now = this.#options.clock.now();
    if (beat.active > 0 || beat.served !== this.#served) this.#lastUsedAt = now;
    this.#served = beat.served;
    if (beat.stays && this.#status.phase === 'unloading') {
      this.#status = { phase: 'ready' };
      this.#left.resolve(false);
    }
    const wrong = this.#watch.beat(beat);
    if (wrong !== undefined) return this.#endHung(wrong);
    // Not at once after it said that it stays.
    if (!beat.stays && beat.active === 0) {
      const { idleUnloadMs = 0 } = this.#options;
      if (this.#retired) void this.leave('removed');
      else if (idleUnloadMs > 0 && now - this.#lastUsedAt >= idleUnloadMs) void this.leave('idle');
    }
  }

  #endHung(wrong: string): void {
    this.#options.log.error('engine_hung', { model: this.name, wrong });
    this.#end(this.#report(`${wrong} and was ended`));
  }

  #report(what: string): string {
    return `The local engine of "${this.name}" ${what}.`;
  }

  /** Ends the process; `#onEnd` does the rest. */
  #end(reason: string): void {
    this.#verdict ??= reason;
    this.#process?.kill();
  }

  #onEnd(end: ProcessEnd): void {
    clearInterval(this.#timer);
    this.#process = undefined;
    this.#exited.resolve();
    const { phase } = this.#status;
    const { log, clock } = this.#options;
    if (phase === 'unloading') {
      const idleMs = Math.round(clock.now() - this.#lastUsedAt);
      log.info('engine_unloaded', {
        model: this.name,
        reason: this.#leaveReason,
        idle_ms: idleMs,
      });
      this.#status = { phase: 'stopped' };
      this.#failures = 0;
    }
    if (phase === 'starting' || phase === 'ready') {
      const uptimeMs = Math.round(clock.now() - this.#startedAt);
      if (phase === 'ready' && uptimeMs > healthyAfterMs) this.#failures = 0;
      log.warn('engine_ended', { model: this.name, ...end, uptime_ms: uptimeMs });
      this.#fail(this.#verdict ?? describeEnd(this.name, end));
    }
    this.#left.resolve(true);
  }

  #fail(reason: string): void {
    this.#failures += 1;
    // The first restart is immediate; then 0.5 s, 1 s, 2 s … 30 s.
    const restartInMs = this.#failures <= 1 ? 0 : Math.min(30_000, 500 * 2 ** (this.#failures - 2));
    this.#notBefore = this.#options.clock.now() + restartInMs;
    this.#status = { phase: 'failed', reason };
    this.#options.log.warn('engine_failed', {
      model: this.name,
      reason,
      restart_in_ms: restartInMs,
    });
    this.#started.reject(unavailable(reason, undefined));
  }
}

/** How often to look: as often as the shortest of the times needs. */
function tickMs(hangMs: number, idleUnloadMs: number | undefined): number {
  const idle = idleUnloadMs === undefined || idleUnloadMs === 0 ? maxTickMs : idleUnloadMs / 4;
  return Math.max(10, Math.min(maxTickMs, hangMs / 8, idle));
}

function unavailable(reason: string | undefined, retryAfterMs: number | undefined): GatewayError {
  const message = reason ?? 'The local engine is not running.';
  if (retryAfterMs === undefined) return new GatewayError('upstream_unavailable', message);
  return new GatewayError('upstream_unavailable', message, {
    retryAfterMs: Math.ceil(retryAfterMs),
  });
}

// Distinguishes a hung engine from a slow one: by its heartbeats, and by whether its token count grows.

/** Counts in ticks, not by the clock: a machine that slept, or a gateway that was busy, has none. */
export class Watch {
  readonly #ticksAllowed: number;
  readonly #hangMs: number;
  #unanswered = 0;
  #standing = 0;
  #steps = -1;

  constructor(hangMs: number, tickMs: number) {
    this.#hangMs = hangMs;
    this.#ticksAllowed = Math.ceil(hangMs / tickMs);
  }

  /** Before each question. Returns what is wrong, once it is. */
  tick(): string | undefined {
    this.#unanswered += 1;
    // The first tick only asks.
    if (this.#unanswered <= this.#ticksAllowed + 1) return undefined;
    return `gave no sign of life for ${this.#hangMs} ms`;
  }

  /** With each answer. Returns what is wrong, once it is. */
  beat({ computing, steps }: Beat): string | undefined {
    this.#unanswered = 0;
    if (computing === 0 || steps !== this.#steps) this.#standing = 0;
    else this.#standing += 1;
    this.#steps = steps;
    if (this.#standing < this.#ticksAllowed) return undefined;
    return `computed no token for ${this.#hangMs} ms`;
  }
}
