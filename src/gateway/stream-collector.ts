/** Collects a stream for a client that wants a document. */
import { GatewayError } from '../core/errors.ts';
import type { Collector, Generation, GenerationEvent } from '../core/generation.ts';
import type { ReadFrame, StreamConsumer } from './upstream-answer.ts';

/** As for a document that comes whole (answer-body.ts). */
const maxLength = 64 * 1024 * 1024;
/** What an event takes besides its text, roughly. */
const overhead = 64;

export interface CollectorOwner {
  complete(generation: Generation): void;
  failed(error: GatewayError): void;
}

export class StreamCollector implements StreamConsumer {
  readonly #collector: Collector;
  readonly #owner: CollectorOwner;
  #over = false;
  #length = 0;

  constructor(collector: Collector, owner: CollectorOwner) {
    this.#collector = collector;
    this.#owner = owner;
  }

  frames(batch: readonly ReadFrame[]): void {
    for (const { events } of batch) this.#add(events);
  }

  ended(events: readonly GenerationEvent[]): void {
    this.#add(events);
    this.failed(new GatewayError('stream_interrupted', 'The upstream closed before its end.'));
  }

  failed(error: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    this.#owner.failed(error);
  }

  #add(events: readonly GenerationEvent[]): void {
    for (const event of events) {
      if (this.#over) return;
      this.#length += overhead + (event.type === 'part-delta' ? event.delta.length : 0);
      if (event.type === 'error') this.failed(event.error);
      else if (this.#length > maxLength) this.failed(tooLong());
      else this.#collector.add(event);
      if (event.type === 'finish') this.#complete();
    }
  }

  /** Nothing of the answer comes behind its finish. */
  #complete(): void {
    const generation = this.#collector.result();
    if (generation === undefined) return;
    this.#over = true;
    this.#owner.complete(generation);
  }
}

function tooLong(): GatewayError {
  return new GatewayError('upstream_invalid', 'The upstream sent an answer beyond 64 MiB.');
}
