/** An answer as server-sent events, while it is generated. */
import type { ServerResponse } from 'node:http';
import {
  logprobsMember,
  PendingLogprobs,
  stopReason,
  usageOf,
  type AnswerHead,
  type AnswerWriter,
} from './answer.ts';
import type { EngineError } from './engine-error.ts';
import type { Outcome } from './generate.ts';
import type { JsonObject } from './json.ts';
import type { TokenChoice } from './logprobs.ts';

export class StreamWriter implements AnswerWriter {
  readonly #response: ServerResponse;
  readonly #head: AnswerHead;
  readonly #includeUsage: boolean;
  readonly #pending: PendingLogprobs;
  readonly #start: string;
  readonly #textEnd: string;
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

  finish(outcome: Outcome): void {
    const { finishReason } = outcome;
    this.#writeChoice({
      delta: {},
      logprobs: null,
      finish_reason: finishReason,
      ...stopReason(outcome),
    });
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
    const delta = `{"index":0,"delta":{"${key}":${JSON.stringify(text)}`;
    this.#send(`${this.#start}${delta}${this.#textEnd}`);
  }

  #writeChoice(choice: JsonObject): void {
    const text = JSON.stringify({ index: 0, ...choice });
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

  /** With usage asked for, every chunk carries the key. */
  #nullUsage(): string {
    return this.#includeUsage ? ',"usage":null' : '';
  }
}
