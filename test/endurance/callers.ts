/** Clients that call without an end, in all dialects, streamed or not, and leave one call in five. */
import { randomInt } from 'node:crypto';
import type { JsonObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import { endingOf } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';

export interface Called {
  /** As the ledger's `user` has it. */
  readonly name: string;
  readonly key: string;
  left: boolean;
  /** It heard the whole answer, and that it succeeded. */
  heard: boolean;
  /** A proper answer that says what failed: a status or an error frame. */
  refused: boolean;
  /** ms of `performance.now()` */
  endedAt: number | undefined;
}

export interface CallersOptions {
  readonly url: () => string;
  readonly keys: readonly string[];
  readonly count: number;
  /** Share that leaves before the end. */
  readonly leaving: number;
  /** Prefix of the calls' names. */
  readonly prefix: string;
}

export class Callers {
  readonly calls = new Map<string, Called>();
  readonly #options: CallersOptions;
  #stopped = false;
  #next = 0;
  readonly #running: Promise<void>[] = [];

  constructor(options: CallersOptions) {
    this.#options = options;
    for (let i = 0; i < options.count; i++) this.#running.push(this.#callOn());
  }

  /** No more calls; resolves when the running ones are over. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  async #callOn(): Promise<void> {
    while (!this.#stopped) await this.#call();
  }

  async #call(): Promise<void> {
    const { keys, leaving, prefix, url } = this.#options;
    this.#next += 1;
    const key = keys[randomInt(keys.length)] ?? '';
    const called: Called = {
      name: `${prefix}${this.#next}`,
      key,
      left: false,
      heard: false,
      refused: false,
      endedAt: undefined,
    };
    this.calls.set(called.name, called);
    const dialect = clientDialects[randomInt(clientDialects.length)] ?? 'chat';
    const stream = randomInt(10) < 7;
    const abort = new AbortController();
    const timer =
      Math.random() < leaving
        ? setTimeout(
            () => {
              called.left = true;
              abort.abort();
            },
            randomInt(20, 1500),
          )
        : undefined;
    try {
      const reply = await send(url() + endpointOf[dialect], bodyOf(dialect, called.name, stream), {
        headers: { authorization: `Bearer ${key}` },
        signal: abort.signal,
      });
      const ended = stream && reply.status === 200 ? endingOf(dialect, reply.text) : 'proper';
      if (reply.complete && ended === 'none') throw new Error(`no ending: ${reply.text}`);
      called.heard = reply.complete && reply.status === 200 && ended === 'proper';
      called.refused = reply.complete && !called.heard;
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('no ending')) throw error;
      // It left, or the gateway is gone.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    clearTimeout(timer);
    called.endedAt = performance.now();
  }
}

/** The member in which each dialect names the user of a call. */
const named: { readonly [D in ClientDialect]: (name: string) => JsonObject } = {
  chat: (name) => ({ user: name }),
  messages: (name) => ({ metadata: { user_id: name } }),
  responses: (name) => ({ safety_identifier: name }),
};

function bodyOf(dialect: ClientDialect, name: string, stream: boolean): JsonObject {
  const model = randomInt(2) === 0 ? 'up/m' : 'up-messages/m';
  const messages = [{ role: 'user', content: `This is call ${name} of many.` }];
  const more = { max_tokens: 60, messages, ...named[dialect](name) };
  return requestBody(dialect, { model, stream, more });
}
