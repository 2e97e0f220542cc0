/** An answer as one document. */
import type { ServerResponse } from 'node:http';
import {
  logprobsMember,
  PendingLogprobs,
  sendError,
  sendJson,
  stopReason,
  usageOf,
  type AnswerHead,
  type AnswerWriter,
} from './answer.ts';
import type { EngineError } from './engine-error.ts';
import type { Outcome } from './generate.ts';
import type { JsonObject } from './json.ts';
import type { TokenChoice } from './logprobs.ts';

interface WrittenCall {
  readonly id: string;
  readonly name: string;
  argumentsJson: string;
}

/** Collects an answer and sends it when it is whole. */
export class DocumentWriter implements AnswerWriter {
  readonly #response: ServerResponse;
  readonly #head: AnswerHead;
  readonly #calls: WrittenCall[] = [];
  readonly #pending: PendingLogprobs;
  readonly #logprobs: JsonObject[] = [];
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

  finish(outcome: Outcome): void {
    const { id, createdSeconds, model, logprobs } = this.#head;
    sendJson(this.#response, 200, {
      id,
      object: 'chat.completion',
      created: createdSeconds,
      model,
      choices: [
        {
          index: 0,
          message: this.#message(),
          logprobs: logprobs ? logprobsMember(this.#logprobs) : null,
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
