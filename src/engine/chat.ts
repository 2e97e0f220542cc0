/** Answers one chat request: counts the prompt, waits for a slot, generates, writes. */
import type { ServerResponse } from 'node:http';
import type { TokenBias } from 'node-llama-cpp';
import { grammarsBesideXml, grammarsOf } from './answer-grammar.ts';
import type { AnswerHead, AnswerWriter } from './answer.ts';
import { DocumentWriter } from './document-writer.ts';
import { asEngineError, EngineError, invalid } from './engine-error.ts';
import { generate, type GenerationJob } from './generate.ts';
import type { Json } from './json.ts';
import type { EngineModel } from './model.ts';
import type { Prompt } from './prompt.ts';
import { readRequest, type ChatRequest } from './request.ts';
import { resolveSampling } from './sampling.ts';
import { chooseSlot, type SequenceSlot } from './sequence-slot.ts';
import type { Slots } from './slots.ts';
import { StreamWriter } from './stream-writer.ts';
import { templateValues } from './thinking.ts';
import { xmlCallMark } from './xml-calls.ts';

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
  readonly slots: Slots<SequenceSlot>;
  readonly runtime: EngineRuntime;
}

const keepAliveMs = 10_000;

/** The exact number of prompt tokens of a chat request. @throws EngineError 400 */
export async function countTokens(
  service: ChatService,
  body: Json | undefined,
  response: ServerResponse,
): Promise<number> {
  const prompt = await promptOf(service, readRequest(body), leaveSignal(response));
  return prompt.tokens.length;
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
  const signal = leaveSignal(response);
  const job = await prepare(service, request, signal);
  const { slots } = service;
  slots.checkRoom();
  const taken = slots.acquire(signal, (free) => chooseSlot(free, job.prompt));
  const writer = writerOf(request, response, headOf(service, request, job.prompt.length));
  writer.begin();
  const timer = setInterval(() => writer.keepAlive(), keepAliveMs);
  try {
    const slot = await taken;
    try {
      writer.finish(await generate({ ...job, slot }, writer));
    } catch (error) {
      if (!signal.aborted) await slot.reset();
      throw error;
    } finally {
      slots.release(slot);
    }
  } catch (error) {
    if (!signal.aborted) writer.fail(asEngineError(error));
    if (!signal.aborted && !(error instanceof EngineError)) throw error;
  } finally {
    clearInterval(timer);
  }
}

/** All that can be refused is refused here, before the request has its place in the line. */
async function prepare(
  service: ChatService,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<Omit<GenerationJob, 'slot'>> {
  const { model, runtime } = service;
  const { tokens: prompt, reasoningOpen } = await promptOf(service, request, signal);
  return {
    model,
    request,
    prompt,
    reasoningOpen,
    signal,
    maxTokens: outputCap(prompt.length, request.maxTokens, model.contextSize),
    sampling: resolveSampling(request.sampling, model.sampling),
    tokenBias: biasOf(model, request),
    grammars: compiledGrammars(model, request),
    randomSeed: runtime.randomSeed(),
  };
}

async function promptOf(
  { model }: ChatService,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<Prompt> {
  if (request.model !== model.name) {
    throw new EngineError(`The model "${request.model}" is not served here.`, {
      status: 404,
      type: 'invalid_request_error',
      code: 'model_not_found',
      param: 'model',
    });
  }
  const { template, reasoningTags } = model;
  const thinks = reasoningTags !== undefined;
  const values = templateValues(request.thinking, { template, thinks });
  return model.prompts.write({ messages: request.messages, tools: request.tools, values }, signal);
}

function compiledGrammars(model: EngineModel, request: ChatRequest): GenerationJob['grammars'] {
  const { tools, format, logprobs } = request;
  const read = model.template.includes(xmlCallMark) ? grammarsBesideXml : grammarsOf;
  const { whole, call } = read(tools, format);
  try {
    if (whole !== undefined) return { whole: model.compileGrammar(whole) };
    // Probabilities that a grammar has cut would not be the model's.
    if (call === undefined || logprobs !== undefined) return {};
    return { call: model.compileGrammar(call) };
  } catch {
    // Calls that the model makes by itself are then read as it writes them.
    if (whole === undefined) return {};
    const param = format === undefined || tools.required ? 'tools' : format.path;
    throw invalid('The local engine cannot use this schema: its grammar is refused.', param);
  }
}

function biasOf(model: EngineModel, { sampling }: ChatRequest): TokenBias | undefined {
  if (sampling.bias.size === 0) return undefined;
  const bias = model.biasOf(sampling.bias);
  if (bias !== undefined) return bias;
  throw invalid('"logit_bias" names a token that this model does not have.', 'logit_bias');
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

function headOf(service: ChatService, request: ChatRequest, promptTokens: number): AnswerHead {
  const { runtime, model } = service;
  return {
    id: runtime.newId('chatcmpl-'),
    createdSeconds: runtime.nowSeconds(),
    model: request.model,
    promptTokens,
    newId: runtime.newId,
    textOf: (token) => model.textOf([token], []),
    logprobs: request.logprobs !== undefined,
  };
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
