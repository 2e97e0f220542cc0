/** The engine's HTTP face: chat completions, token counts, models, health. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Activity } from './activity.ts';
import { answerChat, countTokens, type ChatService } from './chat.ts';
import { sendError, sendJson } from './answer.ts';
import { asEngineError, EngineError, unavailable } from './engine-error.ts';
import { tryParse, type Json, type JsonObject } from './json.ts';

/** What the engine can do right now. */
export type EngineState =
  | { readonly phase: 'loading' }
  | { readonly phase: 'failed'; readonly reason: string }
  | { readonly phase: 'ready'; readonly service: ChatService };

export interface ServerOptions {
  readonly state: () => EngineState;
  /** Learns of every request that the model works for. */
  readonly activity: Activity;
  /** Receives failures that are the engine's own fault. */
  readonly onFailure: (error: unknown) => void;
}

const maxBodyBytes = 64 * 2 ** 20;

/** Makes the server; the caller lets it listen. */
export function createEngineServer(options: ServerOptions): Server {
  const server = createServer((request, response) => {
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
