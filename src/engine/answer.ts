/** Writes answers in the chat-completions format (wire/chat-completions.md §4 to §6). */
import type { ServerResponse } from 'node:http';
import type { EngineError } from './engine-error.ts';
import type { Outcome } from './generate.ts';
import type { JsonObject } from './json.ts';
import type { ScanSink, ToolCall } from './tool-scanner.ts';

/** What every part of one answer repeats. */
export interface AnswerHead {
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
  readonly promptTokens: number;
  readonly newId: (prefix: string) => string;
}

/** Where a generation goes. */
export interface AnswerWriter extends ScanSink {
  /** The prompt is read in and the request has its place in the line. */
  begin(): void;
  finish(outcome: Outcome): void;
  /** Shows that the connection is alive while the request waits or its prompt is read. */
  keepAlive(): void;
  /** A status and a body where nothing was sent yet, else an event that ends the stream. */
  fail(error: EngineError): void;
}

/** Usage so far; prompt and completion are counted tokens, never estimates. */
function usageOf(head: AnswerHead, outcome: Outcome | undefined): JsonObject {
  const completion = outcome?.completionTokens ?? 0;
  return {
    prompt_tokens: head.promptTokens,
    completion_tokens: completion,
    total_tokens: head.promptTokens + completion,
    ...(outcome === undefined
      ? {}
      : { prompt_tokens_details: { cached_tokens: reportedCache(outcome.cachedTokens) } }),
  };
}

/**
 * A kept prefix counts as cached from 1,024 tokens on, in steps of 128, as at OpenAI: the same short
 * question asked twice then has the same usage twice.
 */
function reportedCache(tokens: number): number {
  return tokens < 1024 ? 0 : tokens - (tokens % 128);
}

function callObject(id: string, call: ToolCall): JsonObject {
  return { id, type: 'function', function: { name: call.name, arguments: call.argumentsJson } };
}

/** Collects an answer and sends it as one document. */
export class DocumentWriter implements AnswerWriter {
  readonly #response: ServerResponse;
  readonly #head: AnswerHead;
  readonly #calls: JsonObject[] = [];
  #text = '';

  constructor(response: ServerResponse, head: AnswerHead) {
    this.#response = response;
    this.#head = head;
  }

  begin(): void {
    // Nothing is sent before the answer is whole.
  }

  keepAlive(): void {
    // A document has no room for it.
  }

  text(text: string): void {
    this.#text += text;
  }

  toolCall(call: ToolCall): void {
    this.#calls.push(callObject(this.#head.newId('call_'), call));
  }

  finish(outcome: Outcome): void {
    const { id, createdSeconds, model } = this.#head;
    sendJson(this.#response, 200, {
      id,
      object: 'chat.completion',
      created: createdSeconds,
      model,
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: this.#text === '' && this.#calls.length > 0 ? null : this.#text,
            refusal: null,
            ...(this.#calls.length > 0 ? { tool_calls: this.#calls } : {}),
          },
          logprobs: null,
          finish_reason: outcome.finishReason,
          ...stopReason(outcome),
        },
      ],
      usage: usageOf(this.#head, outcome),
    });
  }

  fail(error: EngineError): void {
    sendError(this.#response, error);
  }
}

/** vLLM's spelling: the sequence that ended the answer, on the choice. */
function stopReason(outcome: Outcome): JsonObject {
  return outcome.stopSequence === undefined ? {} : { stop_reason: outcome.stopSequence };
}

/** Sends an answer as server-sent events while it is generated. */
export class StreamWriter implements AnswerWriter {
  readonly #response: ServerResponse;
  readonly #head: AnswerHead;
  readonly #includeUsage: boolean;
  readonly #start: string;
  readonly #textEnd: string;
  #calls = 0;

  constructor(response: ServerResponse, head: AnswerHead, includeUsage: boolean) {
    this.#response = response;
    this.#head = head;
    this.#includeUsage = includeUsage;
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

  /** The role chunk. With usage asked for it already tells the prompt's tokens. */
  begin(): void {
    this.#response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
    });
    const delta = { role: 'assistant', content: '', refusal: null };
    const choice = JSON.stringify({ index: 0, delta, logprobs: null, finish_reason: null });
    const usage = this.#includeUsage
      ? `,"usage":${JSON.stringify(usageOf(this.#head, undefined))}`
      : '';
    this.#response.write(`${this.#start}${choice}]${usage}}\n\n`);
  }

  text(text: string): void {
    const delta = `{"index":0,"delta":{"content":${JSON.stringify(text)}`;
    this.#response.write(`${this.#start}${delta}${this.#textEnd}`);
  }

  toolCall(call: ToolCall): void {
    const index = this.#calls;
    this.#calls += 1;
    const opening = callObject(this.#head.newId('call_'), { ...call, argumentsJson: '' });
    this.#writeChoice({ delta: { tool_calls: [{ index, ...opening }] }, finish_reason: null });
    const fragment = { index, function: { arguments: call.argumentsJson } };
    this.#writeChoice({ delta: { tool_calls: [fragment] }, finish_reason: null });
  }

  finish(outcome: Outcome): void {
    this.#writeChoice({ delta: {}, finish_reason: outcome.finishReason, ...stopReason(outcome) });
    const usage = this.#includeUsage
      ? `${this.#start}],"usage":${JSON.stringify(usageOf(this.#head, outcome))}}\n\n`
      : '';
    this.#response.end(`${usage}data: [DONE]\n\n`);
  }

  fail(error: EngineError): void {
    this.#response.end(`data: ${JSON.stringify(error.body())}\n\n`);
  }

  keepAlive(): void {
    this.#response.write(': waiting\n\n');
  }

  #writeChoice(choice: JsonObject): void {
    const text = JSON.stringify({ index: 0, ...choice, logprobs: null });
    this.#response.write(`${this.#start}${text}]${this.#nullUsage()}}\n\n`);
  }

  /** With usage asked for, every chunk carries the key (wire/chat-completions.md §5.3). */
  #nullUsage(): string {
    return this.#includeUsage ? ',"usage":null' : '';
  }
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
