/** Reads along with an SDK: every stream that it is given must be a legal one. */
import { tryParseObject } from '../../src/json/parse.ts';
import { assertAnyStream } from './legality.ts';
import type { AnyDialect } from './reading.ts';

export class StreamWatch {
  readonly #dialect: AnyDialect;
  readonly #fetch: typeof fetch;
  #checks: Promise<void>[] = [];

  constructor(dialect: AnyDialect, transport: typeof fetch) {
    this.#dialect = dialect;
    this.#fetch = transport;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const response = await this.#fetch(input, init);
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream')) {
      const check = this.#check(response.clone(), init?.body);
      check.catch(() => undefined);
      this.#checks.push(check);
    }
    return response;
  };

  /** Resolves when all streams so far were read to their end and found legal. */
  async settled(): Promise<void> {
    const checks = this.#checks;
    this.#checks = [];
    await Promise.all(checks);
  }

  async #check(response: Response, body: unknown): Promise<void> {
    const relayed = response.headers.get('x-gateway-mode') === 'relay';
    const text = await response.text();
    const request = typeof body === 'string' ? tryParseObject(body) : undefined;
    assertAnyStream({ dialect: this.#dialect, origin: relayed ? 'relayed' : 'own' }, request, text);
  }
}
