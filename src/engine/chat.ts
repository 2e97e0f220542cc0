/** Answers one chat request: counts the prompt, waits for a slot, generates, writes. */
import type { ServerResponse } from 'node:http';
import type { TokenBias } from 'node-llama-cpp';
import { grammarsWithXml, grammarsOf } from './answer-grammar.ts';
import {
  type AnswerHead,
  type AnswerWriter,
  logprobsMember,
  PendingLogprobs,
  sendError,
  sendJson,
  stopReason,
  usageOf,
} from './answer.ts';
import { EngineError, type Json, type JsonObject, asEngineError, invalid } from './engine-error.ts';
import { generate, type GenerationJob, type Outcome, type TokenCounts } from './generate.ts';
import type { EngineModel } from './model.ts';
import type { Prompt } from './prompt.ts';
import { type ChatRequest, readRequest, templateValues } from './request.ts';
import { resolveSampling, type TokenChoice } from './sampling.ts';
import { type Slots, chooseSlot, type SequenceSlot } from './slots.ts';
import { xmlCallMark } from './scanners.ts';

// An answer as server-sent events, while it is generated.

export class StreamWriter implements AnswerWriter {
  readonly #response: ServerResponse;
  readonly #head: AnswerHead;
  readonly #includeUsage: boolean;
  readonly #pending: PendingLogprobs;
  readonly #start: string;
  readonly #textEnd: string;
  /** Of the choice that is written. */
  #index = 0;
  #calls = 0;
  /** Frames that are not written yet. */
  #frames = '';

  constructor(response: ServerResponse, head: AnswerHead, includeUsage: boolean) {
    this.#response = response;
    this.#head = head;
    this.#includeUsage = includeUsage;
    this.#pending = new PendingLogprobs(head);
    const shared = JSON.stringify({
      id: head.id,
      object: 'chat.completion.chunk',
      created: head.createdSeconds,
      model: head.model,
    });
    this.#start = `data: ${shared.slice(0, -1)},"choices":[`;
    // One text chunk a token: its frame is made once.
    this.#textEnd = `},"logprobs":null,"finish_reason":null}]${this.#nullUsage()}}\n\n`;
  }

  /** A role chunk for each choice. If usage is requested, it already has the prompt's tokens. */
  begin(): void {
    this.#response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
    });
    const delta = { role: 'assistant', content: '', refusal: null };
    const usage = this.#includeUsage
      ? `,"usage":${JSON.stringify(usageOf(this.#head, undefined))}`
      : '';
    let frames = '';
    for (let index = 0; index < this.#head.choices; index += 1) {
      const choice = JSON.stringify({ index, delta, logprobs: null, finish_reason: null });
      frames += `${this.#start}${choice}]${usage}}\n\n`;
    }
    this.#response.write(frames);
  }

  likelihood(choice: TokenChoice): void {
    this.#pending.add(choice);
  }

  reasoning(text: string): void {
    this.#pending.take();
    this.#writeDelta('reasoning_content', text);
  }

  text(text: string): void {
    if (!this.#head.logprobs) {
      this.#writeDelta('content', text);
      return;
    }
    const logprobs = logprobsMember(this.#pending.take());
    this.#writeChoice({ delta: { content: text }, logprobs, finish_reason: null });
  }

  call(name: string): void {
    this.#pending.take();
    const id = this.#head.newId('call_');
    const call = { index: this.#calls, id, type: 'function', function: { name, arguments: '' } };
    this.#calls += 1;
    this.#writeChoice({ delta: { tool_calls: [call] }, logprobs: null, finish_reason: null });
  }

  callArguments(text: string): void {
    this.#pending.take();
    const fragment = { index: this.#calls - 1, function: { arguments: text } };
    this.#writeChoice({ delta: { tool_calls: [fragment] }, logprobs: null, finish_reason: null });
  }

  endChoice(outcome: Outcome): void {
    const { finishReason } = outcome;
    this.#writeChoice({
      delta: {},
      logprobs: null,
      finish_reason: finishReason,
      ...stopReason(outcome),
    });
    this.#index += 1;
    this.#calls = 0;
  }

  finish(outcome: TokenCounts): void {
    const usage = this.#includeUsage
      ? `${this.#start}],"usage":${JSON.stringify(usageOf(this.#head, outcome))}}\n\n`
      : '';
    this.#end(`${usage}data: [DONE]\n\n`);
  }

  fail(error: EngineError): void {
    this.#end(`data: ${JSON.stringify(error.body())}\n\n`);
  }

  keepAlive(): void {
    this.#send(': waiting\n\n');
  }

  #writeDelta(key: 'content' | 'reasoning_content', text: string): void {
    const delta = `{"index":${this.#index},"delta":{"${key}":${JSON.stringify(text)}`;
    this.#send(`${this.#start}${delta}${this.#textEnd}`);
  }

  #writeChoice(choice: JsonObject): void {
    const text = JSON.stringify({ index: this.#index, ...choice });
    this.#send(`${this.#start}${text}]${this.#nullUsage()}}\n\n`);
  }

  /**
   * Written two turns of the event loop later: by then the model computes the next token, which
   * otherwise would begin only after this one has been handed to the system.
   */
  #send(frame: string): void {
    if (this.#frames === '') setImmediate(() => setImmediate(() => this.#flush()));
    this.#frames += frame;
  }

  #flush(): void {
    const frames = this.#frames;
    this.#frames = '';
    if (frames !== '' && !this.#response.destroyed) this.#response.write(frames);
  }

  #end(frames: string): void {
    this.#response.end(this.#frames + frames);
    this.#frames = '';
  }

  /** With usage requested, every chunk carries the key. */
  #nullUsage(): string {
    return this.#includeUsage ? ',"usage":null' : '';
  }
}

