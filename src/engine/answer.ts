/** Answers in the chat-completions format: what both forms share. */
import type { ServerResponse } from 'node:http';
import type { Token } from 'node-llama-cpp';
import type { EngineError, JsonObject } from './engine-error.ts';
import type { GenerationSink, Outcome, TokenCounts } from './generate.ts';
import type { Likelihood, TokenChoice } from './sampling.ts';

/** What every part of one answer repeats. */
export interface AnswerHead {
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
  readonly promptTokens: number;
  readonly newId: (prefix: string) => string;
  /** The text of one token alone. */
  readonly textOf: (token: Token) => string;
  /** Log probabilities were requested. */
  readonly logprobs: boolean;
  /** How many answers were requested. */
  readonly choices: number;
}

/** Where a generation goes. */
export interface AnswerWriter extends GenerationSink {
  /** The prompt is tokenized and the request is in the queue. */
  begin(): void;
  /** One choice is whole; what follows belongs to the next. */
  endChoice(outcome: Outcome): void;
  /** All choices are whole. */
  finish(counts: TokenCounts): void;
  /** Shows that the connection is alive while the request waits or its prompt is read. */
  keepAlive(): void;
  /** A status and a body where nothing was sent yet, else an event that ends the stream. */
  fail(error: EngineError): void;
}

/** Usage so far; prompt and completion are counted tokens, never estimates. */
export function usageOf(head: AnswerHead, outcome: TokenCounts | undefined): JsonObject {
  const completion = outcome?.completionTokens ?? 0;
  const counts = {
    prompt_tokens: head.promptTokens,
    completion_tokens: completion,
    total_tokens: head.promptTokens + completion,
  };
  if (outcome === undefined) return counts;
  const { reasoningTokens } = outcome;
  // A retained prefix counts as cached from 1,024 tokens on, in steps of 128, as at OpenAI: the same short
  // request sent twice then has the same usage twice.
  return {
    ...counts,
    prompt_tokens_details: {
      cached_tokens:
        outcome.cachedTokens < 1024 ? 0 : outcome.cachedTokens - (outcome.cachedTokens % 128),
    },
    ...(reasoningTokens === 0
      ? {}
      : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}

/** vLLM's spelling: the sequence that ended the answer, on the choice. */
export function stopReason(outcome: Outcome): JsonObject {
  return outcome.stopSequence === undefined ? {} : { stop_reason: outcome.stopSequence };
}

/** Likelihoods of tokens until the text that they belong to is shown; those of other parts are not. */
export class PendingLogprobs {
  readonly #head: AnswerHead;
  #pending: JsonObject[] = [];

  constructor(head: AnswerHead) {
    this.#head = head;
  }

  add(choice: TokenChoice): void {
    const top = choice.top.map((likelihood) => this.#entry(likelihood));
    this.#pending.push({ ...this.#entry(choice), top_logprobs: top });
  }

  /** Those of the text that is shown now. */
  take(): readonly JsonObject[] {
    const taken = this.#pending;
    this.#pending = [];
    return taken;
  }

  #entry({ token, logprob }: Likelihood): JsonObject {
    const text = this.#head.textOf(token);
    // A token may be a part of a character; then its bytes are unknown.
    const bytes = text.includes('\uFFFD') ? null : [...Buffer.from(text)];
    return { token: text, logprob, bytes };
  }
}

/** The member `logprobs` of a choice. */
export function logprobsMember(entries: readonly JsonObject[]): JsonObject {
  return { content: entries, refusal: null };
}

/** Sends a JSON document. */
export function sendJson(response: ServerResponse, status: number, body: JsonObject): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes.length,
  });
  response.end(bytes);
}

/** Sends a failure; `retry-after` where another try makes sense. */
export function sendError(response: ServerResponse, error: EngineError): void {
  if (error.retryAfterSeconds !== undefined) {
    response.setHeader('retry-after', String(error.retryAfterSeconds));
  }
  sendJson(response, error.status, error.body());
}

// Tracks running answers: what a parent must know to unload an idle engine or end a hung one.

export class Activity {
  readonly #open = new Set<ServerResponse>();
  #served = 0;

  /** Requests that came in so far. */
  get served(): number {
    return this.#served;
  }

  /** Requests that are not done; one that its caller left stays until it gave its sequence back. */
  get active(): number {
    return this.#open.size;
  }

  /** Those of them that do not wait for their caller to read. */
  get computing(): number {
    let count = 0;
    for (const { writableNeedDrain, writableEnded } of this.#open) {
      if (!writableNeedDrain && !writableEnded) count += 1;
    }
    return count;
  }

  begin(response: ServerResponse): void {
    this.#served += 1;
    this.#open.add(response);
  }

  /** Nothing more is written; the request is done when its bytes have left. */
  end(response: ServerResponse): void {
    const gone = (): boolean => this.#open.delete(response);
    if (response.writableFinished || response.destroyed) gone();
    else response.once('close', gone);
  }
}
