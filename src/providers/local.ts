/**
 * The embedded engine as a provider: starts its process on demand, restarts it after a crash, and
 * tells the gateway why when it cannot run. The process is `src/engine/main.ts`; only its command
 * line, its IPC messages and its socket are known here.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { UpstreamDialect } from '../core/dialect.ts';
import { GatewayError } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import type { Endpoint, Provider } from '../core/provider.ts';
import type { Clock, Log } from '../core/runtime.ts';
import { chatTraits, type UpstreamTraits } from '../core/traits.ts';
import { plainCounter } from './counters.ts';

export interface LocalEngineOptions {
  readonly modelPath: string;
  readonly log: Log;
  readonly clock: Clock;
  /** Refuse a model file with another SHA-256 (S25). */
  readonly sha256?: string;
  /** Tokens of prompt and answer together; absent = the engine decides by the model. */
  readonly contextSize?: number;
  readonly threads?: number;
  /** A private folder for compiled JavaScript, which makes later starts quicker. */
  readonly cacheDir?: string;
  /** How long a call waits for a starting engine before it is told to come back (F93). */
  readonly startWaitMs?: number;
}

export interface LocalEngineStatus {
  readonly phase: 'stopped' | 'starting' | 'ready' | 'failed';
  /** Why it failed; fit to be shown. */
  readonly reason?: string;
}

export interface LocalEngine {
  readonly socketPath: string;
  /**
   * Resolves when the engine answers; starts it if needed.
   * @throws GatewayError `upstream_unavailable` with the reason, or `overloaded` while a large model loads.
   */
  ready(): Promise<void>;
  /** Starts the engine without waiting; a failure shows in `status()` and in the log. */
  prewarm(): void;
  status(): LocalEngineStatus;
  /** Ends the process for good and removes its socket. */
  stop(): Promise<void>;
}

const maxSocketPathLength = 100;
const defaultStartWaitMs = 20_000;
const stopGraceMs = 2_000;
/** An engine that ran this long and then died did not die of its start. */
const healthyAfterMs = 60_000;

/** Nothing is started until `ready` or `prewarm` is called. */
export function createLocalEngine(options: LocalEngineOptions): LocalEngine {
  return new EngineSupervisor(options);
}

/** The engine as one more provider; the model's name is its file's name without the ending. */
export function localProvider(engine: LocalEngine, dialect: UpstreamDialect): Provider {
  const endpoint = (path: string): Endpoint => ({
    origin: 'http://engine',
    path,
    socketPath: engine.socketPath,
    headers: ['content-type', 'application/json'],
  });
  return {
    id: 'local',
    dialect,
    generate: endpoint('/v1/chat/completions'),
    models: endpoint('/v1/models'),
    counter: plainCounter(endpoint('/v1/count_tokens'), 'prompt_tokens'),
    forwardedHeaders: [],
    traits: () => localTraits,
    wake: () => engine.ready(),
  };
}

const localTraits: UpstreamTraits = {
  ...chatTraits,
  topK: true,
  stopMax: undefined,
  imageInput: 'none',
  fileInput: false,
  responseFormat: 'none',
  reasoningControl: 'none',
  efforts: [],
  endUserField: undefined,
  prefill: true,
};

class EngineSupervisor implements LocalEngine {
  readonly socketPath: string;
  readonly #options: LocalEngineOptions;
  readonly #folder: string | undefined;
  #status: LocalEngineStatus = { phase: 'stopped' };
  #child: ChildProcess | undefined;
  #starting: Promise<void> = Promise.resolve();
  #startedAt = 0;
  /** Failures in a row; decides how long to wait before the next try. */
  #failures = 0;
  #notBefore = 0;
  #stopped = false;