// An answer as one document.

interface WrittenCall {
  readonly id: string;
  readonly name: string;
  argumentsJson: string;
}

/** Collects an answer and sends it when it is whole. */
class DocumentWriter implements AnswerWriter {
  readonly #response: ServerResponse;
  readonly #head: AnswerHead;
  readonly #choices: JsonObject[] = [];
  readonly #pending: PendingLogprobs;
  #calls: WrittenCall[] = [];
  #logprobs: JsonObject[] = [];
  #text = '';
  #reasoning = '';

  constructor(response: ServerResponse, head: AnswerHead) {
    this.#response = response;
    this.#head = head;
    this.#pending = new PendingLogprobs(head);
  }

  begin(): void {
    // Nothing is sent before the answer is whole.
  }

  keepAlive(): void {
    // A document has no room for it.
  }

  likelihood(choice: TokenChoice): void {
    this.#pending.add(choice);
  }

  reasoning(text: string): void {
    this.#pending.take();
    this.#reasoning += text;
  }

  text(text: string): void {
    this.#logprobs.push(...this.#pending.take());
    this.#text += text;
  }

  call(name: string): void {
    this.#pending.take();
    this.#calls.push({ id: this.#head.newId('call_'), name, argumentsJson: '' });
  }

  callArguments(text: string): void {
    this.#pending.take();
    const call = this.#calls.at(-1);
    if (call !== undefined) call.argumentsJson += text;
  }

  endChoice(outcome: Outcome): void {
    this.#choices.push({
      index: this.#choices.length,
      message: this.#message(),
      logprobs: this.#head.logprobs ? logprobsMember(this.#logprobs) : null,
      finish_reason: outcome.finishReason,
      ...stopReason(outcome),
    });
    this.#calls = [];
    this.#logprobs = [];
    this.#text = '';
    this.#reasoning = '';
  }

  finish(outcome: TokenCounts): void {
    const { id, createdSeconds, model } = this.#head;
    sendJson(this.#response, 200, {
      id,
      object: 'chat.completion',
      created: createdSeconds,
      model,
      choices: this.#choices,
      usage: usageOf(this.#head, outcome),
    });
  }

  fail(error: EngineError): void {
    sendError(this.#response, error);
  }

  #message(): JsonObject {
    const calls = this.#calls.map(({ id, name, argumentsJson }) => ({
      id,
      type: 'function',
      function: { name, arguments: argumentsJson },
    }));
    return {
      role: 'assistant',
      content: this.#text === '' && calls.length > 0 ? null : this.#text,
      refusal: null,
      ...(this.#reasoning === '' ? {} : { reasoning_content: this.#reasoning }),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    };
  }
}

/** What the engine takes from outside, so that tests and the process decide on it. */
export interface EngineRuntime {
  /** Unix seconds. */
  readonly nowSeconds: () => number;
  /** An unguessable id after the prefix. */
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
      writer.finish(await generateChoices({ ...job, slot }, writer));
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

/** Generates the choices one after the other: those after the first find their prompt read. */
async function generateChoices(job: GenerationJob, writer: AnswerWriter): Promise<TokenCounts> {
  const { sampling, randomSeed, request } = job;
  let counts: TokenCounts | undefined;
  for (let index = 0; index < request.choices; index += 1) {
    const { seed } = sampling;
    const own = seed === undefined ? sampling : { ...sampling, seed: seed + index };
    const outcome = await generate(
      { ...job, sampling: own, randomSeed: randomSeed + index },
      writer,
    );
    writer.endChoice(outcome);
    counts = {
      completionTokens: (counts?.completionTokens ?? 0) + outcome.completionTokens,
      reasoningTokens: (counts?.reasoningTokens ?? 0) + outcome.reasoningTokens,
      cachedTokens: counts?.cachedTokens ?? outcome.cachedTokens,
    };
  }
  return counts ?? { completionTokens: 0, reasoningTokens: 0, cachedTokens: 0 };
}

/** All that can be refused is refused here, before the request is queued. */
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
  const read = model.template.includes(xmlCallMark) ? grammarsWithXml : grammarsOf;
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
 * How many tokens may be generated: the requested number, limited by the context. Agents
 * always request thousands; the answer then ends in `length` where the context ends.
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
    choices: request.choices,
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
