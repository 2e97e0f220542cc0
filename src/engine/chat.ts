/** Answers one chat request: counts the prompt, waits for a slot, generates, writes. */
import type { ServerResponse } from 'node:http';
import type { LlamaContextSequence, Token } from 'node-llama-cpp';
import { DocumentWriter, StreamWriter, type AnswerHead, type AnswerWriter } from './answer.ts';
import { asEngineError, EngineError } from './engine-error.ts';
import { generate } from './generate.ts';
import type { Json } from './json.ts';
import type { EngineModel } from './model.ts';
import { readRequest, type ChatRequest } from './request.ts';
import type { Slots } from './slots.ts';

/** What the engine takes from outside, so that tests and the process decide on it. */
export interface EngineRuntime {
  /** Unix seconds. */
  readonly nowSeconds: () => number;
  /** An unguessable id behind the prefix. */
  readonly newId: (prefix: string) => string;
  /** An unsigned 32-bit seed. */
  readonly randomSeed: () => number;
}

export interface ChatService {
  readonly model: EngineModel;
  readonly slots: Slots<LlamaContextSequence>;
  readonly runtime: EngineRuntime;
}

const keepAliveMs = 10_000;

/** The exact number of prompt tokens of a chat request. @throws EngineError 400 */
export function countTokens(service: ChatService, body: Json | undefined): number {
  return promptOf(service, readRequest(body)).length;
}

/**
 * Answers a chat request. Failures after the first byte end the stream with an error event.
 * @throws EngineError before anything was sent.
 */
export async function answerChat(
  service: ChatService,
  body: Json | undefined,
  response: ServerResponse,
): Promise<void> {
  const request = readRequest(body);
  const prompt = promptOf(service, request);
  const maxTokens = outputCap(prompt.length, request.maxTokens, service.model.contextSize);
  const signal = leaveSignal(response);
  const { runtime, slots } = service;
  slots.checkRoom();
  const slot = slots.acquire(signal);
  const writer = writerOf(request, response, {
    id: runtime.newId('chatcmpl-'),
    createdSeconds: runtime.nowSeconds(),
    model: request.model,
    promptTokens: prompt.length,
    newId: runtime.newId,
  });
  writer.begin();
  const timer = setInterval(() => writer.keepAlive(), keepAliveMs);
  try {
    const sequence = await slot;
    try {
      const job = { model: service.model, sequence, request, prompt, maxTokens, signal };
      const outcome = await generate({ ...job, randomSeed: runtime.randomSeed() }, writer);
      writer.finish(outcome);
    } catch (error) {
      // After a failed evaluation the state of the sequence is unknown: the next call starts afresh.
      if (!signal.aborted) await sequence.clearHistory();
      throw error;
    } finally {
      slots.release(sequence);
    }
  } catch (error) {
    if (!signal.aborted) writer.fail(asEngineError(error));
    if (!signal.aborted && !(error instanceof EngineError)) throw error;
  } finally {
    clearInterval(timer);
  }
}

function promptOf({ model }: ChatService, request: ChatRequest): Token[] {
  if (request.model !== model.name) {
    throw new EngineError(`The model "${request.model}" is not served here.`, {
      status: 404,
      type: 'invalid_request_error',
      code: 'model_not_found',
      param: 'model',
    });
  }
  return model.prompts.write(request.messages, request.tools);
}

/**
 * How many tokens may be generated: what was asked, at most what the context has room for. Agents
 * always ask for thousands; the answer then ends in `length` where the context ends.
 * @throws EngineError 400 `context_length_exceeded` when the prompt leaves no room at all.
 */
function outputCap(promptTokens: number, asked: number | undefined, contextSize: number): number {
  const room = contextSize - promptTokens;
  if (room >= 1) return Math.min(asked ?? room, room);
  throw new EngineError(
    `This model's maximum context length is ${contextSize} tokens. ` +
      `However, your messages resulted in ${promptTokens} tokens.`,
    {
      status: 400,
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      param: 'messages',
    },
  );
}

function writerOf(request: ChatRequest, response: ServerResponse, head: AnswerHead): AnswerWriter {
  return request.stream
    ? new StreamWriter(response, head, request.includeUsage)
    : new DocumentWriter(response, head);
}

/** Aborted when the caller goes away before the answer is whole. */
function leaveSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}
