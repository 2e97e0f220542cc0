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
import { rmSync, rmdirSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { Activity, sendError, sendJson } from './answer.ts';
import { type ChatService, answerChat, countTokens } from './chat.ts';
import {
  EngineError,
  type Json,
  type JsonObject,
  asEngineError,
  isObject,
  tryParse,
  unavailable,
} from './engine-error.ts';
import { EngineUnavailable } from './library.ts';
import { loadModel } from './model.ts';
import { Slots } from './slots.ts';

/** As `core/node-http.ts`, which the engine may not import: an import of it loads the undici of Node (45 ms, 14 MB). */
const nodeHttp = process.getBuiltinModule('node:http');

// The engine's side of its IPC channel. The parent hears what state the engine is in, may request a
// sign of life, and may ask an idle engine to leave.

/** Content of a heartbeat. */
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

// The engine's HTTP face: chat completions, token counts, models, health.

/** What the engine can do right now. */
type EngineState =
  | { readonly phase: 'loading' }
  | { readonly phase: 'failed'; readonly reason: string }
  | { readonly phase: 'ready'; readonly service: ChatService };

interface ServerOptions {
  readonly state: () => EngineState;
  /** Learns of every request that the model works for. */
  readonly activity: Activity;
  /** Receives failures that are the engine's own fault. */
  readonly onFailure: (error: unknown) => void;
}

const maxBodyBytes = 64 * 2 ** 20;

/** Makes the server; the caller lets it listen. */
function createEngineServer(options: ServerOptions): Server {
  const server = nodeHttp.createServer((request, response) => {
    if (request.method === 'POST') options.activity.begin(response);
    handle(options, request, response)
      .catch((error: unknown) => {
        const failure = asEngineError(error);
        // The client has disconnected.
        if (response.destroyed) return;
        if (failure.status === 500) options.onFailure(error);
        if (!response.headersSent) sendError(response, failure);
      })
      .finally(() => options.activity.end(response));
  });
  // One trusted peer on a local socket: connections stay open, generations take their time.
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  return server;
}

async function handle(
  options: ServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const state = options.state();
  switch (`${request.method} ${request.url}`) {
    case 'GET /health':
      sendJson(response, state.phase === 'ready' ? 200 : 503, health(state));
      return;
    case 'GET /v1/models':
      sendJson(response, 200, modelList(readyService(state)));
      return;
    case 'POST /v1/chat/completions':
      await answerChat(readyService(state), await readBody(request), response);
      return;
    case 'POST /v1/count_tokens': {
      const body = await readBody(request);
      const tokens = await countTokens(readyService(state), body, response);
      sendJson(response, 200, { prompt_tokens: tokens });
      return;
    }
    default:
      throw refusal(404, `There is no ${request.method} ${request.url} here.`, 'not_found');
  }
}

function health(state: EngineState): JsonObject {
  switch (state.phase) {
    case 'loading':
      return { status: 'loading' };
    case 'failed':
      return { status: 'failed', reason: state.reason };
    case 'ready': {
      const { model, slots } = state.service;
      const { name, contextSize } = model;
      const { count, running, waiting } = slots;
      return {
        status: 'ready',
        model: name,
        context_length: contextSize,
        parallel: count,
        running,
        waiting,
      };
    }
    default:
      return state satisfies never;
  }
}

function readyService(state: EngineState): ChatService {
  switch (state.phase) {
    case 'ready':
      return state.service;
    case 'loading':
      throw unavailable('The local model is still loading.', 'model_loading', 1);
    case 'failed':
      throw unavailable(state.reason, 'engine_unavailable', 10);
    default:
      return state satisfies never;
  }
}

function modelList({ model, slots }: ChatService): JsonObject {
  const { trainContextSize, parameters, sizeBytes, quantization } = model.facts;
  const entry = {
    id: model.name,
    object: 'model',
    created: model.createdSeconds,
    owned_by: 'local',
    context_length: model.contextSize,
    training_context_length: trainContextSize,
    parameters: parameters ?? null,
    size_bytes: sizeBytes,
    quantization: quantization ?? null,
    parallel: slots.count,
    reasoning: reasoningOf(model),
  };
  return { object: 'list', data: [entry] };
}

/** Whether the model reasons, and whether a request can switch it. */
function reasoningOf({ reasoningTags, template }: ChatService['model']): string {
  if (reasoningTags === undefined) return 'none';
  return template.includes('enable_thinking') ? 'switchable' : 'always';
}

async function readBody(request: IncomingMessage): Promise<Json | undefined> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request) {
    if (!Buffer.isBuffer(piece)) continue;
    length += piece.length;
    if (length > maxBodyBytes) throw refusal(413, 'The body is too large.', 'request_too_large');
    pieces.push(piece);
  }
  const body = tryParse(Buffer.concat(pieces, length).toString('utf8'));
  if (body === undefined) throw refusal(400, 'The request body is not valid JSON.', null);
  return body;
}

function refusal(status: number, message: string, code: string | null): EngineError {
  return new EngineError(message, { status, type: 'invalid_request_error', code });
}
