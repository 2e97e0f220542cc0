/** Tracks running answers: what a parent must know to unload an idle engine or end a hung one. */
import type { ServerResponse } from 'node:http';

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
