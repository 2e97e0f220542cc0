/** Scripts on Redis, and their answers. */
import { createHash } from 'node:crypto';
import type { RedisClient } from './redis-client.ts';

export type Answer = readonly (string | number)[];

/** A script that the server knows by its hash, and is sent again where it forgot it. */
export class Script {
  readonly #client: RedisClient;
  readonly #text: string;
  readonly #hash: string;

  constructor(client: RedisClient, text: string) {
    this.#client = client;
    this.#text = text;
    this.#hash = createHash('sha1').update(text).digest('hex');
  }

  async run(key: string, values: readonly (string | number)[]): Promise<Answer> {
    sendTogether(this.#client);
    try {
      return readAnswer(await this.#client.evalsha(this.#hash, 1, key, ...values));
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    }
    return readAnswer(await this.#client.eval(this.#text, 1, key, ...values));
  }
}

/** What is sent in one turn of the event loop goes out in one write: a write is more expensive than a command. */
function sendTogether({ stream }: RedisClient): void {
  // There is none before the first connection.
  const socket: RedisClient['stream'] | undefined = stream;
  if (socket === undefined || socket.writableCorked > 0) return;
  socket.cork();
  setImmediate(() => socket.uncork());
}

function readAnswer(answer: unknown): Answer {
  return Array.isArray(answer)
    ? answer.map((each: unknown) => (typeof each === 'number' ? each : String(each)))
    : [];
}
