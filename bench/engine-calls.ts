/** Streamed calls to the gateway's embedded engine, with the moments that count. */
import { Agent, request } from 'node:http';
import { isObject, type JsonObject } from '../src/json/value.ts';
import { tryParseObject } from '../src/json/parse.ts';
import { gatewayKey } from './gateway.ts';

export interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}

export interface Question {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly maxTokens: number;
  /** A seed makes the engine read the whole prompt anew. */
  readonly seed?: number;
  /** Tokens that must not come. */
  readonly without?: readonly number[];
}

/** In milliseconds from the sending of the request. */
export interface TimedAnswer {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly text: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

const agent = new Agent({ keepAlive: true });

/** Asks with temperature 0 and waits for the whole stream. @throws Error when it is not a success. */
export function timedStream(port: number, question: Question): Promise<TimedAnswer> {
  const body = JSON.stringify({
    model: question.model,
    messages: question.messages,
    max_tokens: question.maxTokens,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
    ...(question.without === undefined
      ? {}
      : { logit_bias: Object.fromEntries(question.without.map((token) => [token, -100])) }),
    ...(question.seed === undefined ? {} : { seed: question.seed }),
  });
  const { promise, resolve, reject } = Promise.withResolvers<TimedAnswer>();
  const startedAt = performance.now();
  const call = request(
    {
      agent,
      port,
      host: '127.0.0.1',
      path: '/v1/chat/completions',
      method: 'POST',
      headers: {
        authorization: `Bearer ${gatewayKey}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    },
    (answer) => {
      const reader = new AnswerReader(startedAt);
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => reader.push(piece));
      answer.on('error', reject);
      answer.on('end', () => {
        const whole = reader.end();
        if (whole !== undefined && answer.statusCode === 200) resolve(whole);
        else reject(new Error(`status ${answer.statusCode}: ${reader.tail}`));
      });
    },
  );
  call.on('error', reject);
  call.end(body);
  return promise;
}

/** Notes when text came; reads what it says when all is there. */
class AnswerReader {
  readonly #startedAt: number;
  #all = '';
  #firstAt = 0;
  #lastAt = 0;

  constructor(startedAt: number) {
    this.#startedAt = startedAt;
  }

  get tail(): string {
    return this.#all.slice(-300);
  }

  push(piece: string): void {
    this.#all += piece;
    if (!/"content":"[^"]/.test(piece)) return;
    this.#lastAt = performance.now();
    if (this.#firstAt === 0) this.#firstAt = this.#lastAt;
  }

  end(): TimedAnswer | undefined {
    if (this.#firstAt === 0 || !this.#all.trimEnd().endsWith('data: [DONE]')) return undefined;
    const usage = this.#all
      .split('\n\n')
      .map((frame) => tryParseObject(frame.replace(/^data: /, ''))?.['usage'])
      .findLast(isObject);
    return {
      firstMs: this.#firstAt - this.#startedAt,
      lastMs: this.#lastAt - this.#startedAt,
      text: [...this.#all.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)]
        .map(([, text]) => String(tryParseObject(`{"text":${text}}`)?.['text'] ?? ''))
        .join(''),
      promptTokens: countOf(usage, 'prompt_tokens'),
      completionTokens: countOf(usage, 'completion_tokens'),
    };
  }
}

function countOf(usage: JsonObject | undefined, name: string): number {
  const count = usage?.[name];
  return typeof count === 'number' ? count : 0;
}