  constructor(options: LocalEngineOptions) {
    this.#options = options;
    if (process.platform === 'win32') {
      this.socketPath = String.raw`\\.\pipe\model-gateway-${process.pid}-${basename(options.modelPath)}`;
      return;
    }
    this.#folder = privateFolder();
    this.socketPath = join(this.#folder, 'engine.sock');
  }

  status(): LocalEngineStatus {
    return this.#status;
  }

  prewarm(): void {
    this.ready().catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.warn('engine-not-ready', { reason });
    });
  }

  async ready(): Promise<void> {
    if (this.#status.phase === 'ready') return;
    if (this.#stopped) throw unavailable('The local engine was stopped.', undefined);
    if (this.#status.phase !== 'starting') {
      const waitMs = this.#notBefore - this.#options.clock.now();
      if (waitMs > 0) throw unavailable(this.#status.reason, waitMs);
      this.#starting = this.#start();
      // Callers may all have given up by the time it fails.
      this.#starting.catch(() => {});
    }
    await this.#waitForStart();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const child = this.#child;
    this.#status = { phase: 'stopped' };
    if (child !== undefined) await endProcess(child);
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
  }

  async #waitForStart(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const message = 'The local model is still loading.';
        reject(new GatewayError('overloaded', message, { retryAfterMs: 5_000 }));
      }, this.#options.startWaitMs ?? defaultStartWaitMs);
    });
    try {
      await Promise.race([this.#starting, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #start(): Promise<void> {
    const { log, clock } = this.#options;
    this.#status = { phase: 'starting' };
    this.#startedAt = clock.now();
    const child = spawnEngine(this.#options, this.socketPath);
    this.#child = child;
    logLines(child.stdout, log);
    logLines(child.stderr, log);
    child.once('exit', (code, signal) => this.#onExit(child, { code, signal }));
    const failure = await firstReport(child);
    if (this.#stopped) throw unavailable('The local engine was stopped.', undefined);
    if (failure === undefined) {
      this.#status = { phase: 'ready' };
      log.info('engine-ready', {
        pid: child.pid,
        startMs: Math.round(clock.now() - this.#startedAt),
      });
      return;
    }
    this.#fail(failure);
    if (child.connected) child.disconnect();
    throw unavailable(failure, undefined);
  }

  #onExit(child: ChildProcess, end: ProcessEnd): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    if (this.#stopped || this.#status.phase !== 'ready') return;
    const uptimeMs = this.#options.clock.now() - this.#startedAt;
    this.#options.log.warn('engine-ended', { ...end, uptimeMs: Math.round(uptimeMs) });
    if (uptimeMs > healthyAfterMs) this.#failures = 0;
    this.#fail(describeEnd(end));
  }

  #fail(reason: string): void {
    this.#failures += 1;
    this.#status = { phase: 'failed', reason };
    this.#notBefore = this.#options.clock.now() + backoffMs(this.#failures);
  }
}

interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** The first restart is immediate; then 0.5 s, 1 s, 2 s … 30 s. */
function backoffMs(failures: number): number {
  return failures <= 1 ? 0 : Math.min(30_000, 500 * 2 ** (failures - 2));
}

function unavailable(reason: string | undefined, retryAfterMs: number | undefined): GatewayError {
  const message = reason ?? 'The local engine is not running.';
  if (retryAfterMs === undefined) return new GatewayError('upstream_unavailable', message);
  return new GatewayError('upstream_unavailable', message, {
    retryAfterMs: Math.ceil(retryAfterMs),
  });
}

/** A folder that only this user can enter, with a path short enough for a socket address. */
function privateFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-'));
  if (folder.length + '/engine.sock'.length <= maxSocketPathLength) return folder;
  rmSync(folder, { recursive: true });
  return mkdtempSync('/tmp/model-gateway-');
}

function spawnEngine(options: LocalEngineOptions, socketPath: string): ChildProcess {
  // The same ending as this file: TypeScript in development, JavaScript when published.
  const entry = new URL(`../engine/main${extname(import.meta.url)}`, import.meta.url);
  const flags = ['--socket', socketPath, '--model', options.modelPath];
  if (options.contextSize !== undefined) flags.push('--context', String(options.contextSize));
  if (options.threads !== undefined) flags.push('--threads', String(options.threads));
  if (options.sha256 !== undefined) flags.push('--sha256', options.sha256);
  return spawn(process.execPath, [fileURLToPath(entry), ...flags], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: engineEnvironment(options.cacheDir),
  });
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

function logLines(stream: Readable | null, log: Log): void {
  if (stream === null) return;
  createInterface({ input: stream }).on('line', (line) => log.debug('engine-output', { line }));
}

/** Waits for the engine's word; undefined = it is ready, else why it is not. */
function firstReport(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    child.on('message', (message) => {
      if (!isObject(message)) return;
      const { state, reason } = message;
      if (state === 'ready') resolve(undefined);
      if (state === 'failed') resolve(typeof reason === 'string' ? reason : 'It cannot start.');
    });
    child.once('exit', (code, signal) => resolve(describeEnd({ code, signal })));
    child.once('error', () => resolve('The local engine process cannot be started.'));
  });
}

function describeEnd({ code, signal }: ProcessEnd): string {
  return `The local engine ended unexpectedly (${signal === null ? `code ${code}` : signal}).`;
}

/** The engine ends by itself when its channel closes; if not, it is killed. */
async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, 'exit');
  if (child.connected) child.disconnect();
  const timer = setTimeout(() => child.kill('SIGKILL'), stopGraceMs);
  await ended;
  clearTimeout(timer);
}
