/**
 * The engine process: llama.cpp behind a chat-completions server on a Unix socket. It knows nothing
 * of the gateway; to the gateway it is one more provider. A crash of native code ends this process
 * and no other.
 *
 * Usage: node src/engine/main.ts --socket PATH --model FILE [--name NAME] [--context N] [--threads N] [--sha256 HEX]
 *
 * Started with an IPC channel it reports its state there and ends when the channel closes (parent.ts).
 */
import { randomBytes, randomInt } from 'node:crypto';
import { rmSync, writeFileSync, rmdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { dirname } from 'node:path';
import { Activity } from './activity.ts';
import { EngineUnavailable } from './library.ts';
import { loadModel } from './model.ts';
import { createEngineServer, type EngineState } from './server.ts';
import { Slots } from './slots.ts';
import { isObject, type JsonObject } from './json.ts';

// The engine's side of its IPC channel. The parent hears what state the engine is in, may ask for a
// sign of life, and may ask an idle engine to leave.

/** What a sign of life tells. */
interface SignOfLife {
  /** Requests that came in so far. */
  readonly served: number;
  /** Requests that are not done. */
  readonly active: number;
  /** Those of them that wait for the model, not for their caller. */
  readonly computing: number;
  /** Tokens that went through the model so far: if it stands still, so does the model. */
  readonly steps: number;
}

/** Says something to the parent, if there is one. */
function tellParent(message: JsonObject): void {
  if (process.connected !== true) return;
  process.send?.(message, undefined, undefined, () => {});
}

/**
 * Answers `{"ask":"beat"}` with a sign of life, and `{"ask":"leave","served":N}` by ending the process,
 * unless a request is being answered or fewer than N came in so far: one is on its way then. Between
 * this look and the end none can come in.
 */
function answerParent(look: () => SignOfLife): void {
  process.on('message', (message) => {
    if (!isObject(message)) return;
    const signs = look();
    const leaves = message['ask'] === 'leave';
    const expected = Number(message['served'] ?? 0);
    if (leaves && signs.active === 0 && signs.served >= expected) return endAtOnce();
    tellParent({ state: 'beat', ...signs, ...(leaves ? { stays: true } : {}) });
  });
}

/**
 * Ends the engine when the channel closes, so that none outlives its parent; signals meant for the
 * parent's whole group are left to the parent.
 */
function endWithParent(socketPath: string): void {
  if (process.send === undefined) return;
  const end = (): void => {
    rmSync(socketPath, { force: true });
    try {
      rmdirSync(dirname(socketPath));
    } catch {
      // The folder is gone already, or holds something that is not ours.
    }
    endAtOnce();
  };
  process.on('disconnect', end);
  // The parent may have gone while this file was being loaded.
  if (!process.connected) end();
  // Ctrl-C and service managers signal the whole group, while the parent still drains its streams.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
}

/** An orderly exit would run native destructors under threads that still compute. */
function endAtOnce(): void {
  process.kill(process.pid, 'SIGKILL');
}

const defaultParallel = 4;
const defaultQueue = 64;

const { values: flags } = parseArgs({
  options: {
    socket: { type: 'string' },
    model: { type: 'string' },
    name: { type: 'string' },
    context: { type: 'string' },
    parallel: { type: 'string' },
    queue: { type: 'string' },
    threads: { type: 'string' },
    sha256: { type: 'string' },
  },
});

let state: EngineState = { phase: 'loading' };

function report(next: EngineState): void {
  state = next;
  const reason = next.phase === 'failed' ? { reason: next.reason } : {};
  tellParent({ state: next.phase, ...reason });
}

const progressEveryMs = 2000;
let progressAt = performance.now();

function reportProgress(share: number): void {
  const now = performance.now();
  if (now - progressAt < progressEveryMs) return;
  progressAt = now;
  tellParent({ state: 'loading', percent: Math.floor(share * 100) });
}

function logLine(text: string): void {
  process.stderr.write(`${text}\n`);
}

function required(name: 'socket' | 'model'): string {
  const value = flags[name];
  if (value !== undefined && value !== '') return value;
  logLine(`--${name} is missing`);
  process.exit(2);
}

function count(text: string | undefined): number | undefined {
  const value = Number(text);
  return Number.isInteger(value) && value > 0 ? value : undefined;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

function newId(prefix: string): string {
  let id = prefix;
  for (const byte of randomBytes(24)) id += alphabet[byte % alphabet.length] ?? '';
  return id;
}

/** When memory runs out, the kernel shall take this process and not the gateway. */
function volunteerForMemoryKill(): void {
  if (process.platform !== 'linux') return;
  try {
    writeFileSync('/proc/self/oom_score_adj', '500');
  } catch {
    // Not allowed here; nothing depends on it.
  }
}

async function load(modelPath: string): Promise<void> {
  const contextSize = count(flags.context);
  const threads = count(flags.threads);
  try {
    const model = await loadModel({
      path: modelPath,
      parallel: count(flags.parallel) ?? defaultParallel,
      breakDigits: String(randomInt(2 ** 47)),
      onProgress: reportProgress,
      ...(flags.name === undefined ? {} : { name: flags.name }),
      ...(contextSize === undefined ? {} : { contextSize }),
      ...(threads === undefined ? {} : { threads }),
      ...(flags.sha256 === undefined ? {} : { sha256: flags.sha256 }),
    });
    const slots = new Slots(model.slots, {
      maxWaiting: count(flags.queue) ?? defaultQueue,
      nowMs: () => performance.now(),
    });
    logLine(`${slots.count} requests at once, ${model.contextSize} tokens each`);
    const runtime = {
      nowSeconds: () => Math.floor(Date.now() / 1000),
      newId,
      randomSeed: () => randomInt(2 ** 32),
    };
    report({ phase: 'ready', service: { model, slots, runtime } });
  } catch (error) {
    const cause = error instanceof EngineUnavailable ? error.cause : error;
    if (cause !== undefined) logLine(String(cause));
    const known = error instanceof EngineUnavailable;
    report({ phase: 'failed', reason: known ? error.message : 'The local engine cannot start.' });
  }
}

const socketPath = required('socket');
const modelPath = required('model');
const activity = new Activity();
endWithParent(socketPath);
answerParent(() => ({
  served: activity.served,
  active: activity.active,
  computing: activity.computing,
  steps: state.phase === 'ready' ? state.service.model.steps() : 0,
}));
volunteerForMemoryKill();
const server = createEngineServer({
  state: () => state,
  activity,
  onFailure: (error) =>
    logLine(error instanceof Error ? (error.stack ?? error.message) : String(error)),
});
if (process.platform !== 'win32') rmSync(socketPath, { force: true });
server.on('error', (error) => {
  report({ phase: 'failed', reason: `The engine cannot listen on its socket: ${error.message}` });
  process.exitCode = 1;
});
server.listen(socketPath, () => void load(modelPath));
