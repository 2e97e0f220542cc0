/** A listener for webhooks. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';

export interface Heard {
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly event: JsonObject;
}

/** A listener that answers with these statuses in turn, with the last one from then on. */
export class Listener {
  readonly heard: Heard[] = [];
  readonly #statuses: readonly number[];
  readonly #server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    request.on('end', () => {
      const status = this.#statuses[Math.min(this.heard.length, this.#statuses.length - 1)] ?? 200;
      this.heard.push({ headers: request.headers, text, event: tryParseObject(text) ?? {} });
      response.writeHead(status).end();
      for (const wake of this.#waiting.splice(0)) wake();
    });
  });
  readonly #waiting: (() => void)[] = [];

  constructor(...statuses: readonly number[]) {
    this.#statuses = statuses;
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const address = this.#server.address();
    assert.ok(typeof address === 'object' && address !== null);
    return `http://127.0.0.1:${address.port}/hooks?token=x`;
  }

  async until(count: number): Promise<void> {
    while (this.heard.length < count) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
